"""The corpora that trainers are compared on, in two parts each, and kept where worker processes find them.

Peers are met on `CORPORA`. Settings of ours were chosen on `SMALL`, on `TOGETHER` and on docstrings of packages that
happened to be installed (kernels/lda/fitting.py, clusters.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.common import OUT, data, imdb, newsgroups, say, split_heldout
from tertulia.corpus import Corpus, read
from tertulia.corpus.splits import is_heldout

Parts = tuple[Corpus, Corpus]  # to train on, held out
_FOLDER = OUT / "sampler" / "corpora"
_HELDOUT, _HELDOUT_OF_SMALL = 0.05, 0.1
_MIN_DOCUMENTS = 5  # that a word must be in
_LONG = 60  # characters: most titles are no longer


def newsgroups_parts() -> Parts:
    """Load 20 Newsgroups."""
    return _split(newsgroups(min_documents=1, max_share=1.0))


def imdb_parts() -> Parts:
    """Load 20,000 reviews of IMDB."""
    return imdb(training=20_000)


def reuters_parts() -> Parts:
    """Load Reuters-21578, documents with a body."""
    return _split(read(data("reuters21578.parquet"), id="id"))


def enron_parts() -> Parts:
    """Load Enron's mails, each text once: 12,000 of them, in the order of a hash of their names."""
    table = pl.read_parquet(data("enron_spam.parquet")).filter(~pl.col("dup") & (pl.col("text").str.len_chars() > 0))
    table = table.cast({"id": pl.String}).sort(pl.col("id").hash(0)).head(12_000)
    return _split(Corpus.from_texts(table["text"].to_list(), table["id"].to_list()))


def small_parts(file: str) -> Parts:
    """Load a smaller corpus, a tenth held out."""
    return _split(read(data(file), id="id"), _HELDOUT_OF_SMALL)


CORPORA: dict[str, Callable[[], Parts]] = {
    "newsgroups": newsgroups_parts,
    "imdb": imdb_parts,
    "reuters": reuters_parts,
    "enron": enron_parts,
}


def together_parts() -> Parts:
    """Load the smaller corpora and two of titles, all together."""
    files = [f"{name}.parquet" for name in ("bbc_news", "medical_abstracts_2888", "nsf_awards_fy2026",
             "amazon_fine_food_6k", "dblp_octis", "mag_titles_fos")]  # fmt: skip
    texts = [text for file in files for text in pl.read_parquet(data(file))["text"].to_list() if len(text) > _LONG]
    return _split(Corpus.from_texts(texts, [str(i) for i in range(len(texts))]))


SMALL: dict[str, Callable[[], Parts]] = {
    "bbc": partial(small_parts, "bbc_news.parquet"),
    "medical": partial(small_parts, "medical_abstracts_2888.parquet"),
    "grants": partial(small_parts, "nsf_awards_fy2026.parquet"),
    "reviews": partial(small_parts, "amazon_fine_food_6k.parquet"),
}
TOGETHER = {"together": together_parts}


def parts(name: str) -> Parts:
    """Return a corpus in two parts, made once."""
    folder = _FOLDER / name
    if not (folder / "heldout").exists():
        for part, corpus in zip(("train", "heldout"), (CORPORA | SMALL | TOGETHER)[name](), strict=True):
            corpus.save(folder / part)
    train, heldout = Corpus.load(folder / "train"), Corpus.load(folder / "heldout")
    say(f"{name}: {train}, {heldout.n_documents} documents held out")
    return train, heldout


def folder(name: str) -> Path:
    """Return the folder of the two parts."""
    return _FOLDER / name


def _split(corpus: Corpus, share: float = _HELDOUT) -> Parts:
    held = np.array([is_heldout(name, share, 0) for name in corpus.table["id"]])
    return split_heldout(corpus, held, _MIN_DOCUMENTS)
