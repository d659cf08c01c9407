"""Sums that leave out counts which other parties do not support (`robust`), where a party may send wrong ones.

True counts, of any subject, help to predict the counts of all other parties: more tokens show a topic's words better.
Counts that are invented, exaggerated, or put into the wrong topics make the prediction worse. So each party is left out
in turn: how well do the others, with it and without it, predict the counts of a third? A party's counts are added if
more than half of the others are predicted better with them, or hardly worse. The server has all that it needs for this.

The party with the lowest support is dropped first; then the rest is judged again, without its vote. Most parties always
stay. One liar has one vote: among four parties or more it can neither push out a party that all others support, nor
stay if none of them supports it. Spam filters reject harmful input in the same way (Barreno et al., Machine Learning
81, 2010, RONI); they score held-out documents, of which a server has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.errors import QuorumError
from tertulia.federation.types import PartyId
from tertulia.methods.consensus.merged_start import StartTopics
from tertulia.methods.consensus.messages import ConsensusState, Shared
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.consensus.totals import Total, histograms_of, question

HARDLY = 0.01  # nats per token, a hundredth of perplexity: where counts are many, chance decides what more of them add
FEWEST = 4  # parties: of three, one that is wrong has as many votes as one that is right
_TRIAL = -1  # the round in which merged topics are only tried out


def questions(ask: Shared, parties: Sequence[PartyId], left_out: Sequence[PartyId]) -> dict[PartyId, Shared]:
    """Return each party's question: one whose counts were left out must not subtract them from the sum."""
    for_others = replace(ask, left_out=True)
    return {party: for_others if party in left_out else ask for party in parties}


def add_supported(replies: Mapping[PartyId, Any], ask: Shared) -> Total:
    """Add up all replies that other parties support."""
    tables = [[reply.counts, *([reply.added] if ask.adds_up else [])] for reply in replies.values()]
    chosen = [list(replies)[place] for place in find_supported(tables, ask.training.beta)]
    parts = [replies[party] for party in chosen]
    sums = {
        field.name: sum(np.asarray(getattr(part, field.name)).astype(np.int64) for part in parts)
        for field in fields(parts[0])
    }
    total = replace(parts[0], **sums)
    left_out = tuple(party for party in replies if party not in chosen)
    return Total(total.counts, total.added, histograms_of(total, ask), total.tag, left_out)


def try_out(
    config: ConsensusSettings,
    topics: StartTopics,
    start: ConsensusState,
    count: Callable[[Shared, ConsensusState], Total],
) -> StartTopics:
    """Count once with merged topics, and drop the topics of parties without support and those that hold no tokens."""
    total = count(replace(question(config, start, adds_up=False), round=_TRIAL), start)
    return topics.without(total.left_out, total.counts.sum(axis=1))


def find_supported(tables: Sequence[Sequence[Array]], beta: float) -> list[int]:
    """Return the places of the parties whose counts may be added, in their order.

    `tables` holds one list of counts [K, V] for each party; a party must serve the others in each of its counts.
    """
    if len(tables) < FEWEST:
        raise QuorumError(
            f"{len(tables)} parties sent counts, and `robust` needs {FEWEST}: among fewer nobody can tell who is "
            "wrong. Wait for more parties and resume, or set robust = false"
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
    """Measure how much better party j's counts are predicted with party i's than without [i, j]: nats per token of j.

    All counts but j's own predict: topic by topic, smoothed by beta.

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
    """Return the vote that is above a bound if and only if more than half of the votes are."""
    return float(np.sort(votes)[(len(votes) - 1) // 2])
