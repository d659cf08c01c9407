"""FedLDA: federated LDA for users who trust nobody (Wang, Tong and Shi, AAAI 2020).

N users hold one document each. In every round a user samples the topics of its tokens again, given the broadcast phi.
It then sends perturbed tuples (w, k1, k2): word w has moved from topic k1 to topic k2. The server adds the moves to its
counts. A party is a shard of users. It sums its users' tuples, so that the server stores K x V numbers for any number
of users. `shard` draws participants, and `answers` makes their reports. Algorithm numbers are the paper's.

Departures from the paper. The paper's server never learns of moves whose tuples were not sent. When a word is perturbed
again, its new tuple does not cancel the earlier one. So the paper's counts drift. Here, by default, a user changes the
*reported* topic of a token only when its tuple was sent, and reports the token in all rounds by the perturbed word that
it drew first. So the counts converge. phi starts uniform, which makes first topics random as in algorithm 2, line 1.

`mode = "sound"` keeps the privacy promise that RRP breaks. Every token is reported once for all rounds, and a sampler
that knows the noise learns topics from the reports. A shard then sends the difference between its new counts and its
counts at the server (tuples are differences already), so the contribution of an absent shard stays.

Algorithm 2, lines 6-7, can be read in two ways. `paper.bookkeeping = "paper"` adds the moves up, as tuples that name
k1, counters that are initialised and errors that accumulate (section 5) require. `"frequencies"` takes the counts from
each round's tuples alone, as line 7's assignment and "the frequency of words under each topic in U_i" (section 4) say.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Annotated, Any

import numpy as np

from tertulia._arrays import F64, I32, Array
from tertulia.corpus import Vocabulary
from tertulia.errors import ConfigError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Place, Planned, message, step
from tertulia.kernels import noise_aware
from tertulia.kernels.core.checks import check_assignment
from tertulia.kernels.core.rng import derive
from tertulia.kernels.fedlda import tuples
from tertulia.kernels.fedlda.sampling import MOST_TOPICS, broadcast_phi, resample
from tertulia.kernels.reports import reports_of_documents
from tertulia.kernels.reports.preparation import listed_reports
from tertulia.methods.common.contributions import check_not_counted, counted_or_none
from tertulia.methods.common.earlier_model import pseudo_counts
from tertulia.methods.common.evaluation import Evaluation, plan_evaluation, score
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.rounds import Metrics, TopicsSoFar, Trained, run_rounds
from tertulia.methods.common.vocabulary import DOCUMENTS, WORD_STEPS, agree, plan_vocabulary
from tertulia.methods.fedlda.answers import TUPLES, Answers, charge_of, report_perturbed, report_truth, users_after
from tertulia.methods.fedlda.settings import FedLDASettings, UserSettings
from tertulia.methods.fedlda.shard import (
    Spread,
    Users,
    check_users,
    count_arrived,
    draw_participants,
    initial_users,
    shard_of,
)
from tertulia.methods.fedlda.user_budget import check_total, reports_of_user
from tertulia.models import Topics
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism, Unit
from tertulia.privacy.mechanisms.perturbation import HYBRID_GRID
from tertulia.privacy.mechanisms.user_tuples import UserTuples

MOVES, COUNTS = "topic-word counts of users' tuples", "topic-word counts of reports"


UserChange = Annotated[Array, fields.Numbers((), "iu")]


@message
class Broadcast:
    """The question of a round to all shards."""

    words: fields.Words
    settings: UserSettings
    counts: fields.NoisyCounts  # [K, V] the server's n_kw
    round: fields.Round


@message
class Moves:
    """A shard's reply: the changes of counts by its users' tuples."""

    moved: fields.CountChange  # [K, V]; with the hybrid mechanism in multiples of HYBRID_GRID
    users: UserChange  # the number of users who answered, minus that of the reply before


@message
class Counts:
    """A shard's new counts of the words inferred from reports, minus its counts at the server."""

    counts: fields.CountChange  # [K, V]


@message
class Taken:
    """The words and topics inferred from a shard's reports, at the time when it sent their counts."""

    place: Place  # the place of the question
    z: Array  # [N] the topic of each report; -1: the report carries no information about its word
    word: Array  # [N] the word inferred from each report


@message
class ReportTopics:
    """A shard's state: the topics of its users' reports."""

    latest: Taken
    counted: Taken | None  # this shard's part of the server's counts when it sent its latest


