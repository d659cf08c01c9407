"""Settings of neural topic models, trained together or on one machine."""

from __future__ import annotations

from typing import Annotated, Protocol

from pydantic import Field

from tertulia.federation.fields import Capped, Uncapped
from tertulia.methods.common.settings import Positive, Settings, Share, VocabularySettings
from tertulia.models.neural.architecture import Normalisation, Precision, Sizes

LiteralAdapter = Annotated[
    bool, Field(description="CombinedTM as published, with a layer from the embedding to all words before the first")
]


class NeuralVocabulary(VocabularySettings):
    """How parties agree on words for a neural model, whose topics lose coherence when many words are rare."""

    max_words: Positive | None = Field(2000, description="keep this number of the most frequent words; None: all")


class NeuralPaper(Settings):
    """Details of papers that only a reproduction needs."""

    literal_adapter: LiteralAdapter = False


# --- how a model is trained: by mini-batches and Adam, until its loss stalls ------------------------------------------

Embedding = Annotated[
    str | None,
    Field(description="the folder of a sentence-transformers model; None: the one that comes with the extra"),
]
BatchSize = Annotated[
    int,
    Field(ge=2, description="documents in a step, all parties' together; of local steps, its own"),
    Uncapped("a batch has no more documents than the party"),
]
Epochs = Annotated[
    Positive | None,
    Field(description="passes over the documents, at most; None: until the loss stalls (`stop_after`), 500 at most"),
    Capped("max_sweeps"),
]
LearningRate = Annotated[float, Field(gt=0, description="of Adam, or of gradient descent")]
Betas = Annotated[tuple[Share, Share], Field(description="how slowly Adam's two moments forget")]
Validation = Annotated[
    float,
    Field(
        ge=0,
        lt=1,
        description="share of the documents that take no part in training and say when to stop; the model that they "
        "like best is kept; 0: none",
    ),
]
StopAfter = Annotated[
    Positive,
    Field(
        description="the loss has stalled when its mean over this number of epochs is not a thousandth below that of "
        "as many before"
    ),
    Uncapped("a rule of the server"),
]

# --- what a model is --------------------------------------------------------------------------------------------------

Hidden = Annotated[tuple[Positive, ...], Field(min_length=1, description="the widths of the encoder's layers")]
Dropout = Annotated[
    float, Field(ge=0, lt=1, description="share of the last hidden layer, and of theta, that is dropped")
]
TopicAlpha = Annotated[float, Field(gt=0, description="theta's Dirichlet prior, of each topic")]
LearnPrior = Annotated[bool, Field(description="whether the Gaussian that stands for this prior is learned on")]
Arithmetic = Annotated[Precision, Field(description="of weights and arithmetic")]
NeuralWords = Annotated[NeuralVocabulary, Field(description="how parties agree on words")]


class NeuralModel(Protocol):
    """The settings that a network's sizes depend on."""

    @property
    def topics(self) -> int:
        """How many topics it has."""

    @property
    def hidden(self) -> tuple[int, ...]:
        """The widths of its layers."""

    @property
    def dropout(self) -> float:
        """The share that is dropped."""

    @property
    def alpha(self) -> float:
        """Theta's prior, of each topic."""

    @property
    def learn_prior(self) -> bool:
        """Whether the prior is learned on."""


def sizes_of(
    config: NeuralModel, words: int, embedding: int, normalisation: Normalisation, *, literal_adapter: bool
) -> Sizes:
    """Return the sizes of the network for a number of words and embeddings of this width (0: it reads none)."""
    return Sizes(
        words, config.topics, embedding, config.hidden, config.dropout, config.alpha, config.learn_prior,
        literal_adapter, shifts=normalisation == "layer",
    )  # fmt: skip


def check_several_topics(topics: int) -> None:
    """Raise unless there are at least two topics."""
    if topics < 2:
        raise ValueError("a neural model needs at least 2 topics")
