"""Where training begins: documents in K clusters, by spherical k-means (Dhillon and Modha, Machine Learning 2001).

A document is the row sqrt(tf) log(D / df), of length 1: with log tf a word that fills a document would hardly show, and
two kinds of such documents would share a cluster for ever. Seeds are documents: of some candidates that are unlike
those chosen so far the one that more tokens' documents resemble (cf. k-means++, Arthur and Vassilvitskii, SODA 2007).
Documents count by their tokens: else a few that are long and strange would find no cluster of their own. Then half of a
document's tokens begin in its cluster, and each of the others in that of another document with the same word.

Large corpora are clustered by a sample of their documents; so many topics that seeding would take longer than training
have seeds at random.
"""

# Perplexity after 120 sweeps on 2,593 medical abstracts, K = 100, two seeds: 1266 and 1278; from a random start 1301
# and 1310, and NPMI .04 instead of .09: clusters spare topics of two themes, which sampling seldom takes apart. On 20
# Newsgroups (K = 50) 2 of 8 starts with two or four candidates miss a kind of encoded file, and end at 3400 instead of
# 2900; none of 8 with eight.
#
# Tried for more diverse topics, K = 50. First sweeps with a large, a falling or a symmetric alpha, no steps of k-means,
# half of the documents or the common words at random: no more diverse. A fifth of the tokens in their document's
# cluster, the others in the home of their word, the cluster of which it is the greatest share: on four corpora of
# 140,000 to 330,000 tokens diversity .612 -> .629, NPMI .095 -> .099, perplexity 0.4 % lower after 320 sweeps; but on
# four of 1.2 to 1.9 million, ten trainings, .609 -> .612, and perplexity 0.6 % higher (benchmarks/results/sampler.md).

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertulia._arrays import F32, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.cells import first_above
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import bits, derive, uniform
from tertulia.kernels.core.simd import add
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.dense import frequency

U16 = NDArray[np.uint16]
MOST_TOPICS = 2**16  # clusters are kept in two bytes
_SAMPLE = 1_000_000  # tokens of documents that are clustered; the others join when the clusters are there
_SEEDED = 2_000  # topics up to which seeds are chosen with care: the cost is their number times the sample
_CELLS = 2**26  # of words x topics in the centres: beyond, rare words are left out
_STEPS = 5  # of k-means
_CANDIDATES = 8  # for a seed; with many topics two, for the sake of time
_POWER = 6  # of the distance to the nearest seed, by which candidates are drawn
_OWN = 0.5  # of a document's tokens begin in its own cluster; with 0.3 topics of SentenceLDA, which begins so, are lost


class Rows(NamedTuple):
    """Documents as sparse rows of length 1."""

    starts: I64  # [documents+1]
    words: I32
    values: F32
    sizes: F32  # [documents] tokens: by so much each counts, as it does in the likelihood


def topics_of_clusters(words: I32, documents: I64, V: int, K: int, key: np.uint64, threads: int = 1) -> I32:
    """Topics [N] of all tokens."""
    labels = cluster(words, documents, V, K, derive(key, 0), threads)
    starts = np.concatenate(([0], np.cumsum(frequency(words, V))))
    by_word, z = np.empty(len(words), dtype=np.uint16), np.empty(len(words), dtype=np.int32)
    _sort_labels(words, documents, labels, starts[:-1].copy(), by_word)
    jobs = [(words, documents, *some, labels, starts, by_word, derive(key, 1), z)
            for some in parallel.shares(documents, threads)]  # fmt: skip
    parallel.run(seat_block, jobs, threads)
    return z


