"""FedLDA: federated LDA for users who trust nobody (Wang, Tong and Shi, AAAI 2020).

N users hold one document each. In every round a user redraws its topics given the broadcast phi, and reports to the
server in perturbed tuples (w, k1, k2) which words have moved from one topic to another; the server adds the moves to
its counts. A party is a shard of users: it sums what its users report, so that the server holds K x V numbers, however
many users there are. Who takes part is in `shard`, what they report in `reporting`; algorithm numbers are the paper's.

Departures. Tuples that were not sent are lost to the paper's server, and a word that is perturbed anew takes nothing
back of what was reported before: its counts drift. By default a user moves the *reported* topic of a token only when
its tuple was sent, and reports the token by the word that it drew the first time, so the counts converge. phi starts
uniform, which makes first topics random as in algorithm 2, line 1. `mode = "sound"` keeps the promise that RRP breaks:
every token is reported once, whatever the rounds, and topics are learned from the reports by a sampler that knows the
noise.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np

from tertulia._arrays import F64, I32, Array
from tertulia._kinds import check_array
from tertulia.corpus import Vocabulary
from tertulia.errors import ConfigError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.kernels import noise_aware
from tertulia.kernels.core.checks import check_assignment, check_counts
from tertulia.kernels.core.rng import derive
from tertulia.kernels.fedlda import tuples
from tertulia.kernels.fedlda.sampling import MOST_TOPICS, broadcast_phi, resample
from tertulia.kernels.reports import reports_of_documents
from tertulia.kernels.reports.channel import Channel
from tertulia.kernels.reports.unknown import listed_reports
from tertulia.methods.common.evaluation import Evaluation, plan_evaluation, score
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.result import Trained
from tertulia.methods.common.rounds import Metrics, run_rounds
from tertulia.methods.common.start import pseudo_counts
from tertulia.methods.common.vocabulary import DOCUMENTS, agree, plan_vocabulary, propose_words
from tertulia.methods.fedlda.reporting import TUPLES, Answers, charge_of, report_perturbed, report_truth, users_after
from tertulia.methods.fedlda.settings import FedLDASettings, UserSettings
from tertulia.methods.fedlda.shard import Users, check_users, count_arrived, draw_participants, initial_users, shard_of
from tertulia.methods.ftm.local import REPORTS
from tertulia.models import Topics
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism, Unit
from tertulia.privacy.mechanisms.perturbation import HYBRID_GRID
from tertulia.privacy.mechanisms.token_reports import UserReports
from tertulia.privacy.mechanisms.user_tuples import UserTuples

MOVES, COUNTS = "topic-word counts of users' tuples", "topic-word counts of reports"


@message
class Broadcast:
    """What all shards get in a round."""

    words: tuple[str, ...]
    settings: UserSettings
    counts: fields.NoisyCounts  # [K, V] the server's n_kw
    round: int


@message
class Moves:
    """A shard's reply: what its users' tuples move."""

    moved: Array  # [K, V]; of the hybrid mechanism in multiples of HYBRID_GRID
    users: Array  # who answered

    def check_reply(self, ask: Broadcast) -> None:
        """Raise unless these are moves between the counts that were asked about."""
        check_array("moved", self.moved, ask.counts.shape)
        check_array("users", self.users, ())


@message
class Counts:
    """A shard's counts of the words that reports are taken for."""

    counts: Array  # [K, V]

    def check_reply(self, ask: Broadcast) -> None:
        """Raise unless these are counts of the words that were asked for."""
        check_array("counts", self.counts, ask.counts.shape, least=0)


@message
class ReportTopics:
    """What a shard keeps of its users' reports."""

    z: Array  # [N] -1: the report says nothing about its word
    word: Array  # [N] what each report is taken for
    round: int  # in which the counts were released


@message
class FedLDAState:
    """What the server keeps."""

    round: int
    words: tuple[str, ...]
    counts: Array  # [K, V]


