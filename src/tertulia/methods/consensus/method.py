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

With `vouched`, counts are asked for singly, and those are not added that make others' harder to predict (`vouching`).

In mode `sound` parties see their documents only through reports, charged once; counts are of the words that the
noise-aware sampler takes tokens for, so that every round after the first is free. Histograms are of the same tokens.
"""

from __future__ import annotations

from dataclasses import fields as fields_of
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tertulia._arrays import F64, I32, I64, Array
from tertulia._kinds import check_array
from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, PartyId, Planned, message, step
from tertulia.kernels.core.checks import check_assignment, check_counts
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.lda import priors
from tertulia.methods.common.evaluation import Evaluation, plan_evaluation, score
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.result import Trained
from tertulia.methods.common.rounds import Metrics, run_rounds
from tertulia.methods.common.start import give_way, new_topics, pseudo_counts, smooth
from tertulia.methods.common.vocabulary import DOCUMENTS, agree, plan_vocabulary, propose_words
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.consensus.start import StartTopics
from tertulia.methods.consensus.sweeping import COUNTS, sweep_reports, sweep_words
from tertulia.methods.consensus.vouching import add_vouched
from tertulia.methods.ftm.local import plan_reports
from tertulia.methods.ftm.method import LocalTask, train_local
from tertulia.models import Topics
from tertulia.privacy.mechanisms import Clear, Derived

HISTOGRAMS = "document-topic histograms"  # how many documents have so many tokens of each topic, and in all
_TRIAL = -1  # the round in which merged topics are only tried out


@message
class Shared:
    """What all parties get in a round: the merged topics at first, then the summed counts."""

    words: tuple[str, ...]
    training: Training
    counts: fields.Counts  # [K, V]; in the first round pseudo-counts of the merged topics
    alpha: fields.Prior  # [K]
    round: int  # in which these counts were summed; 0 or less: they are merged topics
    adds_up: bool  # whether the counts after each sweep are wanted, too
    of_last: bool = False  # whether they are topics of an earlier model, with which this run begins


@message
class SharedByOthers(Shared):
    """The same, for a party whose own last counts were not added."""


@message
class Counts:
    """One party's counts; unless they are to be vouched for, the server only learns their sum."""

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
    left_out: tuple[str, ...] = ()  # who sent counts in the last round that were not added


@step
def count_together(party: Party, state: Any, ask: Shared) -> tuple[Counting, Counts]:
    """Sweep beside everybody else's counts, and give one's own."""
    corpus = party.documents(Vocabulary.of(ask.words), unknown=ask.training.mode == "sound")
    others = np.ascontiguousarray(ask.counts.T, dtype=np.int32)  # [V, K]
    going_on = isinstance(state, Counting) and ask.round > 0  # else new here, or still with topics of its own
    before = state if going_on else None
    added_up = before is not None and before.round == ask.round and not isinstance(ask, SharedByOthers)
    if before is not None and added_up:  # the sum holds this party's own counts: take them out
        check_assignment(before.z, corpus.n_tokens, len(ask.counts), least=-1)
        check_assignment(before.taken_for, corpus.n_tokens, len(ask.words), least=-1)
        counted = before.z >= 0
        cells = before.taken_for[counted].astype(np.intp) * others.shape[1] + before.z[counted]
        np.subtract.at(others.reshape(-1), cells, np.int32(1))  # so, of one kind and flat, it is ten times as fast
        check_counts(others)
    sweeps = sweep_reports if ask.training.mode == "sound" else sweep_words
    end = sweeps(party, corpus, before, others, ask)
    counts, sums = (party.release(np.ascontiguousarray(x.T), end.mechanism) for x in (end.own, end.added))
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


STEPS = (propose_words, train_local, count_together, score)


def train(fed: Federation, config: ConsensusSettings, state: ConsensusState | None = None) -> Trained:
    """Train alone, merge, then count together."""
    if state is None:
        state = fed.commit(_start(fed, config))

    def count(state: ConsensusState) -> tuple[ConsensusState, Metrics]:
        adds_up = state.round >= _first_kept(config)
        total, alpha, left_out = _count(fed, config, _question(config, state, adds_up), state)
        kept = state.kept + total.added if adds_up else state.kept
        found: Metrics = {"left_out": list(left_out)} if config.vouched else {}
        return ConsensusState(state.round + 1, state.words, total.counts, kept, alpha, left_out), found

    evaluation = Evaluation[ConsensusState](config, partial(_topic_word, config), lambda state: state.alpha)
    return _result(config, run_rounds(fed, config, state, count, [evaluation]))


def _question(config: ConsensusSettings, state: ConsensusState, adds_up: bool) -> Shared:
    return Shared(state.words, config.part(Training), _narrow(state.counts), state.alpha, state.round, adds_up)


