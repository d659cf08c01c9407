"""A shard of users who trust nobody: who takes part in a round, and what they tell instead of the truth.

A party of FedLDA holds many users, one document each, in flat arrays. Everything here works on all of them at once;
what leaves is a sum over users, charged for the worst of them.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array, Bool
from tertulia.corpus import Corpus
from tertulia.federation.types import message
from tertulia.kernels.core.rng import derive
from tertulia.kernels.fedlda import tuples
from tertulia.kernels.fedlda.packing import packed_bytes, ranks
from tertulia.kernels.fedlda.tuples import Sent
from tertulia.kernels.fedlda.users import Sampler, chances
from tertulia.privacy.mechanisms import Clear, Mechanism, Unit
from tertulia.privacy.perturbation import Kind, Perturbation, covered, heads, hybrid, real_finding
from tertulia.privacy.users import UserTuples

TUPLES = "users' tuples"
Bookkeeping = Literal["converging", "paper"]
_WORDED: tuple[Kind, ...] = ("rrp", "krr", "tkrr")  # whose tuples name a word
_ASKED, _DROPPED = 0, 1  # labels of random streams


@message
class UserTerms:
    """What users are asked to do, the same for all."""

    mode: Literal["clear", "paper", "sound"]
    mechanism: Kind
    channel: Literal["krr", "subset"]
    epsilon: float | None
    delta: float
    gamma: float | None  # None: infinite
    sweeps: int
    sampler: Sampler
    alpha: float  # sum of theta's prior
    beta: float
    max_words: int  # M
    sampled: int  # l
    bookkeeping: Bookkeeping
    users_per_round: float
    user_dropout: float
    arrival_rounds: int

    def no_laxer(self, epsilon: float | None) -> UserTerms:
        """The same with a shard's own epsilon, if that is stricter."""
        if self.epsilon is None or epsilon is None or epsilon >= self.epsilon:
            return self
        return dataclasses.replace(self, epsilon=epsilon)

    def perturbation(self) -> Perturbation:
        """What happens to words."""
        if self.mode == "clear" or self.epsilon is None:
            return Perturbation("none")
        return Perturbation(self.mechanism, self.epsilon, self.delta, math.inf if self.gamma is None else self.gamma)

    @property
    def drawn_once(self) -> bool:
        """Whether a token is told by the same word in all rounds: a move then takes back what an earlier one gave."""
        return self.bookkeeping == "converging" and self.perturbation().kind in _WORDED


@message
class Users:
    """What the users of a shard keep."""

    z: Array  # [N] topic of each token, -1 before the first
    told: Array  # [N] topic under which the server has it, -1: it has not
    word: Array  # [N] word under which the server has it, -1: it has not; empty unless words are drawn once


def newcomers(terms: UserTerms, tokens: int, V: int) -> Users:
    """Users who were never asked; a word takes 16 bits where they can hold V."""
    none = np.full(tokens, -1, dtype=np.int16)
    return Users(none, none, np.full(tokens * terms.drawn_once, -1, dtype=np.min_scalar_type(-V)))


class Shard(NamedTuple):
    """The users' words, and where each user's begin."""

    words: I32  # [N]
    documents: I64  # [D+1]


def shard_of(corpus: Corpus, M: int) -> Shard:
    """The first M words of each user's document: no user has more tuples, or reports, than that."""
    lengths = corpus.lengths
    if lengths.max(initial=0) <= M:
        return Shard(corpus.words, corpus.documents)
    kept = np.minimum(lengths, M)
    place = np.arange(corpus.n_tokens) - np.repeat(corpus.documents[:-1], lengths)
    return Shard(corpus.words[place < M], np.concatenate(([0], np.cumsum(kept))))


def arrived(users: int, round_: int, terms: UserTerms) -> int:
    """How many users are there by now: they come in order, as many in each of the first rounds."""
    if terms.arrival_rounds == 0:
        return users
    return math.ceil(users * min(1.0, (round_ + 1) / terms.arrival_rounds))


def present(users: int, round_: int, terms: UserTerms, key: int) -> tuple[Bool, Bool]:
    """Who is asked in this round, and who of them answers, [D] each."""
    asked = chances(users, derive(key, _ASKED)) < terms.users_per_round
    asked[arrived(users, round_, terms) :] = False
    return asked, asked & (chances(users, derive(key, _DROPPED)) >= terms.user_dropout)


