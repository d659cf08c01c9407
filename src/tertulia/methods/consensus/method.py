"""Consensus rounds (ours): merge once, then count together.

FTM leaves parties whose data are alike in different local optima. Here they start as in FTM: each trains alone, and the
server merges all local topics, into exactly K clusters. From then on everybody samples with the same topics: a round
broadcasts the summed counts, each party sweeps over its documents beside the counts of all others (AD-LDA, Newman et
al., JMLR 2009), and only the *sum* of the new counts is used, so that secure aggregation could hide single parties.

The result is the mean over all sweeps of the last half of rounds: single draws scatter, most of all where there is
noise. To that end these rounds send two sums of counts, after the last sweep and after each.

Alpha is learned on the way. All that its likelihood needs of the documents is how many have so many tokens of a topic
(`kernels.lda.priors`), and parties' histograms of that add up to those of the pooled documents. So each round also sums
the histograms, the server fits alpha to the total, and the next round samples with it.

In mode `sound` parties see their documents only through reports, charged once; counts are of the words that the
noise-aware sampler takes tokens for, so that every round after the first is free. Histograms are of the same tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import F64, I32, I64, Array
from tertulia._kinds import check_array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.kernels import lda, noise_aware
from tertulia.kernels.core.checks import check_alpha, check_assignment, check_counts
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import blocked, priors
from tertulia.methods.common.evaluation import Evaluation, plan_evaluation, score
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.result import Trained
from tertulia.methods.common.rounds import Metrics, run_rounds
from tertulia.methods.common.vocabulary import DOCUMENTS, agree, plan_vocabulary, propose_words
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.ftm.local import plan_reports, report_tokens
from tertulia.methods.ftm.merging import cluster
from tertulia.methods.ftm.method import LocalTask, train_local
from tertulia.models import Topics
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism

COUNTS = "topic-word counts"
HISTOGRAMS = "document-topic histograms"  # how many documents have so many tokens of each topic, and in all


@message
class Shared:
    """What all parties get in a round: the merged topics at first, then the summed counts."""

    words: tuple[str, ...]
    training: Training
    counts: fields.Counts  # [K, V]; in the first round pseudo-counts of the merged topics
    alpha: fields.Prior  # [K]
    round: int  # in which these counts were summed
    adds_up: bool  # whether the counts after each sweep are wanted, too


@message
class Counts:
    """One party's counts; the server only learns their sum."""

    counts: Array  # [K, V] after the last sweep
    added: Array  # [K, V] after each sweep, added up; [0, V] if not wanted

    def check_reply(self, ask: Shared) -> None:
        """Raise unless these are counts of the words that were asked for."""
        check_array("counts", self.counts, ask.counts.shape, least=0)
        check_array("added", self.added, ask.counts.shape if ask.adds_up else (0, len(ask.words)), least=0)


@message
class CountsAndHistograms(Counts):
    """The same, and what alpha is learned from."""

    topics: Array  # [K, COLUMNS] documents by their tokens of each topic
    lengths: Array  # [COLUMNS] documents by all of these tokens

    def check_reply(self, ask: Shared) -> None:
        """Raise unless the histograms have their fixed shapes."""
        super().check_reply(ask)
        check_array("topics", self.topics, (len(ask.counts), priors.COLUMNS), least=0)
        check_array("lengths", self.lengths, (priors.COLUMNS,), least=0)


@message
class Counting:
    """What a party keeps: its tokens' topics, and in which round it last sent their counts."""

    z: Array  # [N] topic of each token; -1: none, as its report shows nothing
    taken_for: Array  # [N] the word that each token counts for
    round: int


@message
class ConsensusState:
    """What the server keeps."""

    round: int
    words: tuple[str, ...]
    counts: Array  # [K, V]
    kept: Array  # [K, V] counts after all sweeps of the last rounds so far, added up
    alpha: Array  # [K]


