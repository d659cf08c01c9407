"""Settings of gFedNTM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from tertulia.federation.fields import Capped, Least
from tertulia.federation.types import message
from tertulia.methods.common.neural_settings import (
    Arithmetic,
    BatchSize,
    Betas,
    Dropout,
    Embedding,
    Epochs,
    Hidden,
    LearningRate,
    LearnPrior,
    LiteralAdapter,
    NeuralVocabulary,
    NeuralWords,
    StopAfter,
    TopicAlpha,
    Validation,
    check_several_topics,
    sizes_of,
)
from tertulia.methods.common.settings import (
    DocumentDelta,
    DocumentEpsilon,
    MethodSettings,
    Noise,
    Positive,
    Rounds,
    Settings,
    TopicCount,
)
from tertulia.models.neural.architecture import Kind, Normalisation, Sizes

if TYPE_CHECKING:
    from tertulia.models import Topics


class GFedNTMPaper(Settings):
    """Details of papers that only a reproduction needs."""

    literal_adapter: LiteralAdapter = False
    keep: float | None = Field(
        None,
        gt=0,
        le=1,
        description="send only this share of the gradient, its largest blocks (top-k); None: all of it",
    )


NetworkKind = Annotated[Kind, Field(description="what the encoder reads: words, words and sentences, or sentences")]
LocalSteps = Annotated[
    Positive,
    Field(description="steps of a party between two rounds of `fedavg` or `fedadam`"),
    Capped("max_sweeps"),
]
Compression = Annotated[
    Literal["none", "fp16"], Field(description="`fp16`: gradients travel in half precision, with `syncopt`")
]


Clip = Annotated[
    float, Field(gt=0, description="for mode `doc`: the norm to which the gradient of a document is cut"), Least(1e-6)
]
SamplingRate = Annotated[
    float,
    Field(
        gt=0,
        le=1,
        description="for mode `doc`, in place of `batch_size`: the probability with which a document takes part in a "
        "step, by a coin that its party keeps secret",
    ),
    Least(1e-6),
]


@message
class PartyTraining(Settings):
    """All that a party must know to compute gradients or to train: the part of the settings that travels."""

    embedding: Embedding = None
    batch_size: BatchSize = 64
    epochs: Epochs = None
    learning_rate: LearningRate = 0.002
    betas: Betas = (0.99, 0.99)
    validation: Validation = 0.0
    stop_after: StopAfter = 20
    model: NetworkKind = "prodlda"
    local_steps: LocalSteps = 10
    compression: Compression = "none"

    @property
    def reads_sentences(self) -> bool:
        """Whether the encoder reads sentence embeddings."""
        return self.model != "prodlda"


@message
class DocumentNoise(Settings):
    """All that a party must know to clip, sample and add noise."""

    epsilon: DocumentEpsilon
    delta: DocumentDelta
    clip: Clip
    sampling_rate: SamplingRate
    rounds: Rounds


class GFedNTMSettings(MethodSettings):
    """Federated neural topic models."""

    continues = True
    name: Literal["gfedntm"] = Field("gfedntm", description="the method")
    topics: TopicCount = 20
    embedding: Embedding = None
    batch_size: BatchSize = 64
    epochs: Epochs = None
    learning_rate: LearningRate = 0.002
    betas: Betas = (0.99, 0.99)
    validation: Validation = 0.0
    stop_after: StopAfter = 20
    vocabulary: NeuralWords = NeuralVocabulary()
    hidden: Hidden = (100, 100)
    dropout: Dropout = 0.2
    alpha: TopicAlpha = 1.0
    learn_prior: LearnPrior = True
    normalisation: Literal["auto", "batch", "sync", "layer"] = Field(
        "auto",
        description="`sync`: BatchNorm with everybody's statistics. `batch`: with each party's own. `layer`: "
        "LayerNorm. `auto`: `sync` for `syncopt`, `layer` for local steps",
    )
    precision: Arithmetic = "float32"
    paper: GFedNTMPaper = Field(GFedNTMPaper(), description="details of papers that only a reproduction needs")
    model: NetworkKind = "prodlda"
    local_steps: LocalSteps = 10
    compression: Compression = "none"
    mode: Literal["clear", "doc"] = Field(
        "clear", description="`clear`: no noise. `doc`: differentially private for documents, by DP-SGD; ProdLDA only"
    )
    epsilon: DocumentEpsilon = None
    delta: DocumentDelta = 1e-6
    declared_documents: Positive | None = Field(
        None,
        description="for mode `doc`: how many documents all parties declare to have. Sums are divided by this number "
        "times `sampling_rate`, because nothing may depend on how many there are",
    )
    clip: Clip = 1.0
    sampling_rate: SamplingRate = 0.1
    seed: int | None = Field(None, description="of weights, batches, dropout and draws; None: the run's")
    scenario: Literal["federated", "centralised", "alone"] = Field(
        "federated", description="the paper's three: all parties together, all documents in one place, each by itself"
    )
    averaging: Literal["syncopt", "fedavg", "fedadam"] = Field(
        "syncopt", description="`syncopt`: gradients of one mini-batch, in every round; else weights after local steps"
    )
    rounds: Rounds | None = Field(None, description="the most rounds, for any number of epochs; None: no limit")
    optimiser: Literal["sgd", "adam"] = Field("adam", description="of the server, with `syncopt`; `sgd` is the paper's")
    tolerance: float = Field(1e-6, ge=0, description="the weights have stalled when they change by less, as a share")
    patience: Positive = Field(20, description="stop when they have for this number of steps in a row")
    local_moments: Literal["averaged", "fresh"] = Field(
        "averaged", description="Adam's moments travel with the weights of local steps; `fresh`: a third of the bytes"
    )
    server_rate: float | None = Field(
        None, gt=0, description="what the mean change of a round is multiplied by; None: 1, for `fedadam` `server_tau`"
    )
    server_tau: float = Field(0.1, gt=0, description="tau of `fedadam`: weights that change by more move no farther")
    server_momentum: float = Field(0.0, ge=0, lt=1, description="beta 1 of `fedadam`: local Adams have their own")
    checkpoint_every: Positive = Field(50, description="rounds between two commits on disk")

    @model_validator(mode="after")
    def _fits_together(self) -> GFedNTMSettings:
        check_several_topics(self.topics)
        check_documents_private(self)
        if self.averaging != "syncopt" and (self.compression != "none" or self.paper.keep is not None):
            raise ValueError("compression and paper.keep are of gradients: they go with averaging = 'syncopt'")
        if self.compression != "none" and self.paper.keep is not None:
            raise ValueError("compression = 'fp16' and paper.keep both make gradients smaller: give one of them")
        if self.normalisation == "sync" and self.averaging != "syncopt":
            raise ValueError("normalisation 'sync' sums statistics in every step: with local steps take 'layer'")
        return self

    def why_not(self, last: Topics) -> str | None:
        """Require a network of the same architecture; it may have more words."""
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

    def sizes(self, words: int, embedding: int, normalisation: Normalisation) -> Sizes:
        """Return the sizes of the network for a number of words and embeddings of this width (0: it reads none)."""
        return sizes_of(self, words, embedding, normalisation, literal_adapter=self.paper.literal_adapter)

    @property
    def noise(self) -> Noise:
        """As the mode says."""
        return "doc" if self.mode == "doc" else "none"

    def with_own_epsilon(self, own: float) -> GFedNTMSettings:
        """Lower epsilon to the party's own."""
        return self if self.epsilon is None else self.replace(epsilon=min(own, self.epsilon))

    @property
    def pools(self) -> bool:
        """Whether all documents are brought to one place."""
        return self.scenario == "centralised"

    @property
    def planned_rounds(self) -> int | None:
        """The most rounds, if there is a limit."""
        return self.rounds

    @property
    def keeps_text(self) -> bool:
        """Whether parties must keep their texts, to embed them."""
        return self.model != "prodlda"

    @property
    def norm(self) -> Normalisation:
        """The norms' kind. Local steps cannot share statistics, and where parties differ their own spoil the topics."""
        if self.normalisation == "batch" or self.normalisation == "layer":
            return self.normalisation
        if self.averaging != "syncopt" or self.mode == "doc":
            return "layer"
        return "sync" if self.scenario == "federated" else "batch"  # in one place the batch's own are everybody's

    @property
    def steps_per_round(self) -> int:
        """How many steps a round has."""
        return 1 if self.averaging == "syncopt" else self.local_steps


