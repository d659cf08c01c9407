"""Trainers: validated settings with a method `train`; and the choice of words to model."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict

import numpy as np

from tertulia.api.progress import Tick
from tertulia.corpus import Corpus, TextOptions, Vocabulary
from tertulia.corpus.advice import warn_of_wordless
from tertulia.corpus.counts import from_counts, is_matrix
from tertulia.corpus.inputs import Documents, as_corpus
from tertulia.corpus.vocabulary import choose_words, propose
from tertulia.errors import InputError
from tertulia.methods.common.settings import MANY_DOCUMENTS, Explained, VocabularySettings
from tertulia.models import Topics

if TYPE_CHECKING:
    from tertulia.api.estimators import Estimator


class FitOptions(TypedDict, total=False):
    """Options of an estimator's `fit`, besides documents and labels."""

    start: Topics | Estimator | None
    seed: int | None
    text: TextOptions | None
    progress: bool | Tick | None
    column: str | None
    feature_names: Any


class TrainOptions(NamedTuple):
    """Options of one call of `train`, besides the trainer's settings."""

    start: Topics | None = None  # model to continue
    seed: int = 0
    text: TextOptions | None = None  # tokenisation
    progress: Tick | None = None  # called after each sweep or epoch


class Trainer(Explained):
    """Base class of trainers: the settings, and `train`."""

    measured: ClassVar[tuple[str, str]] = ("sweep", "perplexity")  # unit and value of progress

    @property
    def steps(self) -> int | None:
        """Return the number of sweeps or epochs; None if it is not known."""
        return None

    @abstractmethod
    def train(self, documents: Documents, how: TrainOptions) -> Topics:
        """Train on documents in any of the forms that users may give."""


def corpus_of(
    documents: Documents, terms: VocabularySettings, text: TextOptions | None, keep_text: bool = False
) -> Corpus:
    """Encode documents over the words to model; the columns of a matrix are these words."""
    if is_matrix(documents):
        return from_counts(documents)
    corpus = as_corpus(None, documents, text, keep_text)
    kept = corpus.encode(words_of(corpus, terms))
    warn_of_wordless(corpus, kept, *terms.limits(corpus.n_documents))
    return kept


def words_of(corpus: Corpus, terms: VocabularySettings, *, more: bool = False) -> Vocabulary:
    """Choose the words to model: a public list, or words of the corpus that are neither too rare nor too common.

    With `more` they extend the words of an earlier model, and the limits are those of a large corpus.
    """
    if terms.mode == "public":
        return Vocabulary(terms.words)
    limits = terms.limits(MANY_DOCUMENTS if more else corpus.n_documents)
    found = choose_words(corpus, *limits, terms.max_words, terms.phrases)
    if not len(found) and corpus.n_tokens and not more:
        raise InputError(_why_no_word(corpus, *limits))
    return found


def _why_no_word(corpus: Corpus, min_documents: int, max_share: float) -> str:
    counts = np.asarray(propose(corpus).counts)
    rare = int((counts < min_documents).sum())
    return (
        f"no word is left to model: of {len(counts):,} words in {corpus.n_documents:,} documents {rare:,} are in fewer "
        f"than min_documents = {min_documents} and {len(counts) - rare:,} in more than max_share = {max_share:g} of "
        "them. Give other limits: vocabulary={'min_documents': 1, 'max_share': 1.0} keeps every word"
    )


def own_settings(trainer: Trainer) -> dict[str, Any]:
    """Return the settings that a model stores, without its words."""
    return trainer.model_dump(exclude={"vocabulary"})
