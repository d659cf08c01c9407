"""A shard: many users who trust nobody, one document each, in flat arrays; and the draw of a round's participants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import I32, I64, Array, Bool
from tertulia.corpus import Corpus
from tertulia.federation.types import message
from tertulia.kernels.core.checks import check_assignment
from tertulia.kernels.core.rng import derive
from tertulia.kernels.fedlda.sampling import I16, uniforms
from tertulia.methods.fedlda.settings import UserSettings

_ASKED, _DROPPED = 0, 1  # labels of random streams


class Shard(NamedTuple):
    """The users' words, and where each user's begin."""

    words: I32  # [N]
    documents: I64  # [D+1]


def shard_of(corpus: Corpus, M: int) -> Shard:
    """Keep the first M words of each user's document: no user has more tuples, or reports, than that."""
    lengths = corpus.lengths
    if lengths.max(initial=0) <= M:
        return Shard(corpus.words, corpus.documents)
    kept = np.minimum(lengths, M)
    place = np.arange(corpus.n_tokens) - np.repeat(corpus.documents[:-1], lengths)
    return Shard(corpus.words[place < M], np.concatenate(([0], np.cumsum(kept))))


class Spread(NamedTuple):
    """The same words with as much space for each user, so that a user's random numbers depend on no other's length.

    Samplers draw a token's random numbers by its place. Between two users stands one who has the rest of the space, and
    who is not asked.
    """

    place: I64  # [N] of each token
    documents: I64  # [2 D + 1]
    tokens: int

    @classmethod
    def of(cls, shard: Shard, M: int) -> Spread:
        """Give each user M places."""
        documents, lengths = shard.documents, np.diff(shard.documents)
        begins = np.arange(len(lengths)) * M
        place = np.arange(len(shard.words)) + np.repeat(begins - documents[:-1], lengths)
        ends = np.stack((begins, begins + lengths), axis=1).reshape(-1)
        return cls(place, np.concatenate((ends, [len(lengths) * M])), len(lengths) * M)

    def apply(self, sample: Callable[..., I16], words: Array, z: Array, users: Bool, *how: Any) -> I16:
        """Sample the topics of tokens [N] with the words and topics in their places."""
        spread_words, spread_z = np.zeros(self.tokens, words.dtype), np.full(self.tokens, -1, z.dtype)
        spread_words[self.place], spread_z[self.place] = words, z
        asked = np.stack((users, np.zeros_like(users)), axis=1).reshape(-1)
        return sample(spread_words, self.documents, spread_z, asked, *how)[self.place]


@message
class Users:
    """The state of a shard's users."""

    z: Array  # [N] topic of each token, -1 before the first
    reported: Array  # [N] topic under which the server has it, -1: it has not
    word: Array  # [N] word under which the server has it, -1: it has not; empty unless words are drawn once
    answered: int = 0  # users who answered in the last round


def initial_users(settings: UserSettings, tokens: int, V: int) -> Users:
    """Return the state of users who were never asked; a word takes 16 bits where they can hold V."""
    none = np.full(tokens, -1, dtype=np.int16)
    return Users(none, none, np.full(tokens * settings.drawn_once, -1, dtype=np.min_scalar_type(-V)))


def check_users(users: Users, tokens: int, K: int, V: int) -> None:
    """Refuse a state of other tokens, or of a model with more topics or words: kernels trust their indices."""
    for topics in (users.z, users.reported):
        check_assignment(topics, tokens, K, least=-1)
    if len(users.word):
        check_assignment(users.word, tokens, V, least=-1)


def count_arrived(users: int, round_: int, settings: UserSettings) -> int:
    """Count the users who have arrived: they come in order, equally many in each of the first rounds."""
    rounds = settings.paper.arrival_rounds
    return users if rounds == 0 else math.ceil(users * min(1.0, (round_ + 1) / rounds))


def draw_participants(users: int, round_: int, settings: UserSettings, key: int) -> tuple[Bool, Bool]:
    """Draw the users who are asked in this round, and those of them who answer, [D] each."""
    asked = uniforms(users, derive(key, _ASKED)) < settings.users_per_round
    asked[count_arrived(users, round_, settings) :] = False
    return asked, asked & (uniforms(users, derive(key, _DROPPED)) >= settings.user_dropout)
