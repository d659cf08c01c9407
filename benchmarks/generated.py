"""Generated corpora of any size: true topics over Zipf's words, written to disk block by block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from tertulia._arrays import I32, I64
from tertulia.corpus import Corpus, TextOptions, Vocabulary, storage
from tertulia.corpus.report import ReadReport

TOPICS = 100
LENGTH = 200  # tokens of a document, on average
_SLOTS = 8  # a document's theta in eighths
_TABLE = 1 << 16  # a topic's words as a table of equally likely entries
_BLOCK = 4096  # documents made in one go


def generate(directory: Path, tokens: int, words: int = 20_000, seed: int = 0) -> Corpus:
    """Write a corpus of about as many tokens to a directory, and map it into memory."""
    rng = np.random.default_rng(seed)
    D = max(tokens // LENGTH, 1)
    documents = np.concatenate(([0], np.cumsum(rng.poisson(rng.gamma(2.0, LENGTH / 2.0, D)))))
    draft = storage.Draft(directory)
    whole = np.unique(documents)  # a document is a sentence, unless it is empty
    for name, offsets in (("documents", documents), ("sentences", whole), ("paragraphs", whole)):
        np.save(draft.folder / f"{name}.npy", offsets)
    with (draft.folder / "words.npy").open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.int32)), "fortran_order": False}
        np.lib.format.write_array_header_1_0(file, {**header, "shape": (int(documents[-1]),)})
        for block in _blocks(rng, np.diff(documents), words):
            block.tofile(file)
    table = pl.DataFrame({"id": np.arange(D)}).cast(pl.String)
    vocabulary = Vocabulary(tuple(f"w{v}" for v in range(words)))
    draft.publish(vocabulary, table, TextOptions(), ReadReport(D, D))
    return Corpus.load(directory)


def _blocks(rng: np.random.Generator, lengths: I64, V: int) -> Iterator[I32]:
    tables = table_of_topics(rng, V)
    for start in range(0, len(lengths), _BLOCK):
        n = lengths[start : start + _BLOCK]
        theta = _palettes(rng, len(n))
        document = np.repeat(np.arange(len(n)), n)
        topic = theta[document, rng.integers(_SLOTS, size=len(document))]
        yield tables[topic, rng.integers(_TABLE, size=len(document))]


def table_of_topics(rng: np.random.Generator, V: int) -> I32:
    """Each topic's words [topics, entries], a word as often as it is likely: Zipf's law, bent by topic."""
    entries = (np.arange(_TABLE) + 0.5) / _TABLE
    tables = np.empty((TOPICS, _TABLE), dtype=np.int32)
    for table in tables:
        mass = rng.gamma(0.1, size=V) / (np.arange(V) + 10.0)
        table[:] = np.searchsorted(np.cumsum(mass) / mass.sum(), entries)
    return np.minimum(tables, np.int32(V - 1))


def _palettes(rng: np.random.Generator, D: int) -> I64:
    """Each document's topics [D, slots] from Polya's urn with alpha = 1: few topics, some of them often."""
    slots = rng.integers(TOPICS, size=(D, _SLOTS))
    for s in range(1, _SLOTS):
        again = rng.random(D) < s / (s + 1.0)
        slots[again, s] = slots[again, rng.integers(s, size=D)[again]]
    return slots
