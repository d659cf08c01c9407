"""Settings of PC-TD."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from tertulia.federation.types import message
from tertulia.methods.common.continuing import Continuing
from tertulia.methods.common.settings import (
    PATH,
    Evaluated,
    MethodSettings,
    OverWords,
    Positive,
    Privacy,
    Rounds,
    Seeded,
    Settings,
)


@message
class PCTDPaper(Settings):
    """Details of the paper that only a reproduction needs."""

    noise_on: Literal["all", "held"] = Field(
        "all",
        description="words of a unit whose counts get noise; `held`: only those that it holds, the other reading of "
        "(4), whose epsilon is infinite",
    )


@message
class UnitSettings(Settings):
    """What has one topic."""

    unit: Literal["ngram", "sentence", "paragraph"] = Field(
        "ngram", description="what has one topic: n-grams within a sentence, sentences or paragraphs"
    )
    unit_words: Positive = Field(3, description="words of an n-gram")


@message
class UnitNoise(Rounds, Privacy):
    """How noisy the counts of words in units are."""

    mode: Literal["clear", "paper"] = Field(
        "clear",
        description="`clear`: no noise. `paper`: Gaussian noise on the word counts of units. There is no `sound`",
    )
    rounds: Positive = Field(35, description="iterations of EM (T)")
    sigma: float | None = Field(
        None, gt=0, description="standard deviation of the noise, for mode `paper`; None: 0.25, unless epsilon is given"
    )
    epsilon: float | None = Field(
        None, gt=0, description="instead of sigma: the real privacy parameter of one token, over all rounds"
    )
    delta: float = Field(
        1e-6,
        gt=0,
        lt=1,
        description="the other privacy parameter, for which epsilon holds",
        json_schema_extra={"party": "its own delta, at which its own epsilon holds; the method's, if that is smaller"},
    )
    paper: PCTDPaper = Field(PCTDPaper(), description="details of the paper that only a reproduction needs")

    @field_validator("mode", mode="before")
    @classmethod
    def _no_sound_mode(cls, value: Any) -> Any:
        if value == "sound":
            raise ValueError(
                "there is no sound mode: the noise is drawn in floating point, and drowns all topics long before "
                "epsilon is small; use 'consensus' or 'ftm' with mode 'sound', or mode 'paper', whose real epsilon "
                "`tertulia privacy` shows"
            )
        return value

    @model_validator(mode="after")
    def _epsilon_with_noise(self) -> UnitNoise:
        if self.sigma is not None and self.epsilon is not None:
            raise ValueError("sigma and epsilon both say how much noise there is: give one of them")
        if self.mode == "clear" and (self.sigma is not None or self.epsilon is not None):
            raise ValueError("sigma and epsilon go with mode 'paper': in mode 'clear' there is no noise")
        if self.paper.noise_on == "held" and (self.mode == "clear" or self.epsilon is not None):
            raise ValueError("paper.noise_on = 'held' goes with mode 'paper' and a sigma: it keeps no epsilon")
        return self


class PCTDSettings(Continuing, OverWords, Seeded, UnitNoise, Evaluated, UnitSettings, MethodSettings):
    """Private and consistent topic discovery."""

    name: Literal["pctd"] = "pctd"
    more_rounds: Positive = Field(10)
    vectors: str | None = Field(
        None,
        description="a file of word vectors, by which words are related: GloVe or word2vec text, `.bin` (word2vec), "
        "`.npz` (`words`, `vectors`), also `.gz`",
        json_schema_extra=PATH,
    )
    relations: str | None = Field(
        None,
        description="instead: a file of related words, `word<TAB>word<TAB>strength`",
        json_schema_extra=PATH,
    )
    neighbours: Positive = Field(10, description="nearest words that a word is related to, with `vectors`")
    min_cosine: float = Field(0.5, ge=0, le=1, description="if they are at least so similar")
    tau: float = Field(
        0.3,
        ge=0,
        description="how hard related words pull each other up; without `vectors` or `relations` nothing does",
    )

    @model_validator(mode="after")
    def _one_source_of_relations(self) -> PCTDSettings:
        if self.vectors is not None and self.relations is not None:
            raise ValueError("vectors and relations both say how words relate: give one of them")
        return self

    @property
    def passes(self) -> int:
        """Each iteration passes over the documents once."""
        return self.rounds
