"""The server's half of the exchange of ledger heads: it passes on boxes that it cannot open.

All members must be there when a run starts. Later those that answer suffice. A party whose ledger was put back refuses
the exchange, and all questions that follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tertulia._arrays import U8
from tertulia.errors import QuorumError
from tertulia.federation.secure.keys import KEY_BYTES
from tertulia.federation.secure.messages import (
    HELD_BOX,
    NEW_BOX,
    AskChallenge,
    Challenge,
    Challenges,
    HeldHeads,
    NewHeads,
)
from tertulia.federation.server.secure_sums import SecureSums, fits
from tertulia.federation.types import Nothing, PartyId

_TRIES = 3  # a party that is restarted in the middle has forgotten its challenge
_WHAT = "the exchange of ledger heads"
NOT_ALL = (
    "at the start of a run all members show what they hold of each other's ledgers, and {who} did not take part. A "
    "party that refuses by rule 'older ledger' has an older ledger than others know of, and its own log says how to "
    "proceed. Wait for all, and resume"
)


def exchange_heads(sums: SecureSums) -> None:
    """Let the members compare and exchange heads; raise `QuorumError` if one is missing at the start of a run."""
    for left in reversed(range(_TRIES)):
        try:
            _exchange(sums)
            break
        except QuorumError:
            if not (left and sums.failed):
                raise


def _exchange(sums: SecureSums) -> None:
    members, n = sums.members, len(sums.members)

    def ask(messages: Mapping[PartyId, Any], kind: type, field: str, shape: tuple[int, ...]) -> dict[PartyId, U8]:
        """Return the arrays that the parties send, without those of another shape."""
        replies = sums.exchange(messages, kind, what=_WHAT)
        _check_all(sums, replies)
        found = {party: getattr(reply, field) for party, reply in replies.items()}
        return {party: array for party, array in found.items() if fits(array, shape)}

    def boxes_for(party: PartyId, boxes: Mapping[PartyId, U8], size: int) -> U8:
        empty, place = np.zeros(size, np.uint8), members.index(party)
        return np.stack([boxes[sender][place] if sender in boxes else empty for sender in members])

    given = ask(dict.fromkeys(members, AskChallenge()), Challenge, "challenge", (KEY_BYTES,))
    challenges = np.stack([given.get(party, np.zeros(KEY_BYTES, np.uint8)) for party in members])
    held = ask(dict.fromkeys(given, Challenges(challenges)), HeldHeads, "boxes", (n, HELD_BOX))
    new = ask({p: HeldHeads(boxes_for(p, held, HELD_BOX)) for p in held}, NewHeads, "boxes", (n, NEW_BOX))
    stored = sums.exchange({p: NewHeads(boxes_for(p, new, NEW_BOX)) for p in new}, Nothing, what=_WHAT)
    _check_all(sums, stored)
    if len(stored) == n:
        sums.journal.note_heads()


def _check_all(sums: SecureSums, replies: Mapping[PartyId, Any]) -> None:
    """Raise `QuorumError` if a member is missing before all have exchanged heads once."""
    missing = [party for party in sums.members if party not in replies]
    if missing and not sums.journal.has_heads:
        raise QuorumError(NOT_ALL.format(who=", ".join(missing)))
