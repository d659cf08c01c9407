"""Settings of PC-TD."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from tertulia.methods.common.settings import Positive, Settings, VocabularySettings


class PCTDSettings(Settings):
    """Private and consistent topic discovery."""

    name: Literal["pctd"] = "pctd"
    mode: Literal["clear", "paper"] = "clear"
    topics: Positive = 20
    rounds: Positive = 35  # T: iterations of EM
    unit: Literal["ngram", "sentence", "paragraph"] = "ngram"
    unit_words: Positive = 3  # n, of n-grams
    alpha: float = Field(default=5.0, gt=0)  # the sum of the prior with which new documents are folded in
    beta: float = Field(default=0.01, gt=0)  # added to each expected count
    sigma: float | None = Field(default=None, gt=0)  # of `paper`: the deviation of the noise; 0.25 if nothing is said
    epsilon: float | None = Field(default=None, gt=0)  # of `paper`, instead of sigma: real, of one token, all rounds
    delta: float = Field(default=1e-6, gt=0, lt=1)
    noise_on: Literal["all", "held"] = "all"  # of `paper`: words of a unit; only those it holds: epsilon is infinite
    vectors: str | None = None  # a file of word vectors
    relations: str | None = None  # or of pairs of words
    neighbours: Positive = 10  # the nearest words that a word is related to
    min_cosine: float = Field(default=0.5, ge=0, le=1)  # if they are at least so similar
    tau: float = Field(default=0.3, ge=0)  # how hard related words pull
    evaluate: bool = True
    seed: int | None = None  # of the first topics; None: the run's
    vocabulary: VocabularySettings = VocabularySettings()

    @field_validator("mode", mode="before")
    @classmethod
    def _no_sound_mode(cls, value: Any) -> Any:
        if value == "sound":
            raise ValueError(
                "there is no sound mode: the noise is drawn in floating point, and drowns all topics long before "
                "epsilon is small; use 'consensus' or 'ftm' with mode 'sound', or mode 'paper', whose real epsilon "
                "`tertulia privacy` tells"
            )
        return value

    @model_validator(mode="after")
    def _settings_that_exclude_each_other(self) -> PCTDSettings:
        if self.sigma is not None and self.epsilon is not None:
            raise ValueError("sigma and epsilon both say how much noise there is: give one of them")
        if self.mode == "clear" and (self.sigma is not None or self.epsilon is not None):
            raise ValueError("sigma and epsilon go with mode 'paper': in mode 'clear' there is no noise")
        if self.noise_on == "held" and (self.mode == "clear" or self.epsilon is not None):
            raise ValueError("noise_on = 'held' goes with mode 'paper' and a sigma: it keeps no epsilon")
        if self.vectors is not None and self.relations is not None:
            raise ValueError("vectors and relations both say how words relate: give one of them")
        return self
