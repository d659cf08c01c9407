"""What the server keeps of parties' ledgers: the last digest of each, by which a shortened history shows.

A digest names an entry by its number and its hash. Whenever a run begins, goes on or ends, the server asks each party
for the hash of the entry that it kept, and for the last one. A party whose ledger was lost, cut, or put back from an
old backup cannot give the first. The server then says so: the party's owners must know, for their budget does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tertulia._disk import atomic_write
from tertulia.errors import FormatError
from tertulia.federation.engines.base import Transport
from tertulia.federation.messages import LEDGER_DIGEST, Inquiry
from tertulia.federation.server.inquiries import inquire
from tertulia.federation.types import PartyId

SHORTENED = (
    "the ledger of party '{party}' has lost entries that it had: its budget may have begun anew. Have its owners run "
    "`tertulia ledger verify` and put the ledger back from a backup"
)


class LedgerDigests:
    """The digests of one run, in a file of the server."""

    def __init__(self, path: Path, run: str, *, durable: bool = True) -> None:
        self.path = path
        self.run = run
        self.durable = durable

    def check(self, transport: Transport, timeout: float | None, warn: Callable[[str], None]) -> dict[PartyId, str]:
        """Ask all parties, raise `FormatError` for a shortened ledger, and keep the new digests."""
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
