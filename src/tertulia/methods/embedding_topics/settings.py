"""Settings of EmbeddingTopics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from tertulia.federation.fields import Capped, Uncapped
from tertulia.methods.common import settings as common
from tertulia.methods.common.periods import FirstDate, LastDate, PeriodKind, periods_or_none
from tertulia.methods.common.seeds import NO_SEEDS, Seeds
from tertulia.methods.common.settings import (
    AgreedWords,
    DocumentDelta,
    DocumentEpsilon,
    MethodSettings,
    Positive,
    Settings,
    TopicCount,
    VocabularySettings,
)
from tertulia.methods.common.units import PrivacyUnit
from tertulia.models.vectors.documents import fingerprint_or_none, kind_of
from tertulia.models.vectors.words import STATIC

if TYPE_CHECKING:
    from tertulia.corpus import Corpus
    from tertulia.models import Topics

ROUNDS, NOISY_ROUNDS = 20, 4  # without noise, and with it
ClusterRounds = Annotated[
    int | None,
    Field(
        ge=1,
        description="rounds in which clusters move; None: 20, and 4 under noise, where each has its part of the budget",
    ),
    Capped("max_rounds"),
]
EmbeddingName = Annotated[
    str,
    Field(
        description="`static`: means of word vectors that come with the package. `minilm`: the sentence model of the "
        "extra `neural`. The folder of a sentence-transformers model, or a file of word vectors (`.npz`, `.txt`, "
        "`.bin`). `given`: the vectors that documents come with",
        json_schema_extra={"party": "where its own copy of the same embedding is"},
    ),
]
Fingerprint = Annotated[
    str | None,
    Field(description="of the embedding, which every party compares with its own; None: computed where the run starts"),
]
RunSeed = Annotated[int | None, Field(description="for the first clusters; None: that of the run"), Uncapped("a key")]


def _english() -> VocabularySettings:
    return VocabularySettings.model_validate({"mode": "public", "words": "english"})


def moves_of(rounds: int | None, epsilon: float | None) -> int:
    """Return the number of rounds in which clusters move."""
    return rounds or (ROUNDS if epsilon is None else NOISY_ROUNDS)


class ClusterSettings(Settings):
    """The settings of clusters of documents, on one machine or over parties."""

    topics: TopicCount = 20
    epsilon: DocumentEpsilon = Field(
        None, description="of a document (or user), there or not, for the whole run; None: no noise"
    )
    delta: DocumentDelta = 1e-6
    unit: PrivacyUnit = "document"
    embedding: EmbeddingName = STATIC
    fingerprint: Fingerprint = None
    seeds: Seeds = NO_SEEDS
    rounds: ClusterRounds = None
    by: PeriodKind = None
    since: FirstDate = None
    until: LastDate = None
    declared_documents: Positive | None = Field(
        None,
        description="about how many documents (or users) all parties have, if that is public: then the verdict comes "
        "before anything is spent; None: it comes after a noisy count",
    )

    @model_validator(mode="before")
    @classmethod
    def _fingerprint_of_embedding(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("fingerprint") is None:
            embedding = values.get("embedding", STATIC)
            found = fingerprint_or_none(embedding) if isinstance(embedding, str) else None
            return values | {"fingerprint": found}
        return values

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(self.seeds) > self.topics:
            raise ValueError(f"{len(self.seeds)} topics have seeds, and topics = {self.topics}: ask for as many topics")
        if self.seeds and kind_of(self.embedding) == "given":
            raise ValueError("seeds need vectors of words, which embedding = 'given' has not: choose another one")
        periods_or_none(self.by, self.since, self.until)
        if self.epsilon is None:
            return self
        if self.declared_documents is not None and self.delta >= 1 / self.declared_documents:
            raise ValueError(
                f"delta = {self.delta:g} is not below 1 / {self.declared_documents} (declared_documents): publishing "
                "one document picked at random would satisfy it; lower delta"
            )
        return self

    @property
    def moves(self) -> int:
        """The number of rounds in which clusters move."""
        return moves_of(self.rounds, self.epsilon)


class EmbeddingTopicsSettings(ClusterSettings, MethodSettings):
    """Topics that are clusters of document vectors; with an epsilon, private for whole documents or users."""

    name: Literal["embedding_topics"] = Field("embedding_topics", description="the method")
    seed: RunSeed = None
    vocabulary: AgreedWords = Field(
        default_factory=_english,
        description="the words that topics show, and whose vectors documents are means of; by default the 30,000 words "
        "of the list `english`. Under noise it must be `public`, or `private` under noise of its own",
    )

    @model_validator(mode="after")
    def _public_words(self) -> Self:
        if self.epsilon is not None and self.vocabulary.mode not in ("public", "private"):
            raise ValueError(
                "documents are private only over a public word list (vocabulary.mode = 'public'), or one under noise "
                f"('private'): '{self.vocabulary.mode}' shows words of documents"
            )
        return self

    @property
    def keeps_text(self) -> bool:
        """Whether the embedding reads texts."""
        return kind_of(self.embedding) == "sentences"

    @property
    def planned_rounds(self) -> int:
        """One round for words, those in which clusters move, and one for the words of clusters."""
        return self.moves + 2

    @property
    def passes(self) -> int:
        """Each sum passes over the documents once."""
        return self.moves + 2

    @property
    def noise(self) -> common.Noise:
        """Of whole documents, if there is an epsilon."""
        return "none" if self.epsilon is None else "doc"

    def with_own_epsilon(self, own: float) -> Self:
        """Lower epsilon to the party's own."""
        return self if self.epsilon is None else self.replace(epsilon=min(own, self.epsilon))

    def outlook(self, corpora: Sequence[Corpus], louder: float) -> str | None:
        """Say how many topics are expected to be live."""
        from tertulia.methods.embedding_topics.budget import verdict_on_corpora_or_none

        found = verdict_on_corpora_or_none(self, corpora, louder)
        return None if found is None else f"Expected: {found.text}."

    def why_not(self, last: Topics) -> str | None:
        """Clusters start from words, not from an earlier model."""
        return "embedding_topics starts its clusters from words: join two models by `EmbeddingTopics.merge_models`"
