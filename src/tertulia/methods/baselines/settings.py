"""Settings of the baselines."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from tertulia.methods.common.lda_settings import Sampler, UnitModel, check_seeds_of_lda
from tertulia.methods.common.seeds import NO_SEEDS, STRENGTH, Seeds, SeedStrength
from tertulia.methods.common.settings import (
    AgreedWords,
    AlphaSum,
    Beta,
    LearnAlpha,
    MethodSettings,
    Sweeps,
    TopicCount,
    VocabularySettings,
)


class AloneSettings(MethodSettings):
    """Baselines: each party alone, or all documents in one place."""

    federates = False
    takes_validation = samples_lda = True
    name: Literal["alone", "centralised"] = Field(
        "alone", description="each party alone, or all documents in one place"
    )
    topics: TopicCount = 20
    alpha: AlphaSum = 5.0
    beta: Beta = 0.01
    learn_alpha: LearnAlpha = True
    sweeps: Sweeps = Field(50, description="passes over the documents, in all")
    sampler: Sampler = "auto"
    model: UnitModel = "lda"
    vocabulary: AgreedWords = VocabularySettings()
    seeds: Seeds = NO_SEEDS
    seed_strength: SeedStrength = STRENGTH

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        check_seeds_of_lda(self)
        return self

    @property
    def pools(self) -> bool:
        """Whether all documents are brought to one place."""
        return self.name == "centralised"
