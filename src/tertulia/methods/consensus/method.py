"""Consensus rounds (ours): find first topics together, then count together.

In FTM, parties with similar data may stay in different local optima. In Consensus all parties sample with the same
topics from the beginning. The first topics are found from sums (`start`). In a round the server broadcasts the summed
counts, and each party sweeps over its documents with the counts of all others added to its own (AD-LDA, Newman et al.,
JMLR 2009). The server uses nothing but sums, so secure sums can hide the numbers of single parties.

With `robust`, which judges single parties' contributions, the start is that of FTM: each party trains alone, and the
server merges all local topics, here into exactly K clusters (`merged_start`).

A party sends the difference between its new counts and its counts in the sum (`common.contributions`). The counts of an
absent party stay in the sum until the party replaces them.

The result is the mean over all sweeps of the second half of the rounds, because single draws vary, most of all under
noise. In these rounds a party therefore sends two tables: its counts after the last sweep, and the total of its counts
after each sweep.

The server also learns alpha. The likelihood of alpha needs only histograms of the documents: for each topic, the number
of documents with n tokens of the topic, for each n (`kernels.lda.priors`). The parties' histograms add up to those of
the pooled documents. So each round sums them, too, the server fits alpha to the total, and the next round samples with
it.

In mode `sound`, parties read their documents only through noisy reports, which are charged once. The noise-aware
sampler infers a word for each report, and counts and histograms are of these inferred words. So all questions after the
first one are free.

Two options have their own modules: `robust` leaves out counts that other parties do not support, and `continuing`
begins with an earlier model.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.federation.types import Federation, Party, Planned, step
from tertulia.methods.common.earlier_model import smooth
from tertulia.methods.common.evaluation import Evaluation, plan_evaluation, score
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import LocalTask, plan_reports, train_local
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.rounds import Metrics, TopicsSoFar, Trained, run_rounds
from tertulia.methods.common.seeds import Prior, find_unknown, warn_of_unknown, with_seeds
from tertulia.methods.common.vocabulary import DOCUMENTS, WORD_STEPS, agree, plan_vocabulary
from tertulia.methods.consensus.continuing import begin_with
from tertulia.methods.consensus.contribution import (
    HISTOGRAMS,
    beside_prior,
    checked,
    contribution,
    held_of,
    others_of,
    release,
)
from tertulia.methods.consensus.merged_start import StartTopics
from tertulia.methods.consensus.messages import Agreed, Assigned, ConsensusState, Counting, Counts, Shared
from tertulia.methods.consensus.robust import add_supported, questions, try_out
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.consensus.start import STEPS as START_STEPS
from tertulia.methods.consensus.start import find_topics, plan_start
from tertulia.methods.consensus.sweeps import COUNTS, sweep
from tertulia.methods.consensus.totals import (
    Total,
    add_changes,
    first_state,
    fit_alpha,
    next_state,
    question,
    state_of_expected,
)
from tertulia.models import Topics
from tertulia.privacy.mechanisms import Clear, Derived


@step(doing="counting together", replies="changes")
def count_together(party: Party, state: Any, ask: Shared) -> tuple[Counting, Counts]:
    """Sweep with the counts of all others added, and send the change of the party's own counts."""
    ask = beside_prior(checked(party, ask))
    corpus = party.documents(Vocabulary.of(ask.words), unknown=ask.training.mode == "sound")
    known = state if isinstance(state, Counting) else None  # else the party is new, or has only trained alone
    held = held_of(party, known, ask)
    least = party.min_documents_per_topic
    others, own = others_of(ask, held, corpus, least)
    before = known.latest if known is not None and ask.round > 0 else None
    end = sweep(party, corpus, before, others, ask)
    reply = release(party, contribution(end, corpus, ask, held, own, least), end.mechanism)
    return Counting(Assigned(party.place, ask.round + 1, end.z, end.taken_for), None if ask.singly else held), reply


STEPS = (*WORD_STEPS, *START_STEPS, train_local, count_together, score)


def train(fed: Federation, config: ConsensusSettings, state: ConsensusState | Agreed | None = None) -> Trained:
    """Agree on words, find first topics, then count together."""
    if state is None:
        words = agree(fed, config.vocabulary).words
        warn_of_unknown(find_unknown(config, words))
        state = fed.commit(Agreed(words))
    if isinstance(state, Agreed):
        state = fed.commit(_start(fed, config, state.words))

    def one_round(state: ConsensusState) -> tuple[ConsensusState, Metrics]:
        adds_up = state.round >= _first_kept(config)
        total = _count(fed, config, question(config, state, adds_up), state)
        kept = state.kept + total.added if adds_up else state.kept
        metrics: Metrics = {"left_out": list(total.left_out)} if config.robust else {}
        return next_state(state, total, kept, fit_alpha(config, total, state.alpha)), metrics

    evaluation = Evaluation[ConsensusState](config, partial(_topic_word, config), lambda state: state.alpha)
    return _result(config, run_rounds(fed, config, state, one_round, [evaluation]))


