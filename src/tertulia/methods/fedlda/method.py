"""FedLDA: federated LDA for users who trust nobody (Wang, Tong and Shi, AAAI 2020).

N users hold one document each. In every round a user redraws its topics given the broadcast phi, and tells the server
in perturbed tuples (w, k1, k2) which words have moved from one topic to another; the server adds the moves to its
counts. A party is a shard of users: it sums what its users tell, so that the server holds K x V numbers, however many
users there are. Users and their mechanisms are in `users`; algorithm numbers are the paper's.

Departures. Tuples that were not sent are lost to the paper's server, and a word that is perturbed anew takes nothing
back of what was told before: its counts drift. By default a user moves the *reported* topic of a token only when its
tuple was sent, and tells the token by the word that it drew the first time, so the counts converge. phi starts uniform,
which makes first topics random as in algorithm 2, line 1. `mode = "sound"` keeps the promise that RRP breaks: every
token is reported once, whatever the rounds, and topics are learned from the reports by a sampler
that knows the noise.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import numpy as np

from tertulia._arrays import F64, I32, Array
from tertulia.corpus import Vocabulary
from tertulia.errors import ConfigError
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.kernels import noise_aware
from tertulia.kernels.core.rng import derive
from tertulia.kernels.fedlda import tuples
from tertulia.kernels.fedlda.users import MOST_TOPICS, broadcast_phi, resample
from tertulia.kernels.reports import reports
from tertulia.kernels.reports.channel import Channel
from tertulia.methods.common.evaluation import SCORE, perplexity, score
from tertulia.methods.common.result import Trained
from tertulia.methods.common.settings import VocabularySettings
from tertulia.methods.common.vocabulary import agree, plan_vocabulary
from tertulia.methods.fedlda.users import TUPLES, Telling, Users, UserTerms, arrived, newcomers, present, shard_of
from tertulia.methods.ftm.local import REPORTS
from tertulia.methods.ftm.method import DOCUMENTS
from tertulia.models import Topics
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism, Unit
from tertulia.privacy.perturbation import HM_UNIT
from tertulia.privacy.users import UserReports, UserTuples

BYTES, COUNTS = "bytes of users' messages (simulated)", "topic-word counts of reports"


class FedLDATerms(Protocol):
    """What a run's settings say about the method."""

    topics: int
    rounds: int
    evaluate: bool | None
    vocabulary: VocabularySettings

    def users(self) -> dict[str, Any]:
        """The fields of `UserTerms`."""


@message
class Broadcast:
    """What all shards get in a round."""

    words: tuple[str, ...]
    terms: UserTerms
    counts: Array  # [K, V] the server's n_kw
    round: int


@message
class Moves:
    """A shard's reply: what its users' tuples move."""

    moved: Array  # [K, V]; in units of HM_UNIT for the hybrid mechanism
    bytes: Array  # of all messages of users, as encoded
    users: Array  # who answered


@message
class Counts:
    """A shard's counts of the words that reports are taken for."""

    counts: Array  # [K, V]


@message
class Taken:
    """What a shard keeps of its users' reports."""

    z: Array  # [N] -1: the report told nothing of its word
    word: Array  # [N] what each report is taken for
    round: int  # in which the counts were told


@message
class State:
    """What the server keeps."""

    round: int
    words: tuple[str, ...]
    counts: Array  # [K, V]


@step
def local_sampling(party: Party, state: Users | None, ask: Broadcast) -> tuple[Users, Moves]:
    """Algorithm 1, for all users of a shard."""
    terms, threads = ask.terms.no_laxer(party.setting("epsilon", None)), party.setting("threads", 1)
    corpus = party.documents(Vocabulary(ask.words))
    shard = shard_of(corpus, terms.max_words)
    asked, answering = present(corpus.n_documents, ask.round, terms, party.seed)
    phi, alpha = broadcast_phi(ask.counts, terms.beta), _alpha(terms, len(ask.counts))
    users = newcomers(terms, len(shard.words), len(ask.words)) if state is None else state
    z = resample(
        *shard, users.z, asked, phi, alpha, derive(party.seed, 2), terms.sweeps, terms.sampler, threads
    )  # lines 1-4
    sent = tuples.choose(
        *shard, z, users.told, answering, terms.max_words, terms.sampled, derive(party.seed, 3), threads
    )  # lines 5-6
    telling = Telling(terms, shard, dataclasses.replace(users, z=z), answering, sent, phi, alpha, threads)
    moved = party.release(telling.truth, telling.mechanism(_shares(ask.counts, terms.beta)))  # lines 7-8
    if telling.how.kind == "none":
        telling.measure()
    return telling.after(), Moves(
        moved,
        party.release(np.array(telling.bytes), Derived(BYTES, parents=(moved,))),
        party.release(np.array(answering.sum()), DOCUMENTS),
    )


