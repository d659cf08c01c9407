"""Whose counts are added up where one party may send wrong ones (`vouched`): theirs that others can vouch for.

Counts that are honest, of whatever subject, help to predict everybody else's: more tokens show a topic's words better.
Counts that are invented, exaggerated, or put into the wrong topics make the prediction worse. So each party is left out
in turn: how well do the others, with it and without it, predict the counts of a third? A party's counts are added if
more than half of the others are predicted better with them, or hardly worse. Nothing is asked for that; the server has
all it needs.

Who is most in the way goes first, then the rest is judged anew, without its vote. Most parties always stay. One liar
has one vote: among four parties or more it can neither push out a party for which all others vouch, nor stay if none
of them does. Rejecting what does harm is known from filters of spam (Barreno et al., Machine Learning 81, 2010, RONI);
there, held-out documents are scored, of which a server has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.errors import QuorumError
from tertulia.federation.types import PartyId

HARDLY = 0.01  # nats per token, a hundredth of perplexity: where counts are many, chance decides what more of them add
FEWEST = 4  # parties: of three, one that is wrong has as many votes as one that is right


def add_vouched(replies: Mapping[PartyId, Any], beta: float, *, adds_up: bool) -> tuple[Any, tuple[PartyId, ...]]:
    """The total of all replies that others vouch for, and whose are not in it."""
    tables = [[reply.counts, *([reply.added] if adds_up else [])] for reply in replies.values()]
    chosen = [list(replies)[place] for place in find_vouched(tables, beta)]
    parts = [replies[party] for party in chosen]
    totals = {
        field.name: sum(np.asarray(getattr(part, field.name)).astype(np.int64) for part in parts)
        for field in fields(parts[0])
    }
    return replace(parts[0], **totals), tuple(party for party in replies if party not in chosen)


def find_vouched(tables: Sequence[Sequence[Array]], beta: float) -> list[int]:
    """The places of the parties whose counts may be added, in their order.

    `tables` holds one list of counts [K, V] for each party; a party must serve the others in each of its counts.
    """
    if len(tables) < FEWEST:
        raise QuorumError(
            f"{len(tables)} parties sent counts, and `vouched` needs {FEWEST}: among fewer nobody can tell who is "
            "wrong. Wait for more parties and resume, or set vouched = false"
        )
    kept, most = list(range(len(tables))), len(tables) // 2 + 1
    while len(kept) > most:
        gain = np.min([gains(counts, beta) for counts in zip(*(tables[i] for i in kept), strict=True)], axis=0)
        support = [_lower_median(np.delete(row, place)) for place, row in enumerate(gain)]
        worst = int(np.argmin(support))
        if support[worst] > -HARDLY:
            break
        del kept[worst]
    return kept


def gains(counts: Sequence[Array], beta: float) -> F64:
    """How much better party j's counts are predicted with party i's than without them [i, j]: nats per token of j.

    All others' counts predict, j's own never: topic by topic, smoothed by beta.

    >>> one, other = np.array([[3, 1]]), np.array([[0, 90]])
    >>> gains([one, one, other], 0.01)[:, 0].round(1)  # what the others do for the first
    array([ 0. ,  4.2, -2. ])
    """
    V = counts[0].shape[1]
    flat = np.array([table.ravel() for table in counts], dtype=np.float64)  # [n, K * V]
    rows = np.array([table.sum(axis=1, dtype=np.float64) for table in counts])  # [n, K]
    found = np.zeros((len(counts), len(counts)))
    for j, own in enumerate(flat):
        seen = np.flatnonzero(own)
        tokens, others = own[seen], (flat.sum(axis=0) - own)[seen]
        of_rows = rows.sum(axis=0) - rows[j]
        with_all = tokens @ np.log(others + beta) - rows[j] @ np.log(of_rows + V * beta)
        for i in range(len(counts)):
            if i != j and len(seen):
                without = np.log(others - flat[i, seen] + beta), np.log(of_rows - rows[i] + V * beta)
                found[i, j] = (with_all - tokens @ without[0] + rows[j] @ without[1]) / tokens.sum()
    return found


def _lower_median(votes: F64) -> float:
    """Above a bound if and only if more than half of the votes are."""
    return float(np.sort(votes)[(len(votes) - 1) // 2])
