"""The server's totals of Consensus: the question of a round, the sums after it, and the next state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.federation import fields
from tertulia.federation.types import PartyId
from tertulia.kernels.lda import priors
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.consensus.messages import ConsensusState, Shared
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.consensus.start import Found


class Total(NamedTuple):
    """The parties' sums after a round, with what absent ones have contributed before."""

    counts: Array  # [K, V]
    added: Array  # [K, V] counts after each sweep, added up; [0, V] if not wanted
    seen: priors.Histograms
    tag: Array  # of the counts
    left_out: tuple[PartyId, ...] = ()  # parties whose counts are not in it


def question(config: ConsensusSettings, state: ConsensusState, adds_up: bool) -> Shared:
    """Return the question that broadcasts a state; the first one holds the total of EM, as parties know it."""
    total = state.counts if state.expected is None else state.expected
    counts = np.maximum(total, 0)  # a party may take out more than it has put in
    if counts.max(initial=0) <= fields.MOST_COUNT:  # kernels count in 32 bits; parties hash and unpack half the bytes
        counts = counts.astype(np.int32)
    return Shared(
        state.words, config.part(Training), counts, state.alpha, state.round, adds_up, singly=config.robust,
        tag=state.tag, per_token=1 if state.expected is None else state.per_token,
    )  # fmt: skip


def add_changes(state: ConsensusState, changed: Any, ask: Shared) -> Total:
    """Add the sum of the parties' differences to what they have contributed before."""
    before = state.contributed
    added = changed.added + ask.training.sweeps * before if ask.adds_up else changed.added
    seen = histograms_of(changed, ask)
    all_seen = priors.Histograms(state.topics + seen.topics, state.lengths + seen.lengths)
    tag = changed.tag if state.round <= 0 else state.tag + changed.tag
    return Total(before + changed.counts, added, all_seen, tag)


def histograms_of(reply: Any, ask: Shared) -> priors.Histograms:
    """Return the histograms of a reply; empty ones if alpha is not learned."""
    if ask.training.learn_alpha:
        return priors.Histograms(reply.topics, reply.lengths)
    return priors.Histograms(np.zeros((len(ask.counts), priors.COLUMNS), np.int64), np.zeros(priors.COLUMNS, np.int64))


def fit_alpha(config: ConsensusSettings, total: Total, alpha: F64) -> F64:
    """Fit alpha to the summed histograms, unless it is given."""
    if not config.learn_alpha:
        return alpha
    return priors.fit_alpha(priors.Histograms(*(np.maximum(part, 0) for part in total.seen)), alpha)


def first_state(words: tuple[str, ...], start: Array, alpha: F64) -> ConsensusState:
    """Return the state before any party has contributed: topics to begin with, as pseudo-counts."""
    seen = np.zeros((len(start), priors.COLUMNS), np.int64)
    return ConsensusState(0, words, start, np.zeros_like(start), alpha, start, seen, seen.sum(axis=0))


def state_of_expected(words: tuple[str, ...], found: Found, alpha: F64) -> ConsensusState:
    """Return the state before any party has contributed, with the total of EM."""
    counts = np.rint(np.maximum(found.counts, 0) / found.per_token).astype(np.int64)
    first = first_state(words, counts, alpha)
    return replace(first, tag=found.tag, expected=found.counts, per_token=found.per_token)


def next_state(state: ConsensusState, total: Total, kept: Array, alpha: F64) -> ConsensusState:
    """Return the state after a round; from now on all counts are the parties'."""
    words, no_start = state.words, np.zeros((0, len(state.words)), np.int64)
    seen, left_out = total.seen, total.left_out
    return ConsensusState(state.round + 1, words, total.counts, kept, alpha, no_start, *seen, left_out, total.tag)