class Telling:
    """What the users of a shard tell in one round, once their secret key is known; and in how many bytes."""

    def __init__(
        self, terms: UserTerms, shard: Shard, users: Users, answering: Bool, sent: Sent, phi: F32, alpha: F64,
        threads: int,
    ) -> None:  # fmt: skip
        self.terms, self.shard, self.users, self.answering, self.sent = terms, shard, users, answering, sent
        self.phi = np.ascontiguousarray(phi[:, : len(alpha)].T, dtype=np.float64)  # [K, V]
        self.alpha, self.threads, self.how = alpha, threads, terms.perturbation()
        self.word = sent.word  # as told
        self.bytes = 0  # of all users' messages

    @property
    def truth(self) -> I64:
        """The sum of the true tuples, [K, V]."""
        return tuples.add_up(self.sent.word, self.sent.origin, self.sent.target, *self.phi.shape)

    def mechanism(self, shares: F64) -> Mechanism:
        """The way out, for topics of these shares [K] in the data."""
        if self.how.kind == "none":
            return Clear(TUPLES, unit=Unit.USER)
        once = self.terms.drawn_once
        found = finding(self.how, self.phi, shares, once)
        return UserTuples(TUPLES, how=self.how, tell=self.tell, finding=found, once=once)

    def tell(self, key: bytes) -> I64:
        """The sum of what is told, [K, V]."""
        if self.how.kind == "hm":
            return self._hybrid(key)
        self.word = self._words(key)
        self.measure()
        return tuples.add_up(self.word, self.sent.origin, self.sent.target, *self.phi.shape)

    def measure(self) -> None:
        """Encode every user's tuples and count the bytes, which no wire carries: the shard simulates its users."""
        _, rank = ranks(self.phi.T)
        moves = (self.sent.user, self.word, self.sent.origin, self.sent.target)
        self.bytes = packed_bytes(*moves, rank, self.terms.sampled, int(self.answering.sum()))

    def after(self) -> Users:
        """What users keep when their answers are out; one whose answer never came has told nothing.

        The paper takes all tuples of an answer for sent. So does the hybrid mechanism, rightly: its answer stands for
        all. Else only the tokens that were sent have another topic, and from the first time on their word.
        """
        z, told, word = self.users.z, self.users.told, self.users.word
        if self.terms.bookkeeping == "paper" or self.how.kind == "hm":
            return Users(z, np.where(np.repeat(self.answering, np.diff(self.shard.documents)), z, told), word)
        told, word = np.array(told), np.array(word)
        told[self.sent.token] = self.sent.target
        if self.terms.drawn_once:
            word[self.sent.token] = self.word
        return Users(z, told, word)

    def _words(self, key: bytes) -> I32:
        """The words that are told, [n]: drawn anew, or only for the tokens that the server does not have yet."""
        if not self.terms.drawn_once:
            return perturbed(self, self.sent, key)
        word = self.users.word[self.sent.token].astype(np.int32)
        new = np.flatnonzero(word < 0)
        word[new] = perturbed(self, Sent._make(column[new] for column in self.sent), key)
        return word

    def _hybrid(self, key: bytes) -> I64:
        d, shape = self.phi.size, (self.phi.shape[0], self.phi.shape[1])
        k = self.how.coordinates(d)
        answers = hybrid(self.how.epsilon / k)
        thresholds = (np.minimum(np.cumsum(answers.probability, axis=1), 1 - 2.0**-53) * 2.0**64).astype(np.uint64)
        values = np.rint(answers.values * (d / k)).astype(np.int64)  # each coordinate is asked of k users in d
        bits = k * ((d - 1).bit_length() + (len(answers.values) - 1).bit_length())
        self.bytes = int(self.answering.sum()) * ((bits + 7) // 8)
        arrays = (*self.shard, self.users.z, self.users.told, self.answering)
        return tuples.tell_hybrid(*arrays, shape, k, values, thresholds, key)


def perturbed(telling: Telling, sent: Sent, key: bytes) -> I32:
    """What is told instead of the words of these tuples, drawn from a secret key."""
    how, phi, threads = telling.how, telling.phi, telling.threads
    V = phi.shape[1]
    if how.kind == "krr":
        return tuples.tell_krr(sent.word, how.epsilon, V, key, threads)
    if how.kind == "tkrr":
        return tuples.tell_tkrr(sent.word, covered(phi, how.delta), how.epsilon, key, threads)
    users = (telling.shard.documents, telling.users.z)
    return tuples.tell_rrp(sent, *users, phi, heads(phi, how.delta), telling.alpha, how.eta(V), key, threads)


def finding(how: Perturbation, phi: Array, shares: F64, once: bool) -> str:
    """What the mechanism really gives a word, with the model at hand: drawn once a token, or anew for each tuple."""
    V = phi.shape[1]
    if how.kind == "hm":
        return f"the whole updating vector: epsilon {how.epsilon:g} in each round"
    whose = "the word of one token alone, drawn once" if once else "the word of one tuple alone, drawn anew each time"
    if how.kind == "krr":
        return f"{whose}: epsilon {how.epsilon:g}"
    if how.kind == "tkrr":
        return f"{whose}: epsilon {how.epsilon:g}; told are {int(covered(phi, how.delta).sum())} of {V} words"
    true = real_finding(how, phi, shares)
    epsilon = "no epsilon" if math.isinf(true.epsilon) else f"epsilon {true.epsilon:.1f}"
    return (
        f"theorem 1 fails for {true.broken} of {V} words, {true.uncovered} are in no topic's head; {whose}, of a user "
        f"with average topics: {epsilon} at delta 0, delta {true.delta:.3f} at the claimed epsilon"
    )
