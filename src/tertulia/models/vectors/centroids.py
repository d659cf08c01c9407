"""The encoder of topics that are clusters: it infers topic shares from the cosines of a document with the centroids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tertulia._arrays import F64, I64, Array, Bool
from tertulia._kinds import fits
from tertulia.corpus import Corpus
from tertulia.errors import FormatError, InputError
from tertulia.models.vectors.documents import fingerprint_or_none, kind_of, vectors_of

KIND = "centroids"
SHARPNESS = 20.0  # of shares: exp(20 cosine)
OUTLIERS = 0.4  # of the mean cosine of a topic's documents: below it a document is like none
NONE = -1  # the topic of a document that is like none


@dataclass(frozen=True, eq=False)
class Centroids:
    """Directions of topics from the common centre of documents, and what makes a document like none of them."""

    architecture: dict[str, Any]  # kind, sizes, and the fingerprint of the embedding
    weights: Array  # flat: the centre [d], then the centroids [K, d]
    statistics: Array  # [2, K] least cosines, and shares of the documents
    embedding: str
    mixes: ClassVar[bool] = False  # a document is in one cluster

    @classmethod
    def of(
        cls, centre: Array, centroids: Array, least: Array, shares: Array, words: int, embedding: str,
        fingerprint: str | None,
    ) -> Centroids:  # fmt: skip
        """Make an encoder of its parts."""
        K, width = centroids.shape
        sizes = {"topics": K, "words": words, "width": width}
        about = {"kind": KIND, "sizes": sizes, "fingerprint": fingerprint, "sharpness": SHARPNESS}
        flat = np.concatenate([centre[None, :], centroids]).astype(np.float32).ravel()
        return cls(about, flat, np.stack([least, shares]).astype(np.float64), embedding)

    @property
    def reads_sentences(self) -> bool:
        """Whether the embedding reads texts, or vectors that come with them."""
        return kind_of(self.embedding) != "words"

    @property
    def width(self) -> int:
        """The number of dimensions."""
        return int(self.architecture["sizes"]["width"])

    @property
    def centre(self) -> Array:
        """The centre of all documents [d]."""
        return np.asarray(self.weights[: self.width])

    @property
    def centroids(self) -> Array:
        """The directions of the topics [K, d]."""
        return np.asarray(self.weights[self.width :].reshape(-1, self.width))

    @property
    def least(self) -> Array:
        """The cosine below which a document is not like a topic [K]."""
        return np.asarray(self.statistics[0])

    def check_sizes(self, topics: int, words: int) -> None:
        """Raise `FormatError` unless this can be the encoder of a model of this size."""
        sizes = self.architecture.get("sizes")
        known = {"topics": int, "words": int, "width": int}
        if not isinstance(sizes, dict) or any(not fits(sizes.get(name), kind) for name, kind in known.items()):
            raise FormatError("the encoder's sizes are damaged: save the model again")
        if (sizes["topics"], sizes["words"]) != (topics, words):
            raise FormatError(f"the encoder is not for {topics} topics and {words} words: save the model again")
        fingerprint, sharpness = self.architecture.get("fingerprint"), self.architecture.get("sharpness")
        if not (fits(fingerprint, str | None) and fits(sharpness, float) and fits(self.embedding, str)):
            raise FormatError("the encoder's embedding is damaged: save the model again")
        shapes = ((topics + 1) * sizes["width"],), (2, topics)
        for array, shape in zip((self.weights, self.statistics), shapes, strict=True):
            if array.shape != shape or array.dtype.kind != "f" or not np.all(np.isfinite(array)):
                raise FormatError("the encoder's numbers are damaged: save the model again")

    def cosines(self, corpus: Corpus) -> F64:
        """Return the cosines [D, K] of documents with the topics; NaN for a document that has no vector."""
        vectors = vectors_of(corpus, self.embedding)
        own = None if "embedding" in corpus.table.columns else fingerprint_or_none(self.embedding)
        if vectors.shape[1] != self.width or (own is not None and own != self.architecture["fingerprint"]):
            raise InputError(
                f"the model was trained on vectors of {self.width} numbers by '{self.embedding}' (fingerprint "
                f"{self.architecture['fingerprint']}), and these have {vectors.shape[1]} ({own}): use that embedding"
            )
        moved = vectors - self.centre
        length = np.linalg.norm(moved, axis=1, keepdims=True)
        found = (moved / np.maximum(length, 1e-9)) @ self.centroids.T
        found[~vectors.any(axis=1)] = np.nan
        return np.asarray(found, np.float64)

    def theta(self, corpus: Corpus) -> F64:
        """Infer the topic shares [D, K]: the softmax of cosines; a document without a vector has the overall shares."""
        found = self.cosines(corpus)
        with np.errstate(invalid="ignore"):
            shares = np.exp(self.architecture["sharpness"] * (found - found.max(axis=1, keepdims=True)))
            shares /= shares.sum(axis=1, keepdims=True)
        shares[np.isnan(found).any(axis=1)] = self.statistics[1] / self.statistics[1].sum()
        return np.asarray(shares)

    def labels(self, corpus: Corpus) -> I64:
        """Return the nearest topic of each document [D]; -1: it is like none, or has no vector."""
        found = np.nan_to_num(self.cosines(corpus), nan=-2.0)
        best = found.argmax(axis=1)
        return np.where(found[np.arange(len(found)), best] >= self.least[best], best, NONE).astype(np.int64)

    def silent(self, corpus: Corpus) -> Bool:
        """Return which documents [D] have no vector."""
        return np.asarray(~vectors_of(corpus, self.embedding).any(axis=1))

    def __eq__(self, other: object) -> bool:
        """Compare bit for bit."""
        return isinstance(other, Centroids) and (
            (self.architecture, self.embedding, self.weights.tobytes(), self.statistics.tobytes())
            == (other.architecture, other.embedding, other.weights.tobytes(), other.statistics.tobytes())
        )

    def __hash__(self) -> int:
        return hash(self.weights.tobytes())
