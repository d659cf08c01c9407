"""The answers of a shard's users in one round, and their state afterwards.

Everything here works on all users of a shard at once. A sum over users leaves, charged for the worst of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I32, I64, Array, Bool, digest_of
from tertulia.kernels.fedlda import tuples
from tertulia.kernels.fedlda.tuples import SentTuples
from tertulia.methods.fedlda.settings import UserSettings
from tertulia.methods.fedlda.shard import Shard, Users
from tertulia.privacy.mechanisms.perturbation import finding_text, heads, hybrid_answers, words_in_heads
from tertulia.privacy.mechanisms.things import thing
from tertulia.privacy.mechanisms.user_tuples import UserTuples

TUPLES = thing("users' tuples", "reports of users' words")


class Answers(NamedTuple):
    """The true answers of a shard's users in one round, and what they are computed from."""

    settings: UserSettings
    shard: Shard
    users: Users  # with the topics of this round
    answering: Bool  # [D]
    sent: SentTuples
    phi: F64  # [K, V] as broadcast
    alpha: F64  # [K]

    def of_tokens(self) -> tuple[Array, ...]:
        """Return what answers are drawn from besides the tuples: users' offsets, who answers, and tokens' columns."""
        users = self.users
        return (self.shard.documents, self.answering, self.shard.words, users.z, users.reported, users.word)

    def with_tokens(self, arrays: tuple[Array, ...]) -> Answers:
        """Return the answers of other users, given by what `of_tokens` returns."""
        documents, answering, words, z, reported, word = arrays
        users = replace(self.users, z=z, reported=reported, word=word)
        return self._replace(shard=Shard(words, documents), answering=answering, users=users)


class Outgoing(NamedTuple):
    """The answers as they leave: perturbed, or as they are."""

    word: I32  # [n] of each tuple
    moved: I64  # [K, V] the sum over users; for the hybrid mechanism in multiples of HYBRID_GRID


def report_truth(answers: Answers) -> Outgoing:
    """Report the answers as they are."""
    return _sum_of_words(answers, answers.sent.word)


def charge_of(answers: Answers, round_: int, shares: F64) -> UserTuples:
    """Return the charge for perturbed answers, for topics of these shares [K] in the data."""
    settings, users = answers.settings, answers.users
    how, once = settings.perturbation(), settings.drawn_once
    finding = finding_text(how, answers.phi, shares, once)
    state = (users.z, users.reported, users.word, answers.answering, answers.sent.token)
    question = digest_of(np.array(round_), answers.phi, answers.alpha, *state)
    return UserTuples(TUPLES, how=how, finding=finding, once=once, question=question)


def report_perturbed(answers: Answers, key: bytes, threads: int = 1) -> Outgoing:
    """Perturb the answers by a secret key, which may serve for these very answers alone."""
    settings, sent = answers.settings, answers.sent
    if settings.mechanism == "hm":
        return Outgoing(sent.word, _hybrid_sum(answers, key))
    if not settings.drawn_once:
        return _sum_of_words(answers, perturb_words(answers, sent, key, threads))
    word = answers.users.word[sent.token].astype(np.int32)
    new = np.flatnonzero(word < 0)  # of tokens that the server does not have yet
    word[new] = perturb_words(answers, SentTuples._make(column[new] for column in sent), key, threads)
    return _sum_of_words(answers, word)


def _sum_of_words(answers: Answers, word: I32) -> Outgoing:
    sent = answers.sent
    origin = np.full_like(sent.origin, -1) if answers.settings.counts_again else sent.origin  # nothing is taken back
    return Outgoing(word, tuples.add_up(word, origin, sent.target, *answers.phi.shape))


def perturb_words(answers: Answers, sent: SentTuples, key: bytes, threads: int = 1) -> I32:
    """Draw the words that are reported in place of these tuples' words [n]."""
    how, phi = answers.settings.perturbation(), answers.phi
    V = phi.shape[1]
    if how.kind == "krr":
        return tuples.perturb_krr(sent.word, how.epsilon, V, key, threads)
    if how.kind == "tkrr":
        return tuples.perturb_tkrr(sent.word, words_in_heads(phi, how.delta), how.epsilon, key, threads)
    users = (answers.shard.documents, answers.users.z)
    return tuples.perturb_rrp(sent, *users, phi, heads(phi, how.delta), answers.alpha, how.eta(V), key, threads)


def _hybrid_sum(answers: Answers, key: bytes) -> I64:
    d, shape = answers.phi.size, (answers.phi.shape[0], answers.phi.shape[1])
    how = answers.settings.perturbation()
    k = how.coordinates(d)
    possible = hybrid_answers(how.epsilon / k)
    thresholds = (np.minimum(np.cumsum(possible.probability, axis=1), 1 - 2.0**-53) * 2.0**64).astype(np.uint64)
    values = np.rint(possible.values * (d / k)).astype(np.int64)  # each coordinate is asked of k users in d
    arrays = (*answers.shard, answers.users.z, answers.users.reported, answers.answering)
    return tuples.answer_hybrid(*arrays, shape, k, values, thresholds, key)


def users_after(answers: Answers, word: Array) -> Users:
    """Return what users keep once their answers, with these words, are sent; a lost answer has reported nothing.

    The paper takes all tuples of an answer for sent. So does the hybrid mechanism, rightly: its answer stands for
    all. Else only the tokens that were sent have another topic, and from the first time on their word.
    """
    settings, users, sent = answers.settings, answers.users, answers.sent
    if settings.paper.bookkeeping != "converging" or settings.perturbation().kind == "hm":
        answered = np.repeat(answers.answering, np.diff(answers.shard.documents))
        return Users(users.z, np.where(answered, users.z, users.reported), users.word)
    reported, kept = np.array(users.reported), np.array(users.word)
    reported[sent.token] = sent.target
    if settings.drawn_once:
        kept[sent.token] = word
    return Users(users.z, reported, kept)
