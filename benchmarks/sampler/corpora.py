"""The corpora that trainers are compared on, in two parts each, and kept where worker processes find them.

Settings of ours were chosen on others (benchmarks/results/sampler.md): nothing was tuned on these four.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.common import OUT, data, imdb, newsgroups, say, split_heldout
from tertulia.corpus import Corpus, read
from tertulia.corpus.splits import is_heldout

Parts = tuple[Corpus, Corpus]  # to train on, held out
_FOLDER = OUT / "sampler" / "corpora"
_HELDOUT = 0.05
_MIN_DOCUMENTS = 5  # that a word must be in


def newsgroups_parts() -> Parts:
    """20 Newsgroups."""
    return _split(newsgroups(min_documents=1, max_share=1.0))


def imdb_parts() -> Parts:
    """20,000 reviews of IMDB."""
    return imdb(training=20_000)


def reuters_parts() -> Parts:
    """Reuters-21578, documents with a body."""
    return _split(read(data("reuters21578.parquet"), id="id"))


def enron_parts() -> Parts:
    """Enron's mails, each text once: 12,000 of them, in the order of a hash of their names."""
    table = pl.read_parquet(data("enron_spam.parquet")).filter(~pl.col("dup") & (pl.col("text").str.len_chars() > 0))
    table = table.cast({"id": pl.String}).sort(pl.col("id").hash(0)).head(12_000)
    return _split(Corpus.from_texts(table["text"].to_list(), table["id"].to_list()))


CORPORA: dict[str, Callable[[], Parts]] = {
    "newsgroups": newsgroups_parts,
    "imdb": imdb_parts,
    "reuters": reuters_parts,
    "enron": enron_parts,
}


def parts(name: str) -> Parts:
    """A corpus in two parts, made once."""
    folder = _FOLDER / name
    if not (folder / "heldout").exists():
        for part, corpus in zip(("train", "heldout"), CORPORA[name](), strict=True):
            corpus.save(folder / part)
    train, heldout = Corpus.load(folder / "train"), Corpus.load(folder / "heldout")
    say(f"{name}: {train}, {heldout.n_documents} documents held out")
    return train, heldout


def folder(name: str) -> Path:
    """Where the two parts are."""
    return _FOLDER / name


def _split(corpus: Corpus) -> Parts:
    held = np.array([is_heldout(name, _HELDOUT, 0) for name in corpus.table["id"]])
    return split_heldout(corpus, held, _MIN_DOCUMENTS)