@step
def local_sampling(party: Party, state: Users | None, ask: Broadcast) -> tuple[Users, Moves]:
    """Algorithm 1, for all users of a shard."""
    settings, threads = ask.settings.limit_epsilon(party.setting("epsilon", None)), party.setting("threads", 1)
    corpus = party.documents(Vocabulary.of(ask.words))
    shard = shard_of(corpus, settings.max_words)
    asked, answering = draw_participants(corpus.n_documents, ask.round, settings, party.seed)
    phi, alpha = broadcast_phi(ask.counts, settings.beta), symmetric(settings.alpha, len(ask.counts))
    users = initial_users(settings, len(shard.words), len(ask.words)) if state is None else state
    check_users(users, len(shard.words), len(ask.counts), len(ask.words))
    z = resample(
        *shard, users.z, asked, phi, alpha, derive(party.seed, 2), settings.sweeps, settings.sampler, threads
    )  # lines 1-4
    sent = tuples.choose(
        *shard, z, users.reported, answering, settings.max_words, settings.sampled, derive(party.seed, 3), threads
    )  # lines 5-6
    model = np.ascontiguousarray(phi[:, : len(alpha)].T, dtype=np.float64)
    answers = Answers(settings, shard, dataclasses.replace(users, z=z), answering, sent, model, alpha)
    mechanism: Mechanism
    if settings.perturbation().kind == "none":
        reported, mechanism = report_truth(answers), Clear(TUPLES, unit=Unit.USER)
    else:
        charge = charge_of(answers, ask.round, _shares(ask.counts, settings.beta))
        randomness = party.randomise(corpus, charge)
        reported = report_perturbed(answers, randomness.key, threads)  # lines 7-8
        mechanism = Derived(MOVES, parents=randomness.parents)
    return users_after(answers, reported.word), Moves(
        party.release(reported.moved, mechanism), party.release(np.array(answering.sum()), DOCUMENTS)
    )


@step
def count_reports(party: Party, state: ReportTopics | None, ask: Broadcast) -> tuple[ReportTopics, Counts]:
    """Sound: sweep over reports that users made when they arrived; none is made twice."""
    settings = ask.settings.limit_epsilon(party.setting("epsilon", None))
    corpus = party.documents(Vocabulary.of(ask.words), unknown=True)
    shard = shard_of(corpus, settings.max_words)
    channel = _channel(settings, len(ask.words))
    randomness = party.randomise(corpus, UserReports(REPORTS, channel=channel, tokens=settings.max_words))
    documents = shard.documents[: count_arrived(corpus.n_documents, ask.round, settings) + 1]
    source = partial(reports_of_documents, *shard, channel, randomness.documents)
    made = listed_reports(source, channel, int(documents[-1]))
    others = np.ascontiguousarray(ask.counts.T, dtype=np.int32)  # [V, K]
    before, heard = _extend(state, int(documents[-1]), others.shape), made.offsets(documents)
    own = _counts_of(before, others.shape)
    if before.round == ask.round:  # the sum holds this shard's own counts: take them out
        others -= own
    check_counts(others)
    alpha = symmetric(settings.alpha, len(ask.counts))
    z, word = made.take(before.z), made.take(before.word)
    chain = noise_aware.AwareState(z, word, own, own.sum(axis=0, dtype=np.int64), alpha, settings.beta)
    if not ask.counts.any():
        chain = noise_aware.init(made.source, heard, len(ask.words), len(alpha), alpha, settings.beta, party.seed ^ 1)
    chain, _ = noise_aware.run(
        made.source, heard, chain, settings.sweeps, party.seed, phi="mean", others=others,
        threads=party.setting("threads", 1),
    )  # fmt: skip
    counts = party.release(np.ascontiguousarray(chain.cwk.T), Derived(COUNTS, parents=randomness.parents))
    return ReportTopics(made.put_back(chain.z), made.put_back(chain.word), ask.round + 1), Counts(counts)


def _extend(state: ReportTopics | None, tokens: int, shape: tuple[int, ...]) -> ReportTopics:
    """The state of all reports that have come by now: nothing is known yet of new ones.

    A state of other words or more topics than are asked for is refused, and one of more reports than there are: users
    do not leave again.
    """
    z, word = (np.full(tokens, -1, dtype=np.int32) for _ in range(2))
    if state is not None:
        for kept, most in ((state.word, shape[0]), (state.z, shape[1])):
            check_assignment(kept, min(len(kept), tokens), most, least=-1)
        z[: len(state.z)], word[: len(state.z)] = state.z, state.word
    return ReportTopics(z, word, -1 if state is None else state.round)


def _counts_of(taken: ReportTopics, shape: tuple[int, ...]) -> I32:
    cells = taken.word[taken.z >= 0].astype(np.int64) * shape[1] + taken.z[taken.z >= 0]
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int32)


