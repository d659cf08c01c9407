"""A corpus that is read when it is needed: all its cells may be in the cache."""

from __future__ import annotations

from functools import cached_property

from benchmarks.embedding_topics.corpora import Subject, subject


class Lazy:
    """A named corpus, read at the first call."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def _subject(self) -> Subject:
        return subject(self.name)

    def __call__(self) -> Subject:
        """Return the corpus."""
        return self._subject
