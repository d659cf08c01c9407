"""How the server asks parties about themselves; a party's host answers, not a method's step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tertulia.federation.engines.base import Transport
from tertulia.federation.messages import Inquiry
from tertulia.federation.server.answers import read_answer
from tertulia.federation.types import PartyId


def inquire(
    transport: Transport, inquiry: Inquiry, timeout: float | None, warn: Callable[[str], None]
) -> dict[PartyId, Any]:
    """What each party says, in party order; who says nothing is left out, with a warning."""
    received = transport.ask(dict.fromkeys(transport.parties, inquiry.to_bytes()), timeout)
    found = {}
    for party in transport.parties:
        answer = read_answer(received[party]) if party in received else None
        if answer is not None and answer.kind == "ok":
            found[party] = answer.reply
        else:
            warn(f"party '{party}' did not answer about its {inquiry.about}: {answer.text if answer else 'it is late'}")
    return found
