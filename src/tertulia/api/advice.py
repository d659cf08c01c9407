"""Warnings before training: more topics than documents, or too little memory."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tertulia._memory import available_bytes
from tertulia.corpus import Corpus
from tertulia.corpus.advice import warn_of_copies

if TYPE_CHECKING:
    from tertulia.methods.common.settings import MethodSettings

_LDA = 33  # bytes per topic and word during LDA training, measured
_MODEL = 8  # bytes per topic and word of a model
_MUCH = 0.5  # share of the available memory


class ManyTopicsWarning(UserWarning):
    """Warning: there are more topics than documents."""


class MemoryWarning(UserWarning):
    """Warning: training needs a large share of the available memory."""


def warn_before_training(corpus: Corpus, topics: int) -> None:
    """Warn of duplicates, too many topics and too little memory, before training on one machine."""
    warn_of_copies(corpus)
    warn_of_many_topics(topics, corpus.n_documents)
    warn_of_memory(_LDA * topics * len(corpus.vocabulary), topics, len(corpus.vocabulary))


def warn_before_run(corpora: Mapping[str, Corpus], settings: MethodSettings, workers: int) -> None:
    """Warn of the same before a federated run on one machine, over the documents of all parties."""
    for corpus in corpora.values():
        warn_of_copies(corpus)
    topics, vocabulary = settings.planned_topics, settings.vocabulary_settings
    if topics is None:
        return
    warn_of_many_topics(topics, sum(corpus.n_documents for corpus in corpora.values()))
    limit = None if vocabulary is None else vocabulary.max_words
    words = max(len(corpus.vocabulary) for corpus in corpora.values())
    words = words if limit is None else min(words, limit)
    per_cell = _LDA * min(workers, len(corpora)) + _MODEL * len(corpora)
    warn_of_memory(per_cell * topics * words, topics, words)


def warn_of_many_topics(topics: int, documents: int) -> None:
    """Warn if there are more topics than documents: most topics would be noise."""
    if topics > documents:
        text = f"{topics:,} topics for {documents:,} documents: most will be noise. Ask for fewer, by far: `topics`"
        warnings.warn(text, ManyTopicsWarning, stacklevel=2)


def warn_of_memory(needed: int, topics: int, words: int) -> None:
    """Warn if training needs a large share of the available memory."""
    available = available_bytes()
    if available is not None and needed > _MUCH * available:
        warnings.warn(
            f"{topics:,} topics over {words:,} words need about {needed / 2**30:.1f} GB, where "
            f"{available / 2**30:.1f} GB are available: ask for fewer `topics`, or prune words (`vocabulary`: "
            "max_words, min_documents)",
            MemoryWarning,
            stacklevel=2,
        )
