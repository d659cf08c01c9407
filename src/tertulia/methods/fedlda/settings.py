"""Settings of FedLDA."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from tertulia.federation.types import message
from tertulia.methods.common.continuing import Continuing
from tertulia.methods.common.settings import (
    AlphaLearning,
    Evaluated,
    MethodSettings,
    OverWords,
    Positive,
    Privacy,
    Rounds,
    Settings,
    Share,
    Sweeps,
    TopicPriors,
)
from tertulia.privacy.mechanisms.perturbation import Perturbation


@message
class FedLDAPaper(Settings):
    """Details of the paper that only a reproduction needs."""

    delta: float = Field(0.1, gt=0, lt=1, description="mass of a topic's deserted tail, in `rrp` and `tkrr`")
    gamma: float | None = Field(None, ge=1, description="theorem 1's constant, in `rrp`; None: infinite")
    bookkeeping: Literal["converging", "paper"] = Field(
        "converging",
        description="`converging`: a token's word is drawn once, and its topic moves when it is sent, so that the "
        "server's counts converge. `paper`: drawn anew for each tuple, and all tuples count as sent",
    )
    arrival_rounds: int = Field(
        0, ge=0, description="users arrive over so many rounds; 0: all are there from the beginning"
    )


@message
class UserSettings(Privacy, Sweeps, TopicPriors):
    """What users are asked to do, the same for all: the part of the settings that travels."""

    epsilon: float | None = Field(
        None,
        gt=0,
        description="the privacy parameter: in mode `paper` of one tuple (with `hm`, of one round), in mode `sound` of "
        "one token",
    )
    mechanism: Literal["rrp", "krr", "tkrr", "hm"] = Field("rrp", description="how mode `paper` perturbs tuples")
    channel: Literal["krr", "subset"] = Field("subset", description="how mode `sound` reports a token")
    sweeps: Positive = Field(1, description="passes over a user's words in each round")
    sampler: Literal["gibbs", "mh"] = Field("gibbs", description="`mh`: in constant time per token, for many topics")
    max_words: Positive = Field(150, description="words of a user that count, the first ones (M)")
    sample_ratio: Share = Field(0.7, description="share of M tuples that a user sends, one at least (l / M)")
    users_per_round: float = Field(1.0, gt=0, le=1, description="share of users who are asked in a round")
    user_dropout: Share = Field(0.0, description="share of those whose answer never comes")
    paper: FedLDAPaper = Field(FedLDAPaper(), description="details of the paper that only a reproduction needs")

    @property
    def sampled(self) -> int:
        """The tuples that a user sends in a round, dummies included (l)."""
        return max(1, round(self.sample_ratio * self.max_words))

    def limit_epsilon(self, own: float | None) -> Self:
        """The same with a shard's own epsilon, if that is stricter."""
        if self.epsilon is None or own is None or own >= self.epsilon:
            return self
        return self.replace(epsilon=own)

    def perturbation(self) -> Perturbation:
        """What happens to words."""
        if self.mode == "clear" or self.epsilon is None:
            return Perturbation("none")
        gamma = math.inf if self.paper.gamma is None else self.paper.gamma
        return Perturbation(self.mechanism, self.epsilon, self.paper.delta, gamma)

    @property
    def drawn_once(self) -> bool:
        """Whether a token has the same word in all its reports: a move then takes back what an earlier one gave."""
        return self.paper.bookkeeping == "converging" and self.perturbation().kind in ("rrp", "krr", "tkrr")


class FedLDASettings(Continuing, OverWords, UserSettings, AlphaLearning, Evaluated, Rounds, MethodSettings):
    """FedLDA: topic models from users who trust nobody."""

    name: Literal["fedlda"] = "fedlda"
    learn_alpha: bool = Field(
        False, description="stays false: users' topics would have to leave without noise, so alpha is fixed"
    )
    rounds: Positive = Field(50, description="rounds of sampling at the users and adding up at the server")
    more_rounds: Positive = Field(15)

    @field_validator("learn_alpha")
    @classmethod
    def _alpha_is_fixed(cls, value: bool) -> bool:
        if value:
            raise ValueError("users' topics would have to leave without noise; give `alpha`, which is fixed here")
        return value

    @model_validator(mode="after")
    def _sound_mode(self) -> Self:
        if self.mode == "sound" and self.vocabulary.mode != "public":
            raise ValueError("mode 'sound' needs a public word list (vocabulary.mode = 'public'): proposals show words")
        if self.mode == "sound" and (self.users_per_round < 1 or self.user_dropout > 0):
            raise ValueError("mode 'sound' asks each user once: leave users_per_round and user_dropout alone")
        return self

    @property
    def passes(self) -> int:
        """All rounds' sweeps."""
        return self.sweeps * self.rounds