@step
def count_reports(party: Party, state: Taken | None, ask: Broadcast) -> tuple[Taken, Counts]:
    """Sound: sweep over reports that users made when they arrived; they are needed only once."""
    terms = ask.terms.no_laxer(party.setting("epsilon", None))
    corpus = party.documents(Vocabulary(ask.words))
    shard = shard_of(corpus, terms.max_words)
    channel = _channel(terms, len(ask.words))
    randomness = party.randomise(corpus, UserReports(REPORTS, channel=channel, tokens=terms.max_words))
    documents = shard.documents[: arrived(corpus.n_documents, ask.round, terms) + 1]
    made = reports(shard.words, channel, randomness.key, randomness.corpus, 0, int(documents[-1]))
    before = _so_far(state, int(documents[-1]))
    others = np.ascontiguousarray(ask.counts.T, dtype=np.int32)  # [V, K]
    own = _counted(before, others.shape)
    if before.round == ask.round:  # the sum holds this shard's own counts: take them out
        others -= own
    alpha = _alpha(terms, len(ask.counts))
    chain = noise_aware.AwareState(before.z, before.word, own, own.sum(axis=0, dtype=np.int64), alpha, terms.beta)
    if not ask.counts.any():
        chain = noise_aware.init(made, documents, len(ask.words), len(alpha), alpha, terms.beta, party.seed ^ 1)
    chain, _ = noise_aware.run(
        made, documents, chain, terms.sweeps, party.seed, phi="mean", others=others, threads=party.setting("threads", 1)
    )
    counts = party.release(np.ascontiguousarray(chain.cwk.T), Derived(COUNTS, parents=(randomness.release_id,)))
    return Taken(chain.z, chain.word, ask.round + 1), Counts(counts)


def _so_far(state: Taken | None, tokens: int) -> Taken:
    """What is known of the reports that have come by now: nothing yet of new ones."""
    z, word = (np.full(tokens, -1, dtype=np.int32) for _ in range(2))
    if state is not None:
        z[: len(state.z)], word[: len(state.z)] = state.z, state.word
    return Taken(z, word, -1 if state is None else state.round)


def _counted(taken: Taken, shape: tuple[int, ...]) -> I32:
    cells = taken.word[taken.z >= 0].astype(np.int64) * shape[1] + taken.z[taken.z >= 0]
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int32)


def _channel(terms: UserTerms, V: int) -> Channel:
    if terms.epsilon is None:
        raise ConfigError("mode 'sound' needs an epsilon: set method.epsilon")
    return Channel(terms.channel, terms.epsilon, V)


def train(fed: Federation, config: FedLDATerms, state: State | None = None) -> Trained:
    """Algorithm 2: global integration."""
    terms = UserTerms(**config.users())
    if state is None:
        words = agree(fed, config.vocabulary).words
        if not config.topics <= min(len(words), MOST_TOPICS):
            raise ConfigError(f"topics = {config.topics}: at most {MOST_TOPICS}, and no more than {len(words)} words")
        state = fed.commit(State(0, words, np.zeros((config.topics, len(words)))))  # line 1
    while state.round < config.rounds:
        ask = Broadcast(state.words, terms, state.counts, state.round)
        counts, scores = (_from_reports if terms.mode == "sound" else _from_tuples)(fed, ask)
        if _evaluates(config, terms):
            phi = _topic_word(counts, terms.beta)
            scores["perplexity"] = perplexity(fed, state.words, phi, _alpha(terms, len(phi)))
        state = fed.commit(State(state.round + 1, state.words, counts), **scores)
    return _result(terms, state)


def _from_tuples(fed: Federation, ask: Broadcast) -> tuple[F64, dict[str, Any]]:
    """Lines 3-7: the server's counts after the moves of this round."""
    reply = fed.sum(local_sampling, ask)
    unit = HM_UNIT if ask.terms.perturbation().kind == "hm" else 1.0
    users = int(reply.users)
    scores = {"users": users, "bytes_per_user": round(float(reply.bytes) / max(users, 1), 1)}
    return ask.counts + reply.moved * unit, scores


def _from_reports(fed: Federation, ask: Broadcast) -> tuple[F64, dict[str, Any]]:
    return fed.sum(count_reports, ask).counts.astype(np.float64), {}


def plan(config: FedLDATerms) -> list[Planned]:
    """Everything that will leave a shard, for `tertulia check`."""
    terms, rounds = UserTerms(**config.users()), config.rounds
    scores = [Planned(score, "sum", SCORE, rounds)] if _evaluates(config, terms) else []
    first = plan_vocabulary(config.vocabulary)
    if terms.mode == "sound":
        channel = _channel(terms, max(2, len(config.vocabulary.words)))
        charge = UserReports(REPORTS, channel=channel, tokens=terms.max_words)
        counts = Derived(COUNTS, parents=("reports",))
        made = [Planned(count_reports, "reports", charge, 1), Planned(count_reports, "sum", counts, rounds)]
        return [*first, *made, *scores]
    how = terms.perturbation()
    sent: Mechanism = Clear(TUPLES, unit=Unit.USER)
    if how.kind != "none":
        sent = UserTuples(TUPLES, how=how, once=terms.drawn_once)
    told = (sent, Derived(BYTES, parents=(TUPLES,)), DOCUMENTS)
    return [*first, *(Planned(local_sampling, "sum", mechanism, rounds) for mechanism in told), *scores]


def _evaluates(config: FedLDATerms, terms: UserTerms) -> bool:
    return terms.mode != "sound" if config.evaluate is None else config.evaluate


def _alpha(terms: UserTerms, K: int) -> F64:
    return np.full(K, terms.alpha / K)


def _shares(counts: Array, beta: float) -> F64:
    mass = (np.maximum(counts, 0) + beta).sum(axis=1)
    return np.asarray(mass / mass.sum())


def _topic_word(counts: Array, beta: float) -> F64:
    mass = np.maximum(counts, 0) + beta
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _result(terms: UserTerms, state: State) -> Trained:
    phi = _topic_word(state.counts, terms.beta)
    weights = _shares(state.counts, terms.beta)
    return Trained(Topics(phi, Vocabulary(state.words), _alpha(terms, len(phi)), terms.beta, weights), {})
