"""The answers of a party's host to inquiries about its ledger; they do not depend on methods.

The server never opens a ledger. It may know what it has received: a row for each release of its run, and the reports
that these are computed from. It may also know the hash of the last entry for it, which covers all entries before; every
model stores that hash, so that a rewritten history is detected. The party keeps for itself the entries for other
servers and their number, the facts that a mechanism found in the data, and the sizes of all that has not reached the
server: reports, noisy numbers from which others are computed, and notes for other members.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tertulia.federation.messages import DISCLOSURES, LEDGER_DIGEST, Inquiry
from tertulia.federation.party.reports import REPORTS
from tertulia.federation.plan import WIDER_VERB
from tertulia.privacy.chain import GENESIS
from tertulia.privacy.ledger import Ledger, Release


def recipient_of(run: str) -> str:
    """Return the ledger's name for the recipient of a run's entries."""
    return f"server of run {run}"


def _digest(ledger: Ledger, inquiry: Inquiry) -> str:
    """Return number and hash of the last entry for this server, or of an earlier one; "" if it is missing.

    The number counts the server's own entries: the length of the chain would reveal other federations.
    """
    own = [row.hash for row in ledger.entries() if row.entry.recipient == recipient_of(inquiry.run)]
    number = len(own) if inquiry.entry is None else inquiry.entry
    if not 0 <= number <= len(own):
        return ""
    return f"{number}:{own[number - 1] if number else GENESIS}"


def _disclosures(ledger: Ledger, inquiry: Inquiry) -> tuple[dict[str, Any], ...]:
    """Return a row for each release of the run and of the reports behind them, in order."""
    releases = releases_for(ledger, inquiry.run)
    hidden = sources_of(releases) | {release.id for release in releases if release.verb in (REPORTS, "relay")}
    return tuple(
        {
            "round": release.round,
            "step": release.step,
            "verb": release.verb,
            "what": release.what,
            "mechanism": release.name,
            "masked": release.masked,
            "shape": None if release.id in hidden else release.shape,
            "bytes": 0 if release.id in hidden else release.nbytes,
        }
        for release in releases
    )


def sources_of(releases: Sequence[Release]) -> set[str]:
    """Return the ids of releases from which others are computed: the server receives only these others."""
    return {parent for release in releases if release.verb != WIDER_VERB for parent in release.parents}


def releases_for(ledger: Ledger, run: str) -> list[Release]:
    """Select a run's releases, in order, and the reports that the run charged or used."""
    releases, own = ledger.releases(), recipient_of(run)
    sources = {parent for release in releases if release.run == run for parent in release.parents}
    sources |= {row.entry.id for row in ledger.entries() if row.entry.recipient == own}
    return [
        release for release in releases if release.run == run or (release.verb == REPORTS and release.id in sources)
    ]


INQUIRIES: dict[str, Callable[[Ledger, Inquiry], Any]] = {LEDGER_DIGEST: _digest, DISCLOSURES: _disclosures}
