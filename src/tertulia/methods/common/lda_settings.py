"""Settings of LDA: on one machine, at a party, and of the methods that sample it at parties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from tertulia.federation.types import message
from tertulia.methods.common.continuing import Continuing
from tertulia.methods.common.settings import (
    PARTY,
    AlphaLearning,
    Evaluated,
    MethodSettings,
    OverWords,
    Privacy,
    Settings,
    Sweeps,
    TopicPriors,
)

if TYPE_CHECKING:
    from tertulia.kernels.lda.options import Learning


class Sampling(Sweeps, AlphaLearning, TopicPriors):
    """How LDA is sampled, on one machine or at a party."""

    sampler: Literal["auto", "blocked", "gibbs", "dense", "sparse", "warp"] = Field(
        "auto",
        description="`auto`: the one that was measured to be fastest for the size of the problem. Mode `sound` knows "
        "`dense`, for LDA also `gibbs` and, with `krr`, `warp`",
    )

    @property
    def learning(self) -> Learning:
        """When alpha is learned: as often as kernels think best, and once at least, however few sweeps there are."""
        from tertulia.kernels.lda.options import Learning

        often = Learning(alpha=self.learn_alpha)
        return often._replace(every=min(often.every, self.sweeps)) if isinstance(self.sweeps, int) else often


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


class PrivateSampling(TokenNoise, UnitModel, Sampling):
    """How LDA is sampled at a party that may keep its tokens private."""

    @model_validator(mode="before")
    @classmethod
    def _fixed_in_paper_mode(cls, values: Any) -> Any:
        """Keep alpha fixed where the paper has it fixed: its samplers are there to be reproduced."""
        if not isinstance(values, dict) or values.get("mode") != "paper":
            return values
        if values.get("learn_alpha"):
            raise ValueError(
                "mode 'paper' is the paper to the letter, and there alpha is fixed: leave `learn_alpha` out, or take "
                "mode 'clear' or 'sound'"
            )
        return {**values, "learn_alpha": False}


@message
class Training(PrivateSampling):
    """All that a party must know to train a model of its own: the part of a method's settings that travels."""


class LDASettings(OverWords, UnitModel, Sampling, MethodSettings):
    """Settings of every method that samples LDA at parties."""

    takes_validation = True


class PrivateSettings(Evaluated, PrivateSampling, LDASettings, Continuing):
    """Settings of methods that can keep tokens private."""

    @model_validator(mode="after")
    def _sound_mode(self) -> Self:
        if self.mode == "sound" and self.vocabulary.mode != "public":
            raise ValueError("mode 'sound' needs a public word list (vocabulary.mode = 'public'): proposals show words")
        if self.mode == "sound" and self.sampler == "warp" and self.channel != "krr":
            raise ValueError("sampler 'warp' in mode 'sound' needs reports of one word each: channel = 'krr'")
        return self
