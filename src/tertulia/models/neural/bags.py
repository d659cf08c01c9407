"""Documents for a neural network: sparse bags of words, a key per document, and embeddings.

The mini-batch of a document, and all its noise, are pure functions of its id, the seed and the step. So a batch over
several parties is the union of their batches, and they can train the same model as one trainer with all documents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import DTypeLike

from tertulia._arrays import F32, I64, U64, Array
from tertulia.corpus import Corpus
from tertulia.corpus.offsets import offsets_of
from tertulia.kernels.neural import bag_products, noise


class Batch(NamedTuple):
    """The documents of a mini-batch."""

    words: I64  # [N] the distinct words of each document, one document after the other
    counts: F32  # [N] how often each occurs there
    offsets: I64  # [B + 1]
    keys: U64  # [B]
    embeddings: F32 | None  # [B, E]

    @property
    def size(self) -> int:
        """The number of documents."""
        return len(self.keys)


@dataclass(frozen=True, eq=False)
class Bags:
    """All documents of a corpus that hold a word of its vocabulary."""

    words: I64  # [N]
    counts: F32  # [N]
    offsets: I64  # [D + 1]
    keys: U64  # [D]
    embeddings: F32 | None  # [D, E]

    @property
    def n_documents(self) -> int:
        """The number of documents."""
        return len(self.keys)

    @classmethod
    def of(cls, corpus: Corpus, embeddings: F32 | None = None, wordless: bool = False) -> Bags:
        """Count the words of each document; without `wordless`, documents without words are left out."""
        full = np.flatnonzero((corpus.lengths > 0) | wordless)
        V = max(1, len(corpus.vocabulary))
        document = np.repeat(np.arange(corpus.n_documents), corpus.lengths)
        cells, counts = np.unique(document * V + corpus.words, return_counts=True)
        lengths = np.bincount(cells // V, minlength=corpus.n_documents)[full]
        keys = np.fromiter(map(document_key, corpus.table["id"]), np.uint64, corpus.n_documents)
        return cls(
            cells % V, counts.astype(np.float32), offsets_of(lengths), keys[full],
            None if embeddings is None else np.ascontiguousarray(embeddings[full], np.float32),
        )  # fmt: skip

    def split_validation(self, share: float, seed: int) -> tuple[Bags, Bags]:
        """Split into training and validation documents, these a share of all by a hash of their id."""
        return _split(self, share, seed) if share else (self, self.only(np.zeros(0, np.int64)))

    def only(self, chosen: I64) -> Bags:
        """Select some documents as bags."""
        return Bags(*self.select(chosen))

    def select(self, chosen: I64) -> Batch:
        """Select some documents as a batch."""
        embeddings = None if self.embeddings is None else self.embeddings[chosen]
        return Batch(*bag_products.select(self.words, self.counts, self.offsets, chosen), self.keys[chosen], embeddings)


@lru_cache(maxsize=64)
def _split(bags: Bags, share: float, seed: int) -> tuple[Bags, Bags]:
    out = noise.first_bits(bags.keys, _salt(seed, -1, -2)) < np.uint64(share * 2.0**64)
    return bags.only(np.flatnonzero(~out)), bags.only(np.flatnonzero(out))


def document_key(name: str) -> int:
    """Hash a document's id to 64 bits."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8"), digest_size=8).digest(), "little")


_BAGS: WeakKeyDictionary[Corpus, Bags] = WeakKeyDictionary()


def bags_of(corpus: Corpus, embeddings: Callable[[Corpus], F32] | None = None) -> Bags:
    """Return the bags of a corpus, with embeddings if given; they are cached as long as the corpus exists."""
    known = _BAGS.get(corpus)
    if known is None or (embeddings is not None and known.embeddings is None):
        known = _BAGS[corpus] = Bags.of(corpus, None if embeddings is None else embeddings(corpus))
    return known


class Schedule(NamedTuple):
    """The assignment of documents to the batches of an epoch, by a hash that all parties know."""

    seed: int
    batches: int  # in an epoch

    @classmethod
    def over(cls, documents: int, batch_size: int, seed: int) -> Schedule:
        """Plan batches of `batch_size` documents on average, over all parties."""
        return cls(seed, max(1, round(documents / batch_size)))

    def batch(self, bags: Bags, step: int) -> Batch:
        """Select the documents of a step."""
        epoch, turn = divmod(step, self.batches)
        order, starts = _epoch(bags, self, epoch)
        return bags.select(order[starts[turn] : starts[turn + 1]])


@lru_cache(maxsize=64)  # a few parties, one epoch each
def _epoch(bags: Bags, schedule: Schedule, epoch: int) -> tuple[I64, I64]:
    """Sort documents by their batches, and find where each batch starts."""
    bits = noise.first_bits(bags.keys, _salt(schedule.seed, epoch, -1))
    turns = (bits % np.uint64(schedule.batches)).astype(np.int64)
    # Within a batch documents are sorted by their keys, at any party: so sums hardly depend on the parties.
    order = np.lexsort((bags.keys, turns))
    return order, offsets_of(np.bincount(turns, minlength=schedule.batches))


class Noise(NamedTuple):
    """The random draws of one step, by document."""

    seed: int
    step: int

    def normal(self, keys: U64, n: int, stream: int, dtype: DTypeLike = np.float64) -> Array:
        """Draw standard normals [B, n]."""
        drawn = np.empty((len(keys), n), dtype)
        noise.normals(keys, _salt(self.seed, self.step, stream), drawn)
        return drawn

    def mask(self, keys: U64, n: int, stream: int, dropout: float, dtype: DTypeLike = np.float32) -> Array:
        """Draw a dropout mask [B, n]: 0 with probability `dropout` (to 16 bits), else a factor that keeps the mean."""
        drawn, kept = np.empty((len(keys), n), dtype), float(np.float32(1.0) / np.float32(1.0 - dropout))
        noise.mask(keys, _salt(self.seed, self.step, stream), round(dropout * 65536), kept, drawn)
        return drawn


def _salt(seed: int, step: int, stream: int) -> np.uint64:
    text = f"{seed}/{step}/{stream}".encode()
    return np.uint64(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))
