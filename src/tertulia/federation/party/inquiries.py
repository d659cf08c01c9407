"""What a party's host tells the server about its ledger, whatever the methods.

The server never opens a ledger. It may know the digest, which every model keeps so that a rewritten history shows, and
what it has received: a row for each release of this run. Other runs' releases, what a mechanism found out about the
data, and the sizes of reports, which do not leave, stay at the party.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tertulia.federation.messages import DISCLOSURES, LEDGER_DIGEST, Inquiry
from tertulia.federation.party.reports import REPORTS
from tertulia.privacy.ledger import Ledger


def _digest(ledger: Ledger, inquiry: Inquiry) -> str:
    return ledger.digest(inquiry.entry)


def _disclosures(ledger: Ledger, inquiry: Inquiry) -> tuple[dict[str, Any], ...]:
    """A row per release, in order; reports of tokens, which are charged once for all runs, among them."""
    return tuple(
        {
            "round": release.round,
            "step": release.step,
            "verb": release.verb,
            "what": release.what,
            "mechanism": release.name,
            "shape": None if release.verb == REPORTS else release.shape,
            "bytes": 0 if release.verb == REPORTS else release.nbytes,
        }
        for release in ledger.releases()
        if release.run in ("", inquiry.run)
    )


INQUIRIES: dict[str, Callable[[Ledger, Inquiry], Any]] = {LEDGER_DIGEST: _digest, DISCLOSURES: _disclosures}
