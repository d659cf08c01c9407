"""Settings of LDA: on one machine, at a party, and of the methods that sample it at parties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self

from pydantic import BeforeValidator, Field, model_validator

from tertulia.federation.types import message
from tertulia.methods.common.seeds import NO_SEEDS, STRENGTH, Seeded, Seeds, SeedStrength, check_seeds
from tertulia.methods.common.settings import (
    PARTY,
    AlphaSum,
    Beta,
    Epsilon,
    LearnAlpha,
    Mode,
    Settings,
    Sweeps,
    TopicCount,
    VocabularySettings,
    check_epsilon,
    check_word_list,
)

if TYPE_CHECKING:
    from tertulia.kernels.lda.options import Learning


def _renamed_sampler(name: Any) -> Any:
    """Read `dense`, which settings of earlier versions may name, as `auto`; in mode `sound` they are the same."""
    return "auto" if name == "dense" else name


Sampler = Annotated[
    Literal["auto", "blocked", "gibbs", "sparse", "warp"],
    Field(
        description="`auto`: the one that was measured to be fastest for the size of the problem. In mode `sound` "
        "choose `auto`, for LDA also `gibbs` and, with `krr`, `warp`"
    ),
    BeforeValidator(_renamed_sampler),
]
UnitModel = Annotated[
    Literal["lda", "sentence"],
    Field(description="`lda`: each token has a topic. `sentence`: each sentence has one", json_schema_extra=PARTY),
]
Channel = Annotated[
    Literal["laplace", "krr", "subset"],
    Field(
        description="how mode `sound` reports tokens: `krr`, `subset` (for epsilon below ln V) or `laplace` (for up to "
        "3,000 words); mode `paper` is always Laplace"
    ),
]
Threshold = Annotated[
    float,
    Field(ge=0, lt=1, description="the threshold of Laplace reports: smaller values are 0", json_schema_extra=PARTY),
]


@message
class Training(Settings):
    """All that a party must know to train a model of its own: the part of a method's settings that travels."""

    topics: TopicCount = 20
    alpha: AlphaSum = 5.0
    beta: Beta = 0.01
    learn_alpha: LearnAlpha = True
    sweeps: Sweeps = 50
    sampler: Sampler = "auto"
    model: UnitModel = "lda"
    mode: Mode = "clear"
    epsilon: Epsilon = None
    channel: Channel = "krr"
    tau: Threshold = 0.2
    seeds: Seeds = NO_SEEDS
    seed_strength: SeedStrength = STRENGTH

    @model_validator(mode="before")
    @classmethod
    def _alpha_of_the_paper(cls, values: Any) -> Any:
        return fix_alpha_in_paper_mode(values)

    @model_validator(mode="after")
    def _epsilon_with_noise(self) -> Self:
        check_epsilon(self.mode, self.epsilon)
        check_seeds_of_lda(self)
        return self


def fix_alpha_in_paper_mode(values: Any) -> Any:
    """Keep alpha fixed where the paper has it fixed: its samplers are there to be reproduced."""
    if not isinstance(values, dict) or values.get("mode") != "paper":
        return values
    if values.get("learn_alpha"):
        raise ValueError(
            "mode 'paper' is the paper to the letter, and there alpha is fixed: leave `learn_alpha` out, or take "
            "mode 'clear' or 'sound'"
        )
    return {**values, "learn_alpha": False}


class SeededLDA(Seeded, Protocol):
    """Settings of LDA that may have seeds."""

    @property
    def model(self) -> str:
        """Whether tokens or sentences have topics."""


def check_seeds_of_lda(config: SeededLDA, mode: str = "clear") -> None:
    """Raise `ValueError` unless the seeds fit the other settings of LDA at parties."""
    check_seeds(config)
    if config.seeds and config.model != "lda":
        raise ValueError(f"seeds are of tokens, and model '{config.model}' has one topic for a sentence: model = 'lda'")
    if config.seeds and mode == "paper":
        raise ValueError("mode 'paper' is the paper to the letter, which has no seeds: take mode 'clear' or 'sound'")


class Private(Protocol):
    """Settings of a method that can keep tokens private."""

    @property
    def mode(self) -> str:
        """How private documents are kept."""

    @property
    def epsilon(self) -> float | None:
        """The privacy parameter of one token."""

    @property
    def sampler(self) -> str:
        """How LDA is sampled."""

    @property
    def channel(self) -> str:
        """How tokens are reported."""

    @property
    def vocabulary(self) -> VocabularySettings:
        """How parties agree on words."""


def check_private(config: Private) -> None:
    """Raise unless the settings of a method that samples LDA under noise fit together."""
    check_epsilon(config.mode, config.epsilon)
    check_word_list(config.mode, config.vocabulary)
    if config.mode == "sound" and config.sampler == "warp" and config.channel != "krr":
        raise ValueError("sampler 'warp' in mode 'sound' needs reports of one word each: channel = 'krr'")


def learning_of(learn_alpha: bool, sweeps: int | str) -> Learning:
    """Return when alpha is learned: as often as kernels do by default, and at least once for any number of sweeps."""
    from tertulia.kernels.lda.options import Learning

    often = Learning(alpha=learn_alpha)
    return often._replace(every=min(often.every, sweeps)) if isinstance(sweeps, int) else often
