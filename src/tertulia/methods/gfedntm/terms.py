"""The terms of training a neural topic model together: a run's settings, and what may leave a party."""

from __future__ import annotations

from typing import Literal, Protocol

from tertulia.methods.common.settings import VocabularySettings
from tertulia.methods.gfedntm.compression import Compression
from tertulia.models.neural.network import Kind, Normalisation
from tertulia.privacy.mechanisms import Clear, Public

GRADIENT = Clear("gradient of a mini-batch")
STATISTICS = Clear("statistics of a mini-batch")
WEIGHTS = Clear("network weights")
MOMENTS = Clear("moments of gradients")
SIZES = Clear("topic sizes")
LOSS = Clear("training loss", metric=True)
VALIDATION = Clear("validation loss", metric=True)
VALIDATION_STATISTICS = Clear("statistics of validation documents")
DOCUMENTS = Public("number of documents")


class NeuralTerms(Protocol):
    """What a run's settings say about the method."""

    scenario: Literal["federated", "centralised", "alone"]
    model: Kind
    topics: int
    hidden: tuple[int, ...]
    dropout: float
    alpha: float  # of each topic
    learn_prior: bool
    literal_adapter: bool
    embedding: str | None
    normalisation: Literal["auto", "batch", "sync", "layer"]
    precision: Literal["float32", "float64"]
    seed: int | None
    batch_size: int  # documents in a step, all parties' together
    epochs: int | None  # None: until the loss stalls
    rounds: int | None  # the most, whatever the epochs
    averaging: Literal["syncopt", "fedavg", "fedadam"]
    local_steps: int
    local_moments: Literal["averaged", "fresh"]
    optimiser: Literal["sgd", "adam"]
    learning_rate: float
    server_rate: float | None
    server_tau: float
    server_momentum: float
    betas: tuple[float, float]
    tolerance: float
    patience: int
    validation: float
    stop_after: int
    compression: Compression
    keep: float
    checkpoint_every: int
    vocabulary: VocabularySettings


def normalisation_of(config: NeuralTerms) -> Normalisation:
    """The norms' kind. Local steps cannot share statistics, and where parties differ their own make another model."""
    if config.normalisation == "batch" or config.normalisation == "layer":
        return config.normalisation
    if config.averaging != "syncopt":
        return "layer"
    return "sync" if config.scenario == "federated" else "batch"  # in one place the batch's own are everybody's