@message
class FedLDAState:
    """The server's state."""

    round: int
    words: tuple[str, ...]
    counts: Array  # [K, V]
    users: int = 0  # who answered, by the last reply of each shard


@step(doing="sampling", replies="changes")
def local_sampling(party: Party, state: Users | None, ask: Broadcast) -> tuple[Users, Moves]:
    """Run Algorithm 1 for all users of a shard."""
    settings, threads = ask.settings.limit_epsilon(party.setting("epsilon", None)), party.setting("threads", 1)
    corpus = party.documents(Vocabulary.of(ask.words))
    shard = shard_of(corpus, settings.max_words)
    asked, answering = draw_participants(corpus.n_documents, ask.round, settings, party.seed)
    phi, alpha = broadcast_phi(ask.counts, settings.beta), symmetric(settings.alpha, len(ask.counts))
    if state is None:
        check_not_counted(party)  # it could no longer undo the moves of its users
    users = initial_users(settings, len(shard.words), len(ask.words)) if state is None else state
    check_users(users, len(shard.words), len(ask.counts), len(ask.words))
    how: Any = (phi, alpha, derive(party.seed, 2), settings.sweeps, settings.sampler, threads)
    if settings.perturbation().kind == "hm":  # what it promises a user must hold for all answers together
        z = Spread.of(shard, settings.max_words).apply(resample, shard.words, users.z, asked, *how)  # lines 1-4
    else:
        z = resample(*shard, users.z, asked, *how)  # lines 1-4
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
        randomness = party.randomise(corpus, charge, answers.of_tokens())
        drawn = answers.with_tokens(randomness.drawn_from)
        reported = report_perturbed(drawn, randomness.key, threads)  # lines 7-8
        mechanism = Derived(MOVES, parents=randomness.parents)
    after = dataclasses.replace(users_after(answers, reported.word), answered=int(answering.sum()))
    return after, Moves(
        party.release(reported.moved, mechanism), party.release(np.array(after.answered - users.answered), DOCUMENTS)
    )


@step(doing="counting reports", replies="changes")
def count_reports(party: Party, state: ReportTopics | None, ask: Broadcast) -> tuple[ReportTopics, Counts]:
    """Sweep over reports (mode `sound`). A user makes its reports once, in its first round."""
    settings = ask.settings.limit_epsilon(party.setting("epsilon", None))
    corpus = party.documents(Vocabulary.of(ask.words), unknown=True)
    check_total(corpus, settings)
    charge = reports_of_user(settings, len(ask.words))
    shard, channel = shard_of(corpus, charge.tokens), charge.channel
    randomness = party.randomise(corpus, charge, tuple(shard))
    documents = shard.documents[: count_arrived(corpus.n_documents, ask.round, settings) + 1]
    own_words, users = randomness.drawn_from
    source = partial(reports_of_documents, own_words, users, channel, randomness.documents)
    reports = listed_reports(source, channel, int(documents[-1]))
    others = np.ascontiguousarray(ask.counts.T, dtype=np.int32)  # [V, K]
    latest, held = (None if state is None else state.latest), counted_or_none(party, state)
    z, word = _extend(latest, int(documents[-1]), others.shape)
    own = _counts_of(z, word, others.shape)
    held_counts = _counts_of(*_extend(held, 0 if held is None else len(held.z), others.shape), others.shape)
    others = np.maximum(others - held_counts, 0)  # negative if another shard subtracted too much
    alpha, offsets = symmetric(settings.alpha, len(ask.counts)), reports.offsets(documents)
    z, word = reports.take(z), reports.take(word)
    chain = noise_aware.AwareState(z, word, own, own.sum(axis=0, dtype=np.int64), alpha, settings.beta)
    if not ask.counts.any():
        chain = noise_aware.init(
            reports.source, offsets, len(ask.words), len(alpha), alpha, settings.beta, party.seed ^ 1
        )
    chain, _ = noise_aware.run(
        reports.source, offsets, chain, settings.sweeps, party.seed, phi="mean", others=others,
        threads=party.setting("threads", 1),
    )  # fmt: skip
    change = np.ascontiguousarray((chain.cwk - held_counts).T)
    taken = Taken(party.place, reports.put_back(chain.z), reports.put_back(chain.word))
    return ReportTopics(taken, held), Counts(party.release(change, Derived(COUNTS, parents=randomness.parents)))