def _start(fed: Federation, config: ConsensusSettings, words: tuple[str, ...]) -> ConsensusState:
    """Find the first topics, as pseudo-counts: from sums, or by merging what parties learned alone."""
    K = config.topics
    if not config.robust:
        return state_of_expected(words, find_topics(fed, config, words), symmetric(config.alpha, K))
    training = config.part(Training, sweeps=config.start_sweeps)
    models = fed.each(train_local, LocalTask(words, training, None, with_sizes=False))  # the counts will give the sizes
    if not models:
        raise InputError("no party trained a model to start from")
    topics = StartTopics.of(models, seeded=len(config.seeds))
    start = first_state(words, merged := topics.merge(K), symmetric(config.alpha, len(merged)))
    merged = try_out(config, topics, start, partial(_count, fed, config)).merge(K)
    return first_state(words, merged, symmetric(config.alpha, len(merged)))


def continue_from(fed: Federation, config: ConsensusSettings, last: Topics) -> ConsensusState:
    """Begin with an earlier model instead of merged topics."""
    words = agree(fed, config.vocabulary, last.vocabulary.words).words
    warn_of_unknown(find_unknown(config, words))
    return begin_with(last, words, config, partial(_count, fed, config))


def _count(fed: Federation, config: ConsensusSettings, ask: Shared, state: ConsensusState) -> Total:
    """Count together once, and add up."""
    if config.robust:
        return add_supported(fed.each(count_together, questions(ask, fed.parties, state.left_out)), ask)
    return add_changes(state, fed.sum(count_together, ask), ask)


def _first_kept(config: ConsensusSettings) -> int:
    """Return the first of the rounds over which counts are averaged."""
    return config.rounds // 2


def _mean(config: ConsensusSettings, state: ConsensusState) -> Array:
    """Return the mean of the kept counts; before any are kept, the counts of the last round."""
    rounds = state.round - _first_kept(config)
    return np.maximum(state.kept / (rounds * config.sweeps) if rounds > 0 else state.counts, 0)


def _topic_word(config: ConsensusSettings, state: ConsensusState) -> F64:
    mean = _mean(config, state)
    prior = Prior.of(config, state.words)
    return smooth(mean if prior is None else mean + prior.counts(len(mean)), config.beta)


def _result(config: ConsensusSettings, state: ConsensusState) -> Trained:
    weights = _mean(config, state).sum(axis=1).astype(np.float64)
    known = weights if weights.any() else None
    topics = Topics(_topic_word(config, state), Vocabulary(state.words), state.alpha, config.beta, known)
    warn_of_unknown(_without_tokens(config, state), "are on the list, and in nobody's documents")
    return Trained(with_seeds(topics, config), {})


def _without_tokens(config: ConsensusSettings, state: ConsensusState) -> list[str]:
    """Return the seed words on the list of which no party has counted a token."""
    prior, tokens = Prior.of(config, state.words), state.counts.sum(axis=0)
    places = () if prior is None else np.unique(np.concatenate(prior.places))
    return [state.words[w] for w in places if tokens[w] <= 0]


def plan(config: ConsensusSettings) -> list[Planned]:
    """List everything that will leave a party, for `tertulia check`."""
    charge, pushed = plan_reports(config.part(Training), len(config.vocabulary.words))
    counts = Derived(COUNTS, parents=("reports",)) if charge else Clear(COUNTS)
    reports = [Planned(train_local, "reports", charge, 1)] if charge else []
    models = [Planned(train_local, "each", mechanism, 1) for mechanism in (pushed, DOCUMENTS)]
    start = [*reports, *models] if config.robust else plan_start(config)
    sums = [counts, *([replace(counts, what=HISTOGRAMS)] if config.learn_alpha else [])]
    verb = "each" if config.robust else "sum"
    together = [Planned(count_together, verb, sum_, config.rounds + config.robust) for sum_ in sums]
    return [*plan_vocabulary(config.vocabulary), *start, *together, *plan_evaluation(config)]


def topics_so_far(config: ConsensusSettings, state: ConsensusState | Agreed) -> TopicsSoFar | None:
    """Return the counts of the last round; None before there are any."""
    if isinstance(state, Agreed):
        return None
    return TopicsSoFar(state.words, state.counts, state.counts.sum(axis=1))