@step
def count_together(party: Party, state: Any, ask: Shared) -> tuple[Counting, Counts]:
    """Sweep beside everybody else's counts, and give one's own."""
    corpus = party.documents(Vocabulary.of(ask.words), unknown=ask.training.mode == "sound")
    others = np.ascontiguousarray(ask.counts.T, dtype=np.int32)  # [V, K]
    before = state if isinstance(state, Counting) else None  # None: new here, or still with topics of its own
    if before is not None and before.round == ask.round:  # the sum holds this party's own counts: take them out
        check_assignment(before.z, corpus.n_tokens, len(ask.counts), least=-1)
        check_assignment(before.taken_for, corpus.n_tokens, len(ask.words), least=-1)
        counted = before.z >= 0
        np.subtract.at(others, (before.taken_for[counted], before.z[counted]), 1)
        check_counts(others)
    sweeps = _from_reports if ask.training.mode == "sound" else _from_words
    added = np.zeros_like(others) if ask.adds_up else others[:, :0]
    for end in sweeps(party, corpus, before, others, ask):
        if ask.adds_up:
            added += end.own
    counts, sums = (party.release(np.ascontiguousarray(x.T), end.mechanism) for x in (end.own, added))
    kept, reply = Counting(end.z, end.taken_for, ask.round + 1), Counts(counts, sums)
    if not ask.training.learn_alpha:
        return kept, reply
    seen, how = histograms(corpus.documents, end.z, len(ask.counts)), replace(end.mechanism, what=HISTOGRAMS)
    return kept, CountsAndHistograms(counts, sums, *(party.release(x.astype(np.int32), how) for x in seen))


def histograms(documents: I64, z: I32, K: int) -> priors.Histograms:
    """What alpha is learned from; tokens without a topic are in no document."""
    known = z >= 0
    ends = np.concatenate([[0], np.cumsum(known)])[documents]
    return priors.histograms(freeze(ends, np.int64), z[known], K)


class _Sweep(NamedTuple):
    """Where a sweep ends."""

    z: I32
    taken_for: I32
    own: I32  # [V, K] counts
    mechanism: Mechanism  # by which counts leave


def _from_words(party: Party, corpus: Corpus, before: Counting | None, others: I32, ask: Shared) -> Iterator[_Sweep]:
    alpha, beta = check_alpha(ask.alpha, len(ask.counts)), ask.training.beta
    threads = party.setting("threads", 1)
    if before is None:
        topics = _smooth(ask.counts, beta)
        z = lda.init_from_topics(corpus.words, corpus.documents, topics, alpha, beta, party.seed).z
    else:
        z = before.z
    for s in range(ask.training.sweeps):
        key = int(derive(party.seed ^ 1, s))
        z, own = blocked.run_beside(corpus.words, corpus.documents, z, others, alpha, beta, key, threads)
        yield _Sweep(z, corpus.words, own, Clear(COUNTS))


def _from_reports(party: Party, corpus: Corpus, before: Counting | None, others: I32, ask: Shared) -> Iterator[_Sweep]:
    tokens = report_tokens(party, corpus, ask.training)
    reports = tokens.listed(corpus.n_tokens)
    source, documents = reports.source, reports.offsets(corpus.documents)
    alpha, beta = check_alpha(ask.alpha, len(ask.counts)), ask.training.beta
    threads = party.setting("threads", 1)
    if before is None:
        topics = _smooth(ask.counts, beta)
        state = noise_aware.init_from_topics(source, documents, topics, alpha, beta, party.seed)
    else:
        empty = np.zeros_like(others)  # `run` counts for itself
        z, taken_for = reports.take(before.z), reports.take(before.taken_for)
        state = noise_aware.AwareState(z, taken_for, empty, empty.sum(axis=0, dtype=np.int64), alpha, beta)
    for s in range(ask.training.sweeps):
        key = int(derive(party.seed ^ 1, s))
        state, _ = noise_aware.run(source, documents, state, 1, key, phi="mean", others=others, threads=threads)
        z, taken_for = reports.put_back(state.z), reports.put_back(state.word)
        yield _Sweep(z, taken_for, state.cwk, Derived(COUNTS, parents=tokens.parents))


