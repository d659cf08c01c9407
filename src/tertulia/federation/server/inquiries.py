"""The server's inquiries to parties, which a party's host answers without a method, and the check of ledgers.

The server stores the digest of each party's ledger: the number and the hash of an entry. Whenever a run starts, resumes
or ends, it asks each party for the hash of that entry and for the last one. A party whose ledger was lost, cut or
restored from an old backup cannot give the first. The server then stops with an error, because the budget of the
party's owners does not hold any more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia.errors import FormatError
from tertulia.federation.engines.base import Transport
from tertulia.federation.messages import LEDGER_DIGEST, Inquiry
from tertulia.federation.server.answers import read_answer
from tertulia.federation.types import PartyId


def inquire(
    transport: Transport,
    inquiry: Inquiry | Mapping[PartyId, Inquiry],
    timeout: float | None,
    warn: Callable[[str], None],
) -> dict[PartyId, Any]:
    """Ask each party; return the replies in party order, and warn of each party that does not answer."""
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


SHORTENED = (
    "the ledger of party '{party}' has lost entries that it had: its budget may have begun again. Have its owners run "
    "`tertulia ledger verify` and put the ledger back from a backup"
)


class LedgerDigests:
    """The digests of the parties' ledgers in one run, in a file of the server."""

    def __init__(self, path: Path, run: str, *, durable: bool = True) -> None:
        self.path = path
        self.run = run
        self.durable = durable

    def check(self, transport: Transport, timeout: float | None, warn: Callable[[str], None]) -> dict[PartyId, str]:
        """Ask all parties, raise `FormatError` for a shortened ledger, and store the new digests."""
        kept = self._kept()
        past = {party: Inquiry(self.run, LEDGER_DIGEST, _number(digest)) for party, digest in kept.items()}
        for party, digest in inquire(transport, past, timeout, warn).items():
            if digest != kept[party]:
                raise FormatError(SHORTENED.format(party=party))
        found = inquire(transport, Inquiry(self.run, LEDGER_DIGEST), timeout, warn)
        digests = {party: str(digest) for party, digest in found.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(self.path, json.dumps(kept | digests, indent=1).encode(), durable=self.durable)
        return digests

    def _kept(self) -> dict[PartyId, str]:
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            return {str(party): str(digest) for party, digest in kept.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError) as error:
            raise FormatError(f"{self.path} is damaged ({error}): restore it from a backup") from error


def _number(digest: str) -> int:
    number = digest.partition(":")[0]
    return int(number) if number.isdecimal() else 0
