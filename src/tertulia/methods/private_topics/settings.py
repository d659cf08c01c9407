"""Settings of PrivateTopics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from tertulia.methods.common import settings as common
from tertulia.methods.common.settings import (
    AgreedWords,
    AlphaSum,
    DocumentDelta,
    DocumentEpsilon,
    MethodSettings,
    Positive,
    Rounds,
    TopicCount,
    VocabularySettings,
)
from tertulia.methods.common.units import PrivacyUnit

if TYPE_CHECKING:
    from tertulia.corpus import Corpus
    from tertulia.models import Topics

MOST_PAIRED_WORDS = 3_000

NoiseMode = Annotated[
    Literal["doc", "clear"],
    Field(description="`doc`: with noise, so that epsilon is kept. `clear`: the same sums without noise, to compare"),
]


def _common_words() -> VocabularySettings:
    return VocabularySettings.model_validate({"mode": "public", "words": "english", "max_words": 5_000})


class PrivateTopicsSettings(MethodSettings):
    """Topics from a few noisy sums, private for whole documents or users."""

    audited = {"adapt": False, "paired_words": MOST_PAIRED_WORDS}  # noqa: RUF012
    name: Literal["private_topics"] = Field("private_topics", description="the method")
    topics: TopicCount = 20
    alpha: AlphaSum = 2.0
    mode: NoiseMode = "doc"
    epsilon: DocumentEpsilon = 3.0
    delta: DocumentDelta = 1e-6
    unit: PrivacyUnit = "document"
    declared_documents: Positive | None = Field(
        None,
        description="about how many documents (or users) all parties have, if that is public: then the verdict comes "
        "before anything is spent; None: it comes after a noisy count",
    )
    words_per_document: Positive | None = Field(
        None,
        description="about how many words of the list a document (or user) has, if that is public: longer ones are cut "
        "in weight; None: the median, by a noisy count",
    )
    paired_words: int = Field(
        1_500,
        ge=2,
        le=MOST_PAIRED_WORDS,
        description="the number of most frequent words, under noise, whose co-occurrence is summed",
    )
    rounds: Rounds = Field(3, description="rounds of EM after the first topics")
    adapt: bool = Field(
        True,
        description="learn fewer topics where fewer show above the noise, and stop, with the rest of the budget "
        "unspent, where none does",
    )
    vocabulary: AgreedWords = Field(
        default_factory=_common_words,
        description="the word list: `public`, or `private` under noise of its own; by default the 5,000 most common "
        "words of the list `english`",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.mode == "doc" and self.epsilon is None:
            raise ValueError("mode 'doc' needs an epsilon of a document: set epsilon, such as 3")
        if self.vocabulary.mode not in ("public", "private"):
            raise ValueError(
                "documents are private only over a public word list (vocabulary.mode = 'public'), or one under noise "
                f"('private'): '{self.vocabulary.mode}' shows words of documents"
            )
        if self.declared_documents is not None and self.delta >= 1 / self.declared_documents:
            raise ValueError(
                f"delta = {self.delta:g} is not below 1 / {self.declared_documents} (declared_documents): publishing "
                "one document picked at random would satisfy it; lower delta"
            )
        return self

    @property
    def planned_rounds(self) -> int:
        """One round of sums for the first topics, then those of EM."""
        return self.rounds + 1

    @property
    def passes(self) -> int:
        """Each sum passes over the documents once."""
        return self.rounds + 2

    @property
    def noise(self) -> common.Noise:
        """As the mode says."""
        return "doc" if self.mode == "doc" else "none"

    def with_own_epsilon(self, own: float) -> Self:
        """Lower epsilon to the party's own."""
        return self if self.mode == "clear" else self.replace(epsilon=min(own, self.epsilon or own))

    def outlook(self, corpora: Sequence[Corpus], louder: float) -> str | None:
        """Say how many topics are expected to show."""
        from tertulia.methods.private_topics.budget import verdict_on_corpora_or_none

        found = verdict_on_corpora_or_none(self, corpora, louder)
        return None if found is None else f"Expected: {found.text}."

    def why_not(self, last: Topics) -> str | None:
        """It finds its topics in one go."""
        return "private_topics finds its topics in one go"

    def why_not_secure(self, *, continues: bool) -> str | None:
        """Refuse masked sums without noise: the server chooses topics, and could ask for sums of single documents."""
        if self.mode == "clear":
            return "mode 'clear' is for comparison on one machine: set mode = 'doc'"
        return super().why_not_secure(continues=continues)
