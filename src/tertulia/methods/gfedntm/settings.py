"""Settings of neural topic models, trained together or on one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from tertulia.federation.types import message
from tertulia.methods.common.continuing import Continuing
from tertulia.methods.common.settings import (
    MethodSettings,
    OverWords,
    Positive,
    Seeded,
    Settings,
    Share,
    TopicCount,
    VocabularySettings,
)
from tertulia.models.neural.sizes import Kind, Normalisation, Precision, Sizes

if TYPE_CHECKING:
    from tertulia.models import Topics


class NeuralVocabulary(VocabularySettings):
    """How parties agree on words for a neural model, whose topics lose coherence when many words are rare."""

    max_words: Positive | None = Field(2000, description="keep so many of the most frequent words; None: all")


class NeuralPaper(Settings):
    """Details of papers that only a reproduction needs."""

    literal_adapter: bool = Field(
        False, description="CombinedTM as published, with a layer from the embedding to all words before the first"
    )


class NeuralTraining(Settings):
    """How a neural model is trained: by mini-batches and Adam, until its loss stalls."""

    embedding: str | None = Field(
        None, description="the folder of a sentence-transformers model; None: the one that comes with the extra"
    )
    batch_size: int = Field(64, ge=2, description="documents in a step, all parties' together; of local steps, its own")
    epochs: Positive | None = Field(
        None, description="passes over the documents, at most; None: until the loss stalls (`stop_after`), 500 at most"
    )
    learning_rate: float = Field(0.002, gt=0, description="of Adam, or of gradient descent")
    betas: tuple[Share, Share] = Field((0.99, 0.99), description="how slowly Adam's two moments forget")
    validation: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of the documents that take no part in training and say when to stop; the model that they "
        "like best is kept; 0: none",
    )
    stop_after: Positive = Field(
        20,
        description="the loss has stalled when its mean over so many epochs is not a thousandth below that of as many "
        "before",
    )


class NeuralSettings(OverWords, NeuralTraining, TopicCount):
    """Settings of every neural model, trained together or on one machine."""

    hidden: tuple[Positive, ...] = Field((100, 100), min_length=1, description="the widths of the encoder's layers")
    dropout: float = Field(0.2, ge=0, lt=1, description="share of the last hidden layer, and of theta, that is dropped")
    alpha: float = Field(1.0, gt=0, description="theta's Dirichlet prior, of each topic")
    learn_prior: bool = Field(True, description="whether the Gaussian that stands for this prior is learned on")
    normalisation: Literal["auto", "batch", "sync", "layer"] = Field(
        "auto",
        description="`sync`: BatchNorm with everybody's statistics. `batch`: with each party's own. `layer`: "
        "LayerNorm. `auto`: `sync` for `syncopt`, `layer` for local steps",
    )
    precision: Precision = Field("float32", description="of weights and arithmetic")
    vocabulary: NeuralVocabulary = Field(NeuralVocabulary())
    paper: NeuralPaper = Field(NeuralPaper(), description="details of papers that only a reproduction needs")

    @model_validator(mode="after")
    def _more_than_one_topic(self) -> NeuralSettings:
        if self.topics < 2:
            raise ValueError("a neural model needs at least 2 topics")
        return self

    def sizes(self, words: int, embedding: int, normalisation: Normalisation) -> Sizes:
        """The network's sizes, for so many words and embeddings of this width (0: it reads none)."""
        return Sizes(
            words, self.topics, embedding, self.hidden, self.dropout, self.alpha, self.learn_prior,
            self.paper.literal_adapter, shifts=normalisation == "layer",
        )  # fmt: skip


class GFedNTMPaper(NeuralPaper):
    """Details of papers that only a reproduction needs."""

    keep: float | None = Field(
        None,
        gt=0,
        le=1,
        description="send only this share of the gradient, its largest blocks (top-k); None: all of it",
    )


@message
class PartyTraining(NeuralTraining):
    """All that a party must know to compute gradients or to train: the part of the settings that travels."""

    model: Kind = Field("prodlda", description="what the encoder reads: words, words and sentences, or sentences")
    local_steps: Positive = Field(10, description="steps of a party between two rounds of `fedavg` or `fedadam`")
    compression: Literal["none", "fp16"] = Field(
        "none", description="`fp16`: gradients travel in half precision, with `syncopt`"
    )

    @property
    def reads_sentences(self) -> bool:
        """Whether the encoder reads sentence embeddings."""
        return self.model != "prodlda"