def cluster(words: I32, documents: I64, V: int, K: int, key: np.uint64, threads: int = 1) -> I32:
    """The cluster of each document [D]."""
    weight = _word_weights(words, documents, V, K)
    place = (np.cumsum(weight > 0.0) - 1).astype(np.int32)  # of words that count, among these
    V, sample = int(place[-1]) + 1, _sample(documents, key)
    rows = _rows(words, documents, sample, weight, place)
    found = _Found(rows, V, K, seeds(rows, V, K, derive(key, 1)))
    for _ in range(_STEPS):
        found.improve(threads)
    if len(sample) == len(documents) - 1:
        return found.nearest(rows, threads)
    labels = np.empty(len(documents) - 1, dtype=np.int32)
    for first, last in parallel.cuts(documents, max(1, int(documents[-1]) // _SAMPLE)):
        labels[first:last] = found.nearest(_rows(words, documents, np.arange(first, last), weight, place), threads)
    return labels


class _Found:
    """The centres of clusters, [V, padded K], and the documents that they come from."""

    def __init__(self, rows: Rows, V: int, K: int, chosen: I64) -> None:
        self.rows, self.K = rows, K
        self.centres = np.zeros((V, padded_width(K)), dtype=np.float32)
        for k, d in enumerate(chosen):
            mine = slice(rows.starts[d], rows.starts[d + 1])
            self.centres[rows.words[mine], k] = rows.values[mine]

    def nearest(self, rows: Rows, threads: int) -> I32:
        """The cluster that each row is most similar to."""
        labels = np.empty(len(rows.starts) - 1, dtype=np.int32)
        jobs = [(*rows, *some, self.K, self.centres, labels) for some in parallel.shares(rows.starts, threads)]
        parallel.run(label_block, jobs, threads)
        return labels

    def improve(self, threads: int) -> None:
        """One step of k-means; a cluster that loses all its documents keeps its centre."""
        labels = self.nearest(self.rows, threads)
        _clear_columns(self.centres, np.bincount(labels, minlength=self.centres.shape[1]))
        _add_rows(*self.rows, labels, self.centres)
        norms = np.sqrt(np.einsum("wk,wk->k", self.centres, self.centres, dtype=np.float64))
        self.centres *= (1.0 / np.maximum(norms, 1e-12)).astype(np.float32)


def _word_weights(words: I32, documents: I64, V: int, K: int) -> F32:
    """log(D / df) [V]; 0 for words beyond those that the centres have room for."""
    df = document_frequency(words, documents, V)
    weight = np.log(np.maximum(len(documents) - 1, 1) / np.maximum(df, 1)) + 1e-3  # even words of all documents count
    room = max(1, _CELLS // padded_width(K))
    if room < V:
        weight[np.argsort(-df, kind="stable")[room:]] = 0.0
    found: F32 = weight.astype(np.float32)
    return found


def _sample(documents: I64, key: np.uint64) -> I64:
    """So many documents, in order; all, if they are few."""
    D, N = len(documents) - 1, int(documents[-1])
    if N <= _SAMPLE:
        return np.arange(D)
    order = np.argsort(_hashes(key, D), kind="stable")
    enough = int(np.searchsorted(np.cumsum(np.diff(documents)[order]), _SAMPLE)) + 1
    return np.sort(order[:enough])


def _rows(words: I32, documents: I64, chosen: I64, weight: F32, place: I32) -> Rows:
    size = int((documents[chosen + 1] - documents[chosen]).sum())
    starts, mine = np.zeros(len(chosen) + 1, dtype=np.int64), np.empty(size, dtype=np.int32)
    values = np.empty(size, dtype=np.float32)
    n = fill_rows(words, documents, freeze(chosen, np.int64), weight, starts, mine, values)
    sizes = (documents[chosen + 1] - documents[chosen]).astype(np.float32)
    return Rows(starts, place[mine[:n]], values[:n], sizes)


def seeds(rows: Rows, V: int, K: int, key: np.uint64) -> I64:
    """Documents [K] to begin with; the same one twice where there are too few."""
    D = len(rows.starts) - 1
    if K > _SEEDED or K >= D:
        return np.argsort(_hashes(key, max(D, 1)), kind="stable")[np.arange(K) % max(D, 1)]
    return choose_seeds(*rows, V, K, max(2, min(_CANDIDATES, _SEEDED // K)), key)


@kernel
def _hashes(key: np.uint64, n: int) -> NDArray[np.uint64]:
    found = np.empty(n, dtype=np.uint64)
    for i in range(n):
        found[i] = bits(key, np.uint64(i))
    return found


@kernel
def document_frequency(words: I32, documents: I64, V: int) -> I64:
    """In how many documents each word occurs."""
    df, latest = np.zeros(V, dtype=np.int64), np.full(V, -1, dtype=np.int64)
    for d in range(documents.shape[0] - 1):
        for i in range(documents[d], documents[d + 1]):
            df[words[i]] += latest[words[i]] != d
            latest[words[i]] = d
    return df


@kernel
def fill_rows(words: I32, documents: I64, chosen: I64, weight: F32, starts: I64, mine: I32, values: F32) -> int:
    """Write the rows of chosen documents; return how many entries they have."""
    place, n = np.full(weight.shape[0], -1, dtype=np.int64), 0
    for c in range(chosen.shape[0]):
        first = n
        for i in range(documents[chosen[c]], documents[chosen[c] + 1]):
            w = words[i]
            if weight[w] == 0.0:
                continue
            if place[w] < first:
                place[w], mine[n], values[n] = n, w, 0.0
                n += 1
            values[place[w]] += np.float32(1.0)
        norm = 0.0
        for j in range(first, n):
            values[j] = np.sqrt(values[j]) * weight[mine[j]]
            norm += values[j] * values[j]
        for j in range(first, n):
            values[j] /= np.sqrt(norm)
        starts[c + 1] = n
    return n


@kernel
def choose_seeds(
    starts: I64, words: I32, values: F32, sizes: F32, V: int, K: int, candidates: int, key: np.uint64
) -> I64:
    """K documents, each the best of some candidates."""
    D = starts.shape[0] - 1
    best, likeness = (
        np.zeros(D, dtype=np.float32),
        np.empty((2, D), dtype=np.float32),
    )  # of the best candidate and of the next
    chosen, upto, row = np.empty(K, dtype=np.int64), np.empty(D), np.zeros(V, dtype=np.float32)
    for k in range(K):
        total = 0.0
        for d in range(D):
            total += sizes[d] * max(1.0 - best[d], 1e-6) ** _POWER
            upto[d] = total
        most, better = -1.0, 0
        for c in range(candidates):
            seed, gain, mine = first_above(upto, total * uniform(key, np.uint64(candidates * k + c))), 0.0, 1 - better
            for j in range(starts[seed], starts[seed + 1]):
                row[words[j]] = values[j]
            for d in range(D):
                same = np.float32(0.0)
                for j in range(starts[d], starts[d + 1]):
                    same += values[j] * row[words[j]]
                likeness[mine, d] = max(same, best[d])
                gain += sizes[d] * likeness[mine, d]
            for j in range(starts[seed], starts[seed + 1]):
                row[words[j]] = 0.0
            if gain > most:
                most, better, chosen[k] = gain, mine, seed
        for d in range(D):  # numba compiles texts for the error that a slice might raise: two seconds
            best[d] = likeness[better, d]
    return chosen


@kernel
def label_block(
    starts: I64, words: I32, values: F32, sizes: F32, first: int, last: int, K: int, centres: F32, labels: I32
) -> None:
    """The nearest of K centres of rows first..last-1."""
    score = np.empty(centres.shape[1], dtype=np.float32)
    for d in range(first, last):
        score[:] = 0.0
        for j in range(starts[d], starts[d + 1]):
            add(score, values[j], centres, np.int64(words[j]))
        best = 0
        for k in range(1, K):
            if score[k] > score[best]:
                best = k
        labels[d] = best


@kernel
def _clear_columns(centres: F32, sizes: I64) -> None:
    for w in range(centres.shape[0]):
        for k in range(centres.shape[1]):
            if sizes[k] > 0:
                centres[w, k] = 0.0


@kernel
def _add_rows(starts: I64, words: I32, values: F32, sizes: F32, labels: I32, centres: F32) -> None:
    for d in range(labels.shape[0]):
        for j in range(starts[d], starts[d + 1]):
            centres[words[j], labels[d]] += sizes[d] * values[j]


@kernel
def _sort_labels(words: I32, documents: I64, labels: I32, free: I64, by_word: U16) -> None:
    """The clusters of tokens, sorted by their words."""
    for d in range(documents.shape[0] - 1):
        for i in range(documents[d], documents[d + 1]):
            by_word[free[words[i]]] = labels[d]
            free[words[i]] += 1


@kernel
def seat_block(
    words: I32, documents: I64, first: int, last: int, labels: I32, starts: I64, by_word: U16, key: np.uint64, z: I32
) -> None:
    """The first topics of documents first..last-1."""
    for d in range(first, last):
        for i in range(documents[d], documents[d + 1]):
            u, w = uniform(key, np.uint64(i)), words[i]
            if u < _OWN:
                z[i] = labels[d]
            else:
                z[i] = by_word[starts[w] + np.int64((u - _OWN) / (1.0 - _OWN) * (starts[w + 1] - starts[w]))]
