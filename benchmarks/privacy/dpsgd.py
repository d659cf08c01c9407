"""What ProdLDA is worth under differential privacy for documents: gFedNTM's mode `doc`, three parties, secure sums.

NPMI (ten top words, in the private corpus) and diversity (25 top words), by epsilon of a document over the whole run at
delta 1e-6; "none" is the same training without noise or clipping. `measure_beside` has other methods over the same
words. The settings were fixed on Enron, which is not among the corpora. The public list holds the most frequent words
of Reuters and IMDB, for titles those of other titles. The number of documents is declared as a round number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch

from benchmarks.common import data, imdb, say
from tertulia import LDA, GFedNTM, ProdLDA, Topics
from tertulia.corpus import Corpus, Vocabulary, read
from tertulia.corpus.vocabulary import propose
from tertulia.metrics import npmi, topic_diversity

EPSILONS = ("none", 8.0, 3.0)
WORDS, MAX_SHARE, PARTIES = 1000, 0.1, 3
NETWORK: dict[str, Any] = {"topics": 10, "hidden": (50,), "dropout": 0.0, "learning_rate": 0.02, "rounds": 300}
RATE = 0.1  # of the documents in a step


class Subject(NamedTuple):
    """A corpus, and the public corpora that its word list is from."""

    read: Callable[[], Corpus]
    public: Callable[[], Sequence[Corpus]]
    declared: int  # documents


def _titles(name: str, rows: int | None = None) -> Corpus:
    table = pl.read_parquet(data(name)).head(rows or 1 << 30)
    return Corpus.from_texts(table["text"].to_list(), [str(n) for n in range(len(table))])


def _prose() -> Sequence[Corpus]:
    return read(data("reuters21578.parquet"), id="id"), imdb(5000)[0]


SUBJECTS = {
    "bbc": Subject(lambda: read(data("bbc_news.parquet"), id="id"), _prose, 2000),
    "newsgroups20": Subject(lambda: read(data("newsgroups20.parquet"), id="id"), _prose, 19_000),
    "dblp": Subject(lambda: _titles("dblp_octis.parquet"), lambda: [_titles("mag_titles_fos.parquet")], 54_000),
}


def measure(quick: bool) -> dict[str, dict[str, list[float]]]:
    """Measure NPMI and diversity of mode `doc` by corpus and epsilon, means over seeds (three, or one)."""
    torch.set_num_threads(1)
    return _by_corpus(quick, {str(epsilon): partial(_neural, epsilon) for epsilon in EPSILONS})


def measure_beside(quick: bool) -> dict[str, dict[str, list[float]]]:
    """Measure the same, without privacy, of LDA and of ProdLDA as it is by default."""
    torch.set_num_threads(1)
    return _by_corpus(quick, {"lda": _pooled_lda, "prodlda": _pooled_prodlda})


class Prepared(NamedTuple):
    """A corpus over its public words."""

    corpus: Corpus
    words: dict[str, Any]  # the settings of the vocabulary
    declared: int

    @property
    def parties(self) -> dict[str, Corpus]:
        """The documents, dealt out to the parties."""
        places = np.arange(self.corpus.n_documents) % PARTIES
        return {f"party{n}": self.corpus.select(places == n) for n in range(PARTIES)}


_Way = Callable[[Prepared, int], Topics]


def _by_corpus(quick: bool, ways: dict[str, _Way]) -> dict[str, dict[str, list[float]]]:
    names = ("bbc", "newsgroups20") if quick else tuple(SUBJECTS)
    return {name: _by_way(name, ways, 1 if quick else 3) for name in names}


def _by_way(name: str, ways: dict[str, _Way], seeds: int) -> dict[str, list[float]]:
    subject = SUBJECTS[name]
    words = _public_words(subject.public())
    corpus = subject.read().encode(Vocabulary(words))
    corpus = corpus.select(corpus.lengths > 0)
    prepared, found = Prepared(corpus, {"mode": "public", "words": words}, subject.declared), {}
    for way, fit in ways.items():
        models = [fit(prepared, seed) for seed in range(seeds)]
        scores = np.array([[float(npmi(model, corpus).mean), float(topic_diversity(model))] for model in models])
        topics = [model.n_topics for model in models]
        say(f"{name}, {way}: NPMI and diversity {scores.round(3).tolist()}, {topics} topics")
        found[way] = [round(float(score), 4) for score in scores.mean(axis=0)]
    return found


def _public_words(corpora: Sequence[Corpus]) -> tuple[str, ...]:
    """Return the words with the largest mean share of documents, but for those that are in too many."""
    shares: dict[str, float] = {}
    common: set[str] = set()
    for corpus in corpora:
        found = propose(corpus, 2)
        for word, count in zip(found.words, np.asarray(found.counts) / corpus.n_documents, strict=True):
            shares[word] = shares.get(word, 0.0) + float(count)
            common |= {word} if count > MAX_SHARE else set()
    ranked = sorted((word for word in shares if word not in common), key=lambda word: (-shares[word], word))
    return tuple(ranked[:WORDS])


def _neural(epsilon: float | str, prepared: Prepared, seed: int) -> Topics:
    settings: dict[str, Any] = {**NETWORK, "vocabulary": prepared.words, "seed": seed}
    options: dict[str, Any] = {"heldout": 0.0, "seed": seed}
    if epsilon == "none":
        batch = max(2, round(RATE * prepared.corpus.n_documents))
        settings |= {"normalisation": "layer", "batch_size": batch, "epochs": 10_000}
    else:
        settings |= {"mode": "doc", "epsilon": epsilon, "declared_documents": prepared.declared}
        settings |= {"sampling_rate": RATE}
        options["federation"] = {"secure": True}
    return GFedNTM(**settings).fit(prepared.parties, **options)


def _pooled_lda(prepared: Prepared, seed: int) -> Topics:
    words: Any = prepared.words
    return LDA(topics=NETWORK["topics"], sweeps=100, vocabulary=words).fit(prepared.corpus, seed=seed).topics_


def _pooled_prodlda(prepared: Prepared, seed: int) -> Topics:
    words: Any = prepared.words
    return ProdLDA(topics=NETWORK["topics"], epochs=50, vocabulary=words).fit(prepared.corpus, seed=seed).topics_
