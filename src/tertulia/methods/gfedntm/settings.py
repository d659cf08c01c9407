"""Settings of neural topic models, trained together or on one machine."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from tertulia.methods.common.settings import MethodSettings, Positive, Share, TopicCount, VocabularySettings


class NeuralVocabulary(VocabularySettings):
    """How parties agree on words for a neural model, whose topics lose coherence when many words are rare."""

    max_words: Positive | None = 2000


class NeuralSettings(TopicCount):
    """Settings of every neural model, trained together or on one machine."""

    hidden: tuple[Positive, ...] = Field(default=(100, 100), min_length=1)
    dropout: float = Field(default=0.2, ge=0, lt=1)
    alpha: float = Field(default=1.0, gt=0)  # of each topic: theta's Dirichlet prior
    learn_prior: bool = True
    literal_adapter: bool = False  # CombinedTM as published, with an E x V layer before the first
    embedding: str | None = None  # the folder of a sentence-transformers model; None: the one that comes with us
    precision: Literal["float32", "float64"] = "float32"
    batch_size: int = Field(default=64, ge=2)  # documents in a step, all parties' together
    epochs: Positive | None = None  # at most; None: until the loss stalls (`stop_after`), 500 at most
    learning_rate: float = Field(default=0.002, gt=0)
    betas: tuple[Share, Share] = (0.99, 0.99)
    validation: float = Field(default=0.0, ge=0, lt=1)  # share of documents that only tell when to stop; 0: no stopping
    stop_after: Positive = 20  # epochs whose loss must beat that of as many before
    vocabulary: NeuralVocabulary = NeuralVocabulary()

    @model_validator(mode="after")
    def _more_than_one_topic(self) -> NeuralSettings:
        if self.topics < 2:
            raise ValueError("a neural model needs at least 2 topics")
        return self


class GFedNTMSettings(NeuralSettings, MethodSettings):
    """Federated neural topic models."""

    name: Literal["gfedntm"] = "gfedntm"
    scenario: Literal["federated", "centralised", "alone"] = "federated"  # the paper's three
    model: Literal["prodlda", "combinedtm", "zeroshottm"] = "prodlda"
    normalisation: Literal["auto", "batch", "sync", "layer"] = "auto"  # sync for syncopt, layer for local steps
    seed: int | None = None  # of weights, batches and dropout; None: the run's
    rounds: Positive | None = None  # the most, whatever the epochs
    averaging: Literal["syncopt", "fedavg", "fedadam"] = "syncopt"
    local_steps: Positive = 10  # between two rounds of fedavg or fedadam
    local_moments: Literal["averaged", "fresh"] = "averaged"  # Adam's travel with the weights: 3 times the bytes
    optimiser: Literal["sgd", "adam"] = "adam"
    server_rate: float | None = Field(default=None, gt=0)  # None: 1 for fedavg, server_tau for fedadam
    server_tau: float = Field(default=0.1, gt=0)  # of fedadam: weights that change by more move no farther
    server_momentum: float = Field(default=0.0, ge=0, lt=1)  # of fedadam, beta 1: local Adams have a momentum already
    tolerance: float = Field(default=1e-6, ge=0)  # stop when the weights' relative change stays below this
    patience: Positive = 20  # for so many steps
    compression: Literal["none", "fp16", "topk"] = "none"
    keep: float = Field(default=0.1, gt=0, le=1)  # the share of the gradient that top-k sends
    checkpoint_every: Positive = 50  # rounds between two commits on disk

    @model_validator(mode="after")
    def _fits_together(self) -> GFedNTMSettings:
        if self.compression != "none" and self.averaging != "syncopt":
            raise ValueError("compression is of gradients: it goes with averaging = 'syncopt'")
        if self.normalisation == "sync" and self.averaging != "syncopt":
            raise ValueError("normalisation 'sync' sums statistics in every step: with local steps take 'layer'")
        return self

    @property
    def pools(self) -> bool:
        """Whether all documents are brought to one place."""
        return self.scenario == "centralised"

    @property
    def keeps_text(self) -> bool:
        """Whether parties must keep their texts, to embed them."""
        return self.model != "prodlda"
