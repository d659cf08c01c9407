"""Consensus rounds (ours): merge once, then count together.

FTM leaves parties whose data are alike in different local optima. Here they start as in FTM: each trains alone, and the
server merges all local topics, into exactly K clusters. From then on everybody samples with the same topics: a round
broadcasts the summed counts, each party sweeps over its documents beside the counts of all others (AD-LDA, Newman et
al., JMLR 2009), and only the *sum* of the new counts goes back, so that secure aggregation can hide single parties.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tertulia.arrays import F64, Array
from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.kernels import lda, together
from tertulia.kernels.lda import Sampler
from tertulia.methods.evaluation import SCORE, perplexity, score
from tertulia.methods.ftm import DOCUMENTS, PUSHED, Task, train_local
from tertulia.methods.merging import cluster
from tertulia.methods.trained import Trained
from tertulia.methods.vocabulary import VocabularyTerms, agree, plan_vocabulary
from tertulia.models import Topics
from tertulia.privacy.mechanisms import Clear

COUNTS = Clear("topic-word counts")


class ConsensusTerms(Protocol):
    """What a run's settings say about the method."""

    topics: int
    rounds: int  # of counting together
    start_sweeps: int  # alone, before topics are merged
    sweeps: int  # in each round
    alpha: float
    beta: float
    learn_alpha: bool
    sampler: Sampler
    evaluate: bool
    vocabulary: VocabularyTerms


@message
class Shared:
    """What all parties get in a round: the merged topics at first, then the summed counts."""

    words: tuple[str, ...]
    sweeps: int
    alpha: float
    beta: float
    counts: Array  # [K, V]; in the first round pseudo-counts of the merged topics
    round: int  # in which these counts were summed


@message
class Counts:
    """One party's counts; the server only learns their sum."""

    counts: Array  # [K, V]


@message
class Counting:
    """What a party keeps: its tokens' topics, and in which round it last told their counts."""

    z: Array
    round: int


@message
class State:
    """What the server keeps."""

    round: int
    words: tuple[str, ...]
    counts: Array  # [K, V]


@step
def count_together(party: Party, state: Any, ask: Shared) -> tuple[Counting, Counts]:
    """Sweep beside everybody else's counts, and give one's own."""
    corpus = party.documents(Vocabulary(ask.words))
    K = len(ask.counts)
    shared = np.ascontiguousarray(ask.counts.T, dtype=np.int32)  # [V, K]
    alpha = np.full(K, ask.alpha / K)
    told = isinstance(state, Counting) and state.round == ask.round
    if isinstance(state, Counting):
        z = state.z
    else:  # new here, or still with topics of its own
        topics = _topic_word(ask.counts, ask.beta)
        z = lda.init_from_topics(corpus.words, corpus.documents, topics, alpha, ask.beta, party.seed).z
    if told:  # the sum holds this party's own counts: take them out
        np.subtract.at(shared, (corpus.words, z), 1)
    z, own = together.run(
        corpus.words, corpus.documents, z, shared, alpha, ask.beta, ask.sweeps, party.seed ^ 1,
        party.setting("threads", 1),
    )  # fmt: skip
    return Counting(z, ask.round + 1), Counts(party.release(np.ascontiguousarray(own.T), COUNTS))


def train(fed: Federation, config: ConsensusTerms, state: State | None = None) -> Trained:
    """Train alone, merge, then count together."""
    if state is None:
        state = fed.commit(_start(fed, config))
    while state.round < config.rounds:
        ask = Shared(state.words, config.sweeps, config.alpha, config.beta, state.counts, state.round)
        counts = fed.sum(count_together, ask).counts
        scores: dict[str, Any] = {"topics": len(counts)}
        if config.evaluate:
            phi = _topic_word(counts, config.beta)
            scores["perplexity"] = perplexity(fed, state.words, phi, np.full(len(phi), config.alpha / len(phi)))
        state = fed.commit(State(state.round + 1, state.words, counts), **scores)
    return _result(config, state)


def _start(fed: Federation, config: ConsensusTerms) -> State:
    """Merge what parties learned alone, as pseudo-counts."""
    words = agree(fed, config.vocabulary).words
    task = Task(
        words, config.topics, config.start_sweeps, config.alpha, config.beta, config.learn_alpha, config.sampler, None
    )
    models = fed.each(train_local, task).values()
    if not models:
        raise InputError("no party trained a model to start from")
    weights = np.concatenate([np.full(len(m.topic_word), float(m.documents)) for m in models])
    merged, weight = cluster(np.concatenate([m.topic_word for m in models]), weights, config.topics)
    return State(0, words, np.rint(merged * weight[:, None] * _TOKENS).astype(np.int64))


_TOKENS = 100  # pseudo-tokens a document and topic: so many that the merged topics hardly move in the first round


def _topic_word(counts: Array, beta: float) -> F64:
    phi: F64 = (counts + beta) / (counts + beta).sum(axis=1, keepdims=True)
    return phi


def plan(config: ConsensusTerms) -> list[Planned]:
    """Everything that will leave a party, for `tertulia check`."""
    pushed = [Planned(train_local, "each", mechanism, 1) for mechanism in (PUSHED, DOCUMENTS)]
    scores = [Planned(score, "sum", SCORE, config.rounds)] if config.evaluate else []
    counts = [Planned(count_together, "sum", COUNTS, config.rounds)]
    return [*plan_vocabulary(config.vocabulary), *pushed, *counts, *scores]


def _result(config: ConsensusTerms, state: State) -> Trained:
    K = len(state.counts)
    weights = state.counts.sum(axis=1).astype(np.float64)
    return Trained(
        Topics(
            _topic_word(state.counts, config.beta), Vocabulary(state.words), np.full(K, config.alpha / K), config.beta,
            weights,
        ),
        {},
    )  # fmt: skip
