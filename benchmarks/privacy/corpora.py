"""The corpora of the privacy benchmark: generated ones with known topics, and real ones over a public word list."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl

import tertulia as tt
from benchmarks.common import data, say
from tertulia._arrays import F64, I32, I64
from tertulia.corpus import Corpus, TextOptions, Vocabulary, read
from tertulia.corpus.report import ReadReport
from tertulia.corpus.vocabulary import propose, public

TOPICS, LENGTH, HELDOUT = 20, 100, 1000
WORDS = 5_000  # of the public list
_TOKENS = TextOptions()  # numbers of words are all that counts here


class Subject(NamedTuple):
    """Documents to train on and held-out ones, over a list of words; generated ones have true topics."""

    train: Corpus
    heldout: Corpus
    topics: int  # to ask for
    true: F64 | None = None


@lru_cache(maxsize=4)
def source(name: str) -> tuple[F64, F64]:
    """Return topics and alpha of an LDA of 20 topics on a real corpus, which generates documents."""
    corpus = read(data(name))
    corpus = corpus.encode(Vocabulary(tuple(propose(corpus, 8, 0.4).words)))
    model = tt.LDA(topics=TOPICS, random_state=1).fit(corpus).topics_
    return np.asarray(model.topic_word, np.float64), np.asarray(model.alpha, np.float64)


def generated(documents: int, name: str = "bbc_octis.parquet", length: int = LENGTH, seed: int = 0) -> Subject:
    """Draw documents from the topics of a real corpus, by LDA itself."""
    topics, alpha = source(name)
    rng = np.random.default_rng([seed, documents])
    words = Vocabulary(tuple(f"word{v}" for v in range(topics.shape[1])))
    made = [_corpus(*_draw(topics, alpha, n, length, rng), words) for n in (documents, HELDOUT)]
    return Subject(made[0], made[1], TOPICS, topics)


def _draw(topics: F64, alpha: F64, n: int, length: int, rng: np.random.Generator) -> tuple[I32, I64]:
    lengths = np.maximum(rng.poisson(length, n), 2)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    counts = np.array([rng.multinomial(L, theta) for L, theta in zip(lengths, rng.dirichlet(alpha, n), strict=True)])
    of_token = np.repeat(np.tile(np.arange(len(topics)), n), counts.ravel())
    words, sums = np.empty(offsets[-1], np.int32), np.cumsum(topics, axis=1)
    for k, row in enumerate(sums / sums[:, -1:]):
        mine = np.flatnonzero(of_token == k)
        words[mine] = np.minimum(np.searchsorted(row, rng.random(len(mine))), topics.shape[1] - 1)
    document = np.repeat(np.arange(n), lengths)
    return words[np.lexsort((rng.random(len(words)), document))], offsets  # tokens of a document in any order


def _corpus(words: I32, offsets: I64, vocabulary: Vocabulary) -> Corpus:
    table = pl.DataFrame({"id": np.arange(len(offsets) - 1)}).cast(pl.String)
    whole = np.unique(offsets)
    report = ReadReport(len(offsets) - 1, len(offsets) - 1)
    return Corpus(words, offsets, whole, whole, vocabulary, table, _TOKENS, report)


def real(name: str, topics: int) -> Subject:
    """Read a real corpus over the public word list; a tenth of it is held out."""
    say(f"reading {name}")
    corpus = read(data(name)).encode(Vocabulary(public("english").words[:WORDS]))
    corpus = corpus.select(corpus.lengths > 1)
    heldout = np.random.default_rng(0).random(corpus.n_documents) < min(0.1, 2000 / corpus.n_documents)
    return Subject(corpus.select(~heldout), corpus.select(heldout), topics)


REAL: dict[str, Callable[[], Subject]] = {
    "bbc": lambda: real("bbc_news.parquet", 10),
    "newsgroups": lambda: real("newsgroups20.parquet", 20),
    "enron": lambda: real("enron_spam.parquet", 20),
    "dblp": lambda: real("dblp_octis.parquet", 20),
}
TUNED_ON = ("medical_abstracts_2888.parquet", "reuters21578.parquet")