def _extend(taken: Taken | None, tokens: int, shape: tuple[int, ...]) -> tuple[I32, I32]:
    """Return topics and words of all reports so far; those of new reports are unknown (-1).

    Raise if the state names a word or topic beyond `shape`, or has more reports than there are now: users never leave.
    """
    z, word = (np.full(tokens, -1, dtype=np.int32) for _ in range(2))
    if taken is not None:
        for kept, most in ((taken.word, shape[0]), (taken.z, shape[1])):
            check_assignment(kept, min(len(kept), tokens), most, least=-1)
        z[: len(taken.z)], word[: len(taken.z)] = taken.z, taken.word
    return z, word


def _counts_of(z: I32, word: I32, shape: tuple[int, ...]) -> I32:
    cells = word[z >= 0].astype(np.int64) * shape[1] + z[z >= 0]
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int32)


STEPS = (*WORD_STEPS, local_sampling, count_reports, score)


def train(fed: Federation, config: FedLDASettings, state: FedLDAState | None = None) -> Trained:
    """Run Algorithm 2: global integration."""
    if state is None:
        words = agree(fed, config.vocabulary).words
        if not config.topics <= min(len(words), MOST_TOPICS):
            raise ConfigError(f"topics = {config.topics}: at most {MOST_TOPICS}, and no more than {len(words)} words")
        state = fed.commit(FedLDAState(0, words, np.zeros((config.topics, len(words)))))  # line 1

    def integrate(state: FedLDAState) -> tuple[FedLDAState, Metrics]:
        ask = Broadcast(state.words, config.part(UserSettings), state.counts, state.round)
        if config.mode == "sound":
            return FedLDAState(state.round + 1, state.words, _from_reports(fed, ask)), {}
        counts, more = _from_tuples(fed, ask)
        users = state.users + more
        return FedLDAState(state.round + 1, state.words, counts, users), {"users": users}

    evaluation = Evaluation[FedLDAState](config, lambda state: _topic_word(state.counts, config.beta))
    return _result(config, run_rounds(fed, config, state, integrate, [evaluation]))


def continue_from(fed: Federation, config: FedLDASettings, last: Topics) -> FedLDAState:
    """Begin with an earlier model's phi instead of a uniform one; additional topics begin uniform."""
    words = agree(fed, config.vocabulary, last.vocabulary.words).words
    counts = np.zeros((config.topics, len(words)))
    counts[: last.n_topics] = pseudo_counts(last, words)
    return FedLDAState(0, words, counts)


def _from_tuples(fed: Federation, ask: Broadcast) -> tuple[F64, int]:
    """Add the moves of this round to the server's counts, or replace these (lines 3-7); also count new answers."""
    reply = fed.sum(local_sampling, ask)
    grid = HYBRID_GRID if ask.settings.perturbation().kind == "hm" else 1.0
    before = np.zeros_like(ask.counts) if ask.settings.counts_again else _contributed(ask)
    return before + reply.moved * grid, int(reply.users)


def _from_reports(fed: Federation, ask: Broadcast) -> F64:
    return np.asarray(_contributed(ask) + fed.sum(count_reports, ask).counts.astype(np.float64))


def _contributed(ask: Broadcast) -> F64:
    """Return the shards' contributions before this round. The first round has none, even with an earlier model."""
    return np.asarray(ask.counts if ask.round else np.zeros_like(ask.counts))


def plan(config: FedLDASettings) -> list[Planned]:
    """List everything that will leave a shard, for `tertulia check`."""
    scores = plan_evaluation(config)
    replies = _plan_reports(config) if config.mode == "sound" else _plan_tuples(config)
    return [*plan_vocabulary(config.vocabulary), *replies, *scores]


def _plan_reports(config: FedLDASettings) -> list[Planned]:
    charge = reports_of_user(config.part(UserSettings), max(1, len(config.vocabulary.words)))
    counts = Derived(COUNTS, parents=("reports",))
    return [Planned(count_reports, "reports", charge, 1), Planned(count_reports, "sum", counts, config.rounds)]


def _plan_tuples(config: FedLDASettings) -> list[Planned]:
    settings, rounds = config.part(UserSettings), config.rounds
    how = settings.perturbation()
    users = Planned(local_sampling, "sum", DOCUMENTS, rounds)
    if how.kind == "none":
        return [Planned(local_sampling, "sum", Clear(TUPLES, unit=Unit.USER), rounds), users]
    charge = UserTuples(TUPLES, how=how, once=settings.drawn_once)
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


def topics_so_far(config: FedLDASettings, state: FedLDAState) -> TopicsSoFar:
    """Return the server's counts."""
    return TopicsSoFar(state.words, state.counts, state.counts.sum(axis=1))
