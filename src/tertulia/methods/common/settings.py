"""The ground of all settings: how sections are checked, errors in our words, and what every method says of words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tertulia.errors import ConfigError

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[int, Field(ge=1)]


class Settings(BaseModel):
    """Base of all sections: unknown keys are errors, values are fixed once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Explained(Settings):
    """Settings that users make themselves, with errors in our words."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(explain(error)) from None


def explain(error: ValidationError) -> str:
    """Say which key is wrong, what it holds, and what it should."""
    lines = []
    for problem in error.errors():
        path = problem["loc"]
        if path[:1] == ("method",):  # its second part is the kind of method, no key
            path = (path[0], *path[2:])
        key = ".".join(str(part) for part in path) or "settings"
        if problem["type"] == "extra_forbidden":
            lines.append(f"unknown key '{key}': remove it, or check its spelling")
        elif problem["type"] == "missing":
            lines.append(f"'{key}' is missing: add it")
        else:
            reason = problem["msg"].removeprefix("Value error, ")
            lines.append(f"{key} = {problem['input']!r}: {reason[0].lower()}{reason[1:]}")
    return "; ".join(lines)


class VocabularySettings(Settings):
    """How parties agree on words."""

    mode: Literal["union", "min_parties", "public"] = "union"
    min_parties: Positive = 2
    min_documents: Positive = 2
    max_share: Share = 0.5
    max_words: Positive | None = None
    words: tuple[str, ...] = ()  # mode "public": the word list, or in TOML the path of a file with a word a line

    @model_validator(mode="after")
    def _public_needs_words(self) -> VocabularySettings:
        if (self.mode == "public") != bool(self.words):
            raise ValueError("mode 'public' and a word list `words` go together: give both or neither")
        return self

    @field_validator("words", mode="before")
    @classmethod
    def _words_from_file(cls, value: Any) -> Any:
        if isinstance(value, str | Path):
            from tertulia.corpus.vocabulary import public

            return public(value).words
        return value


class LDASettings(Settings):
    """Settings of every method that samples LDA."""

    topics: Positive = 20
    sweeps: Positive = 50
    alpha: float = Field(default=5.0, gt=0)  # the sum of theta's Dirichlet prior over all topics
    beta: float = Field(default=0.01, gt=0)
    learn_alpha: bool = False  # not in a federation
    sampler: Literal["auto", "gibbs", "dense", "sparse", "warp"] = "auto"
    model: Literal["lda", "sentence"] = "lda"
    vocabulary: VocabularySettings = VocabularySettings()

    @field_validator("learn_alpha")
    @classmethod
    def _alpha_is_given(cls, value: bool) -> bool:
        if value:
            raise ValueError(
                "each party would learn an alpha of its own, which nobody hears of; give `alpha`, or learn it on one "
                "machine with tt.LDA(learn_alpha=True)"
            )
        return value


class PrivateSettings(LDASettings):
    """Settings of methods that can keep tokens private."""

    mode: Literal["clear", "paper", "sound"] = "clear"
    channel: Literal["laplace", "krr", "subset"] = "krr"  # of `sound`; `paper` is Laplace
    epsilon: float | None = Field(default=None, gt=0)  # of one token; for `sound` by substitution
    tau: float = Field(default=0.2, ge=0, lt=1)  # the threshold of Laplace reports
    evaluate: bool | None = None  # None: unless the mode is sound, where scores would leave in clear

    @model_validator(mode="after")
    def _private_modes(self) -> PrivateSettings:
        if (self.mode == "clear") == (self.epsilon is not None):
            raise ValueError("an epsilon goes with mode 'paper' or 'sound', and these need one")
        if self.mode == "sound" and self.vocabulary.mode != "public":
            raise ValueError("mode 'sound' needs a public word list (vocabulary.mode = 'public'): proposals tell words")
        if self.mode == "sound" and self.sampler == "warp" and self.channel != "krr":
            raise ValueError("sampler 'warp' in mode 'sound' needs reports of one word each: channel = 'krr'")
        return self