class GFedNTMSettings(Continuing, Seeded, PartyTraining, NeuralSettings, MethodSettings):
    """Federated neural topic models."""

    name: Literal["gfedntm"] = "gfedntm"
    seed: int | None = Field(None, description="of weights, batches, dropout and draws; None: the run's")
    scenario: Literal["federated", "centralised", "alone"] = Field(
        "federated", description="the paper's three: all parties together, all documents in one place, each by itself"
    )
    averaging: Literal["syncopt", "fedavg", "fedadam"] = Field(
        "syncopt", description="`syncopt`: gradients of one mini-batch, in every round; else weights after local steps"
    )
    rounds: Positive | None = Field(None, description="the most rounds, whatever the epochs; None: no limit")
    optimiser: Literal["sgd", "adam"] = Field("adam", description="of the server, with `syncopt`; `sgd` is the paper's")
    tolerance: float = Field(1e-6, ge=0, description="the weights have stalled when they change by less, as a share")
    patience: Positive = Field(20, description="stop when they have for so many steps in a row")
    local_moments: Literal["averaged", "fresh"] = Field(
        "averaged", description="Adam's moments travel with the weights of local steps; `fresh`: a third of the bytes"
    )
    server_rate: float | None = Field(
        None, gt=0, description="what the mean change of a round is multiplied by; None: 1, for `fedadam` `server_tau`"
    )
    server_tau: float = Field(0.1, gt=0, description="tau of `fedadam`: weights that change by more move no farther")
    server_momentum: float = Field(0.0, ge=0, lt=1, description="beta 1 of `fedadam`: local Adams have their own")
    checkpoint_every: Positive = Field(50, description="rounds between two commits on disk")
    paper: GFedNTMPaper = Field(GFedNTMPaper())

    @model_validator(mode="after")
    def _fits_together(self) -> GFedNTMSettings:
        if self.averaging != "syncopt" and (self.compression != "none" or self.paper.keep is not None):
            raise ValueError("compression and paper.keep are of gradients: they go with averaging = 'syncopt'")
        if self.compression != "none" and self.paper.keep is not None:
            raise ValueError("compression = 'fp16' and paper.keep both make gradients smaller: give one of them")
        if self.normalisation == "sync" and self.averaging != "syncopt":
            raise ValueError("normalisation 'sync' sums statistics in every step: with local steps take 'layer'")
        return self

    def why_not(self, last: Topics) -> str | None:
        """Only a network of the same architecture can be trained on; words may be more."""
        if last.encoder is None:
            return "it is no neural model, and gfedntm goes on from weights"
        known = last.encoder.architecture
        wanted = {**self.sizes(0, 0, self.norm)._asdict(), "kind": self.model, "normalisation": self.norm}
        found = {**known["sizes"], "kind": known["kind"], "normalisation": known["normalisation"]}
        found["hidden"] = tuple(found["hidden"])
        for name in ("kind", "topics", "hidden", "normalisation", "learn_prior", "literal_adapter"):
            if found[name] != wanted[name]:
                return f"its network has {name} = {found[name]}, and the settings say {wanted[name]}"
        return None

    @property
    def pools(self) -> bool:
        """Whether all documents are brought to one place."""
        return self.scenario == "centralised"

    @property
    def keeps_text(self) -> bool:
        """Whether parties must keep their texts, to embed them."""
        return self.reads_sentences

    @property
    def norm(self) -> Normalisation:
        """The norms' kind. Local steps cannot share statistics, and where parties differ their own spoil the topics."""
        if self.normalisation == "batch" or self.normalisation == "layer":
            return self.normalisation
        if self.averaging != "syncopt":
            return "layer"
        return "sync" if self.scenario == "federated" else "batch"  # in one place the batch's own are everybody's

    @property
    def steps_per_round(self) -> int:
        """How many steps a round has."""
        return 1 if self.averaging == "syncopt" else self.local_steps
