"""The first state of a run that continues an earlier model (`start_from`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tertulia.methods.common.earlier_model import give_way, new_topics, pseudo_counts, smooth
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.priors import symmetric
from tertulia.methods.consensus.messages import ConsensusState, Shared
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.consensus.totals import Total, first_state, fit_alpha, question
from tertulia.models import Topics


def begin_with(
    last: Topics,
    words: tuple[str, ...],
    config: ConsensusSettings,
    count: Callable[[Shared, ConsensusState], Total],
) -> ConsensusState:
    """Begin with the topics of an earlier model; `count` is the first round, in which tokens find their places in them.

    Faded topics make room for new ones. These, and topics that the settings ask for beyond the earlier ones, begin with
    tokens that the other topics do not explain. Such tokens stand in the sum for one round as pseudo-counts (`start`),
    beside the parties' own counts.
    """
    more = config.topics - last.n_topics
    before = pseudo_counts(last, words)
    alpha = last.alpha if config.learn_alpha else symmetric(config.alpha, last.n_topics)
    first = first_state(words, before, alpha)
    training = config.part(Training, sweeps=config.start_sweeps)
    total = count(replace(question(config, first, adds_up=False), training=training), first)
    topics = smooth(before, config.beta)
    room = np.append(give_way(topics, total.counts, last.weights, more), np.ones(more, bool))
    room[: len(config.seeds)] = False  # a seeded topic keeps its place, however few tokens it has
    counts, seen = (np.pad(rows, ((0, more), (0, 0))) for rows in (total.counts, total.seen.topics))
    start = np.zeros_like(counts)
    start[room] = new_topics(topics, total.counts, int(room.sum())).astype(counts.dtype)
    alpha = np.pad(fit_alpha(config, total, alpha), (0, more))
    alpha[room] = config.alpha / config.topics if room.all() else alpha[~room].mean()
    none = np.zeros_like(counts)
    lengths, left_out = total.seen.lengths, total.left_out
    return ConsensusState(1, words, counts + start, none, alpha, start, seen, lengths, left_out, total.tag)