def check_documents_private(config: GFedNTMSettings) -> None:
    """Raise `ValueError` unless mode `doc` has all that it needs, and nothing that would show a document."""
    if config.mode == "clear":
        if config.epsilon is not None:
            raise ValueError("an epsilon goes with mode 'doc': set mode = 'doc', or leave epsilon out")
        return
    declared, words = config.declared_documents, config.vocabulary.mode
    if config.epsilon is None:
        raise ValueError("mode 'doc' needs an epsilon of a document: set epsilon")
    if declared is None:
        raise ValueError(
            "mode 'doc' divides by a number that the parties declare, never by one that was counted: set "
            "declared_documents to about the documents of all parties"
        )
    if config.delta >= 1 / declared:
        raise ValueError(
            f"delta = {config.delta:g} is not below 1 / {declared} (declared_documents): publishing one document "
            "picked at random would satisfy it; lower delta"
        )
    for wrong, why in (
        (config.rounds is None, "pays for each step: set rounds"),
        (config.epochs is not None, "counts rounds, not passes over the documents: leave epochs out"),
        (config.model != "prodlda", f"trains ProdLDA only, not '{config.model}': set model = 'prodlda'"),
        (
            config.normalisation in ("batch", "sync"),
            "cannot clip a document under BatchNorm, which mixes documents: set normalisation = 'layer'",
        ),
        (config.averaging != "syncopt", "sums gradients in each step: set averaging = 'syncopt'"),
        (config.compression != "none" or config.paper.keep is not None, "sends all sums whole: leave compression out"),
        (config.scenario == "alone", "has no noise for models of single parties: use tt.ProdLDA at each of them"),
        (config.validation > 0, "scores no document, as scores leave without noise: set validation = 0"),
        (
            words not in ("public", "private"),
            f"needs a public word list (vocabulary.mode = 'public') or one under noise ('private'): '{words}' shows "
            "words of documents",
        ),
    ):
        if wrong:
            raise ValueError(f"mode 'doc' {why}")