STEPS = (propose_words, train_local, count_together, score)


def train(fed: Federation, config: ConsensusSettings, state: ConsensusState | None = None) -> Trained:
    """Train alone, merge, then count together."""
    if state is None:
        state = fed.commit(_start(fed, config))

    def count(state: ConsensusState) -> tuple[ConsensusState, Metrics]:
        adds_up = state.round >= config.rounds // 2
        ask = Shared(state.words, config.part(Training), _narrow(state.counts), state.alpha, state.round, adds_up)
        total = fed.sum(count_together, ask)
        kept = state.kept + total.added if adds_up else state.kept
        alpha = state.alpha
        if config.learn_alpha:
            alpha = priors.fit_alpha(priors.Histograms(total.topics, total.lengths), alpha)
        return ConsensusState(state.round + 1, state.words, total.counts, kept, alpha), {}

    evaluation = Evaluation[ConsensusState](config, partial(_topic_word, config), lambda state: state.alpha)
    return _result(config, run_rounds(fed, config, state, count, [evaluation]))


def _narrow(counts: Array) -> Array:
    """Counts in 32 bits, in which kernels count: a party hashes, unpacks and checks half as many bytes."""
    return counts.astype(np.int32) if counts.max(initial=0) <= fields.MOST_COUNT else counts


def _mean(config: ConsensusSettings, state: ConsensusState) -> Array:
    """The counts as far as they are known by now: the last ones, then the mean of all that are kept."""
    rounds = state.round - config.rounds // 2
    return state.kept / (rounds * config.sweeps) if rounds > 0 else state.counts


def _start(fed: Federation, config: ConsensusSettings) -> ConsensusState:
    """Merge what parties learned alone, as pseudo-counts."""
    words = agree(fed, config.vocabulary).words
    training = config.part(Training, sweeps=config.start_sweeps)
    task = LocalTask(words, training, None, with_sizes=False)  # they will come with the counts
    models = fed.each(train_local, task).values()
    if not models:
        raise InputError("no party trained a model to start from")
    weights = np.concatenate([np.full(len(m.topic_word), float(m.documents)) for m in models])
    merged, weight = cluster(np.concatenate([m.topic_word for m in models]), weights, config.topics)
    counts = np.rint(merged * weight[:, None] * _TOKENS).astype(np.int64)
    return ConsensusState(0, words, counts, np.zeros_like(counts), symmetric(config.alpha, len(counts)))


_TOKENS = 100  # pseudo-tokens per document and topic: so many that the merged topics hardly move in the first round


def _topic_word(config: ConsensusSettings, state: ConsensusState) -> F64:
    return _smooth(_mean(config, state), config.beta)


def _smooth(counts: Array, beta: float) -> F64:
    """Topics [K, V] from their counts."""
    phi: F64 = (counts + beta) / (counts + beta).sum(axis=1, keepdims=True)
    return phi


def plan(config: ConsensusSettings) -> list[Planned]:
    """Everything that will leave a party, for `tertulia check`."""
    charge, pushed = plan_reports(config)
    counts = Derived(COUNTS, parents=("reports",)) if charge else Clear(COUNTS)
    reports = [Planned(train_local, "reports", charge, 1)] if charge else []
    models = [Planned(train_local, "each", mechanism, 1) for mechanism in (pushed, DOCUMENTS)]
    sums = [counts, *([replace(counts, what=HISTOGRAMS)] if config.learn_alpha else [])]
    together = [Planned(count_together, "sum", sum_, config.rounds) for sum_ in sums]
    return [*plan_vocabulary(config.vocabulary), *reports, *models, *together, *plan_evaluation(config)]


def _result(config: ConsensusSettings, state: ConsensusState) -> Trained:
    weights = _mean(config, state).sum(axis=1).astype(np.float64)
    return Trained(Topics(_topic_word(config, state), Vocabulary(state.words), state.alpha, config.beta, weights), {})
