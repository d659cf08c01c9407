"""How the server asks parties about themselves; a party's host answers, not a method's step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tertulia.federation.engines.base import Transport
from tertulia.federation.messages import Inquiry
from tertulia.federation.server.answers import read_answer
from tertulia.federation.types import PartyId


def inquire(
    transport: Transport,
    inquiry: Inquiry | Mapping[PartyId, Inquiry],
    timeout: float | None,
    warn: Callable[[str], None],
) -> dict[PartyId, Any]:
    """What each party says, in party order; who says nothing is left out, with a warning."""
    given = inquiry if isinstance(inquiry, Mapping) else dict.fromkeys(transport.parties, inquiry)
    asked = [party for party in transport.parties if party in given]
    received = transport.ask({party: given[party].to_bytes() for party in asked}, timeout)
    found = {}
    for party in asked:
        answer = read_answer(received[party]) if party in received else None
        if answer is not None and answer.kind == "ok":
            found[party] = answer.reply
        else:
            why = answer.text if answer else "it is late"
            warn(f"party '{party}' did not answer about its {given[party].about}: {why}")
    return found