def _count(
    fed: Federation, config: ConsensusSettings, ask: Shared, state: ConsensusState
) -> tuple[Any, F64, tuple[PartyId, ...]]:
    """A round's counts, the alpha that fits them, and whose counts are not in them."""
    if config.vouched:
        for_others = SharedByOthers(**{field.name: getattr(ask, field.name) for field in fields_of(ask)})
        replies = fed.each(count_together, {p: for_others if p in state.left_out else ask for p in fed.parties})
        total, left_out = add_vouched(replies, ask.training.beta, adds_up=ask.adds_up)
    else:
        total, left_out = fed.sum(count_together, ask), ()
    if not config.learn_alpha:
        return total, state.alpha, left_out
    return total, priors.fit_alpha(priors.Histograms(total.topics, total.lengths), state.alpha), left_out


def continue_from(fed: Federation, config: ConsensusSettings, last: Topics) -> ConsensusState:
    """Begin with an earlier model instead: the first round finds the places of all tokens in its topics.

    Topics that gave way, and those that are asked for beyond, begin anew with what the others do not explain. That is
    added to what parties have counted, which stays, for parties take their own out of the sum.
    """
    words, more = agree(fed, config.vocabulary, last.vocabulary.words).words, config.topics - last.n_topics
    before = pseudo_counts(last, words)
    alpha = last.alpha if config.learn_alpha else symmetric(config.alpha, last.n_topics)
    first = ConsensusState(0, words, before, before, alpha)
    training = config.part(Training, sweeps=config.start_sweeps)
    ask = replace(_question(config, first, adds_up=False), training=training, of_last=True)
    total, alpha, left_out = _count(fed, config, ask, first)
    topics = smooth(before, config.beta)
    room = np.append(give_way(topics, total.counts, last.weights, more), np.ones(more, bool))
    counts = np.pad(total.counts, ((0, more), (0, 0)))
    counts[room] += new_topics(topics, total.counts, int(room.sum())).astype(counts.dtype)
    alpha = np.pad(alpha, (0, more))
    alpha[room] = config.alpha / config.topics if room.all() else alpha[~room].mean()
    return ConsensusState(1, words, counts, np.zeros_like(counts), alpha, left_out)


def _narrow(counts: Array) -> Array:
    """Counts in 32 bits, in which kernels count: a party hashes, unpacks and checks half as many bytes."""
    return counts.astype(np.int32) if counts.max(initial=0) <= fields.MOST_COUNT else counts


def _first_kept(config: ConsensusSettings) -> int:
    """The first of the rounds over which counts are averaged."""
    return config.rounds // 2


def _mean(config: ConsensusSettings, state: ConsensusState) -> Array:
    """The counts as far as they are known by now: the last ones, then the mean of all that are kept."""
    rounds = state.round - _first_kept(config)
    return state.kept / (rounds * config.sweeps) if rounds > 0 else state.counts


def _start(fed: Federation, config: ConsensusSettings) -> ConsensusState:
    """Merge what parties learned alone, as pseudo-counts."""
    words = agree(fed, config.vocabulary).words
    training = config.part(Training, sweeps=config.start_sweeps)
    task = LocalTask(words, training, None, with_sizes=False)  # they will come with the counts
    models = fed.each(train_local, task)
    if not models:
        raise InputError("no party trained a model to start from")
    topics = StartTopics.of(models, 1.0 if config.vouched else np.inf)
    start = _begin(config, words, topics)
    if not config.vouched:
        return start
    ask = replace(_question(config, start, adds_up=False), round=_TRIAL)
    total, _, left_out = _count(fed, config, ask, start)
    return _begin(config, words, topics.without(left_out, total.counts.sum(axis=1)))


def _begin(config: ConsensusSettings, words: tuple[str, ...], topics: StartTopics) -> ConsensusState:
    counts = topics.merge(config.topics)
    return ConsensusState(0, words, counts, np.zeros_like(counts), symmetric(config.alpha, len(counts)))


def _topic_word(config: ConsensusSettings, state: ConsensusState) -> F64:
    return smooth(_mean(config, state), config.beta)


def plan(config: ConsensusSettings) -> list[Planned]:
    """Everything that will leave a party, for `tertulia check`."""
    charge, pushed = plan_reports(config)
    counts = Derived(COUNTS, parents=("reports",)) if charge else Clear(COUNTS)
    reports = [Planned(train_local, "reports", charge, 1)] if charge else []
    models = [Planned(train_local, "each", mechanism, 1) for mechanism in (pushed, DOCUMENTS)]
    sums = [counts, *([replace(counts, what=HISTOGRAMS)] if config.learn_alpha else [])]
    verb = "each" if config.vouched else "sum"
    together = [Planned(count_together, verb, sum_, config.rounds + config.vouched) for sum_ in sums]
    return [*plan_vocabulary(config.vocabulary), *reports, *models, *together, *plan_evaluation(config)]


def _result(config: ConsensusSettings, state: ConsensusState) -> Trained:
    weights = _mean(config, state).sum(axis=1).astype(np.float64)
    return Trained(Topics(_topic_word(config, state), Vocabulary(state.words), state.alpha, config.beta, weights), {})
