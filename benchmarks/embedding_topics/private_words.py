"""Words of private clusters: the second half of the budget, the same for all ways of private k-means."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from benchmarks.embedding_topics.cells import Cell, cached, summary
from benchmarks.embedding_topics.corpora import Subject, word_vectors
from benchmarks.embedding_topics.lazy import Lazy
from benchmarks.embedding_topics.private_kmeans import KMEANS, kmeans, nearest
from benchmarks.embedding_topics.scores import scores
from tertulia._arrays import F64, I64, Array
from tertulia.corpus import Vocabulary
from tertulia.corpus.vocabulary import public

DELTA = 1e-6
_WORDS, _DISTINCT, _CLUSTERS = 5_000, 40, 0.6  # of the public list; of a document; the clusters' share of mu squared
_LIVE, _TOP = 5, 25  # significant words that make a topic


def mu_of(epsilon: float, delta: float = DELTA) -> float:
    """Return the mu of Gaussian noise that is (epsilon, delta)-private (Dong, Roth, Su 2022)."""

    def excess(mu: float) -> float:
        return float(norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon + norm.logcdf(-epsilon / mu - mu / 2)) - delta)

    return float(brentq(excess, 1e-3, 50.0))


def private_words(assigned: I64, subject: Subject, mu: float, rng: np.random.Generator) -> list[list[str]]:
    """List the words of live clusters: those significantly above the noise, by their excess over expectation."""
    corpus = subject.corpus.encode(Vocabulary(public("english").words[:_WORDS]))
    K, V = subject.topics, len(corpus.vocabulary)
    document = np.repeat(np.arange(corpus.n_documents), corpus.lengths)
    pairs = np.unique(document.astype(np.int64) * V + corpus.words)
    pairs = rng.permutation(pairs)
    pairs = pairs[np.argsort(pairs // V, kind="stable")]  # the words of a document in any order
    document, words = pairs // V, pairs % V
    distinct = np.bincount(document, minlength=corpus.n_documents)
    rank = np.arange(len(pairs)) - np.repeat(np.cumsum(distinct) - distinct, distinct)
    kept = rank < _DISTINCT
    share = 1.0 / np.sqrt(np.maximum(np.minimum(distinct, _DISTINCT), 1))
    table: F64 = np.zeros((K, V))
    np.add.at(table, (assigned[document[kept]], words[kept]), share[document[kept]])
    sigma = 1.0 / mu
    table += sigma * rng.normal(size=table.shape)
    real = table > sigma * np.sqrt(2.0 * np.log(K * V))
    total = np.where(real, table, 0.0)
    expected = total.sum(axis=1, keepdims=True) * total.sum(axis=0) / max(total.sum(), 1.0)
    excess = np.where(real, table - expected, -np.inf)
    topics = []
    for row in excess:
        best = [int(v) for v in np.argsort(-row)[:_TOP] if np.isfinite(row[v])]
        if len(best) >= _LIVE:
            topics.append([corpus.vocabulary.words[v] for v in best])
    return topics


def private_kmeans(subjects: dict[str, Lazy], epsilons: tuple[float, ...], seeds: int) -> dict[str, Any]:
    """Measure the ways of private k-means by corpus and epsilon, with the same words step."""
    found: dict[str, Any] = {}
    for name, subject in subjects.items():
        found[name] = {
            way: {
                f"{epsilon:g}": summary(
                    cached([name, way, epsilon, seed], lambda: _run(subject(), way, epsilon, seed))  # noqa: B023
                    for seed in range(seeds)
                )
                for epsilon in epsilons
            }
            for way in KMEANS
        }
    return found


def _run(subject: Subject, way: str, epsilon: float, seed: int) -> Cell:
    mu, rng = mu_of(epsilon), np.random.default_rng()
    common = _public(200 if way == "server" else None)
    centres = KMEANS[way](subject.vectors, subject.topics, np.sqrt(_CLUSTERS) * mu, rng, common)
    assigned = nearest(subject.vectors, centres)
    return scores(private_words(assigned, subject, np.sqrt(1.0 - _CLUSTERS) * mu, rng), assigned, assigned, subject)


@lru_cache(maxsize=2)
def _public(clusters: int | None) -> Array:
    """Return the vectors of the most common public words, or centres of all of them."""
    with np.load(word_vectors()) as stored:
        words: Array = stored["vectors"]
    return words[:_WORDS] if clusters is None else kmeans(words, clusters, np.ones(len(words)), 0, rounds=5)