def _channel(settings: UserSettings, V: int) -> Channel:
    if settings.epsilon is None:
        raise ConfigError("mode 'sound' needs an epsilon: set method.epsilon")
    return Channel(settings.channel, settings.epsilon, V + 1)  # with UNK


STEPS = (propose_words, local_sampling, count_reports, score)


def train(fed: Federation, config: FedLDASettings, state: FedLDAState | None = None) -> Trained:
    """Algorithm 2: global integration."""
    if state is None:
        words = agree(fed, config.vocabulary).words
        if not config.topics <= min(len(words), MOST_TOPICS):
            raise ConfigError(f"topics = {config.topics}: at most {MOST_TOPICS}, and no more than {len(words)} words")
        state = fed.commit(FedLDAState(0, words, np.zeros((config.topics, len(words)))))  # line 1

    def integrate(state: FedLDAState) -> tuple[FedLDAState, Metrics]:
        ask = Broadcast(state.words, config.part(UserSettings), state.counts, state.round)
        counts, metrics = (_from_reports if config.mode == "sound" else _from_tuples)(fed, ask)
        return FedLDAState(state.round + 1, state.words, counts), metrics

    evaluation = Evaluation[FedLDAState](config, lambda state: _topic_word(state.counts, config.beta))
    return _result(config, run_rounds(fed, config, state, integrate, [evaluation]))


def continue_from(fed: Federation, config: FedLDASettings, last: Topics) -> FedLDAState:
    """Begin with an earlier model's phi instead of a uniform one; topics beyond its own begin uniform."""
    words = agree(fed, config.vocabulary, last.vocabulary.words).words
    counts = np.zeros((config.topics, len(words)))
    counts[: last.n_topics] = pseudo_counts(last, words)
    return FedLDAState(0, words, counts)


def _from_tuples(fed: Federation, ask: Broadcast) -> tuple[F64, Metrics]:
    """Lines 3-7: the server's counts after the moves of this round. With the first what it began with is forgotten."""
    reply = fed.sum(local_sampling, ask)
    grid = HYBRID_GRID if ask.settings.perturbation().kind == "hm" else 1.0
    before = ask.counts if ask.round else np.zeros_like(ask.counts)
    return before + reply.moved * grid, {"users": int(reply.users)}


def _from_reports(fed: Federation, ask: Broadcast) -> tuple[F64, Metrics]:
    return fed.sum(count_reports, ask).counts.astype(np.float64), {}


def plan(config: FedLDASettings) -> list[Planned]:
    """Everything that will leave a shard, for `tertulia check`."""
    scores = plan_evaluation(config)
    replies = _plan_reports(config) if config.mode == "sound" else _plan_tuples(config)
    return [*plan_vocabulary(config.vocabulary), *replies, *scores]


def _plan_reports(config: FedLDASettings) -> list[Planned]:
    channel = _channel(config, max(1, len(config.vocabulary.words)))
    charge = UserReports(REPORTS, channel=channel, tokens=config.max_words)
    counts = Derived(COUNTS, parents=("reports",))
    return [Planned(count_reports, "reports", charge, 1), Planned(count_reports, "sum", counts, config.rounds)]


def _plan_tuples(config: FedLDASettings) -> list[Planned]:
    how, rounds = config.perturbation(), config.rounds
    users = Planned(local_sampling, "sum", DOCUMENTS, rounds)
    if how.kind == "none":
        return [Planned(local_sampling, "sum", Clear(TUPLES, unit=Unit.USER), rounds), users]
    charge = UserTuples(TUPLES, how=how, once=config.drawn_once)
    moves = Derived(MOVES, parents=("reports",))
    return [Planned(local_sampling, "reports", charge, rounds), Planned(local_sampling, "sum", moves, rounds), users]


def _shares(counts: Array, beta: float) -> F64:
    mass = (np.maximum(counts, 0) + beta).sum(axis=1)
    return np.asarray(mass / mass.sum())


def _topic_word(counts: Array, beta: float) -> F64:
    mass = np.maximum(counts, 0) + beta
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _result(config: FedLDASettings, state: FedLDAState) -> Trained:
    phi = _topic_word(state.counts, config.beta)
    weights = _shares(state.counts, config.beta)
    return Trained(Topics(phi, Vocabulary(state.words), symmetric(config.alpha, len(phi)), config.beta, weights), {})
