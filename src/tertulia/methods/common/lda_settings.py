"""Settings of LDA: on one machine, at a party, and of the methods that sample it at parties."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from tertulia.federation.types import message
from tertulia.methods.common.settings import (
    PARTY,
    Evaluated,
    MethodSettings,
    OverWords,
    Privacy,
    Settings,
    Sweeps,
    TopicPriors,
)


class Sampling(Sweeps, TopicPriors):
    """How LDA is sampled, on one machine or at a party."""

    sampler: Literal["auto", "gibbs", "dense", "sparse", "warp"] = Field(
        "auto",
        description="`auto`: the one that was measured to be fastest for the size of the problem. Mode `sound` knows "
        "`dense`, for LDA also `gibbs` and, with `krr`, `warp`",
    )
    learn_alpha: bool = Field(
        False,
        description="learn each topic's alpha from the documents; not in a federation, where parties' would differ",
    )


class UnitModel(Settings):
    """What has a topic of its own in each document."""

    model: Literal["lda", "sentence"] = Field(
        "lda", description="`lda`: each token has a topic. `sentence`: each sentence has one", json_schema_extra=PARTY
    )


class TokenNoise(Privacy):
    """How tokens are reported under noise."""

    channel: Literal["laplace", "krr", "subset"] = Field(
        "krr",
        description="how mode `sound` reports tokens: `krr`, `subset` (for epsilon below ln V) or `laplace` (for up to "
        "3,000 words); mode `paper` is always Laplace",
    )
    tau: float = Field(
        0.2, ge=0, lt=1, description="the threshold of Laplace reports: smaller values are 0", json_schema_extra=PARTY
    )


@message
class Training(TokenNoise, UnitModel, Sampling):
    """All that a party must know to train a model of its own: the part of a method's settings that travels."""


class LDASettings(OverWords, UnitModel, Sampling, MethodSettings):
    """Settings of every method that samples LDA at parties."""

    takes_validation = True

    @field_validator("learn_alpha")
    @classmethod
    def _alpha_is_given(cls, value: bool) -> bool:
        if value:
            raise ValueError(
                "each party would learn an alpha of its own, which nobody hears of; give `alpha`, or learn it on one "
                "machine with tt.LDA(learn_alpha=True)"
            )
        return value


class PrivateSettings(Evaluated, TokenNoise, LDASettings):
    """Settings of methods that can keep tokens private."""

    @model_validator(mode="after")
    def _sound_mode(self) -> Self:
        if self.mode == "sound" and self.vocabulary.mode != "public":
            raise ValueError("mode 'sound' needs a public word list (vocabulary.mode = 'public'): proposals show words")
        if self.mode == "sound" and self.sampler == "warp" and self.channel != "krr":
            raise ValueError("sampler 'warp' in mode 'sound' needs reports of one word each: channel = 'krr'")
        return self
