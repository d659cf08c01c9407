"""Settings of FedLDA."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from tertulia.methods.common.settings import MethodSettings, OverWords, Positive, Share, TopicPriors


class FedLDASettings(OverWords, TopicPriors, MethodSettings):
    """FedLDA: topic models from users who trust nobody."""

    name: Literal["fedlda"] = "fedlda"
    mode: Literal["clear", "paper", "sound"] = "clear"
    mechanism: Literal["rrp", "krr", "tkrr", "hm"] = "rrp"  # of `paper`
    channel: Literal["krr", "subset"] = "subset"  # of `sound`
    epsilon: float | None = Field(default=None, gt=0)  # `paper`: of a tuple (hm: of a round); `sound`: of a token
    delta: float = Field(default=0.1, gt=0, lt=1)  # the mass of a topic's deserted tail
    gamma: float | None = Field(default=None, ge=1)  # theorem 1's; None: infinite
    rounds: Positive = 50
    sweeps: Positive = 1  # in each round
    sampler: Literal["gibbs", "mh"] = "gibbs"
    max_words: Positive = 150  # M: a user's words beyond are left out
    sample_ratio: Share = 0.7  # l / M; one tuple is sent at least
    bookkeeping: Literal["converging", "paper"] = "converging"  # a token's word drawn once; `paper`: anew each time
    users_per_round: float = Field(default=1.0, gt=0, le=1)  # share of users who are asked
    user_dropout: Share = 0.0  # share of those whose answer never comes
    arrival_rounds: int = Field(default=0, ge=0)  # users arrive over so many rounds; 0: all are there
    evaluate: bool | None = None  # None: unless the mode is sound, where scores would leave in clear

    @model_validator(mode="after")
    def _private_modes(self) -> FedLDASettings:
        if (self.mode == "clear") == (self.epsilon is not None):
            raise ValueError("an epsilon goes with mode 'paper' or 'sound', and these need one")
        if self.mode == "sound" and self.vocabulary.mode != "public":
            raise ValueError("mode 'sound' needs a public word list (vocabulary.mode = 'public'): proposals tell words")
        if self.mode == "sound" and (self.users_per_round < 1 or self.user_dropout > 0):
            raise ValueError("mode 'sound' asks each user once: leave users_per_round and user_dropout alone")
        return self

    def users(self) -> dict[str, Any]:
        """What users are told of these settings."""
        own = {"name", "topics", "rounds", "sample_ratio", "evaluate", "vocabulary"}
        return {**self.model_dump(exclude=own), "sampled": max(1, round(self.sample_ratio * self.max_words))}

    @property
    def passes(self) -> int:
        """All rounds' sweeps."""
        return self.sweeps * self.rounds
