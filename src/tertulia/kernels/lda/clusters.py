"""Clusters of documents, from which training begins.

A document is the row sqrt(tf) log(D / df), of length 1. With log tf, a word that fills a document would hardly show,
and two kinds of such documents would share a cluster for ever. K-means (see `kmeans`) finds three times as many
clusters as are wanted. They are then merged two by two, the most similar first. Otherwise a large subject would have
several topics with the same words, and small subjects none.

Large corpora are clustered by a sample of their documents.
"""

# `python -m benchmarks.sampler --parts start` measures the gain of merging. Tried, with less effect: similarity that
# counts for more or less, other numbers of clusters, seeds drawn otherwise, more steps, first sweeps with a
# symmetric alpha. On 20 Newsgroups (K = 50) 2 of 8 starts with two or four candidates for a seed miss a kind of encoded
# file, and end at a perplexity of 3400 instead of 2900; none of 8 with eight (without merging).

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.jit import freeze, lean_kernel
from tertulia.kernels.core.rng import derive
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda import kmeans
from tertulia.kernels.lda.kmeans import Rows, hashes, seeds

MOST_TOPICS = 2**16  # beyond, centres have room for too few words
_SAMPLE = 1_000_000  # tokens of documents that are clustered; the others join when the clusters are there
_CELLS = 2**26  # of words x topics in the centres: beyond, rare words are left out
_STEPS = 5  # of k-means
_MORE, _ENOUGH = 3, 600  # clusters for each topic, at most 600 in all: with a thousand topics merging gives nothing
_OF_EACH = 4  # documents per cluster, at least
_LIKE = 0.5  # 1: clusters are merged by the loss of likeness, 0: by similarity alone
_LARGEST = 8  # times the mean: no two are merged into a larger one


def cluster(words: I32, documents: I64, df: I64, K: int, key: np.uint64, threads: int = 1) -> I32:
    """Find the cluster of each document [D], K in all: more clusters are found, and similar ones merged."""
    sample = _sample(documents, key)
    many = n_clusters(K, len(sample))
    weight = _word_weights(df, len(documents) - 1, many)
    place = (np.cumsum(weight > 0.0) - 1).astype(np.int32)  # of a word among those that count
    rows = rows_of(words, documents, sample, weight, place, threads)
    V = int(place[-1]) + 1
    chosen = seeds(rows, V, many, derive(key, 1), threads)
    centres, labels = kmeans.find_centres(rows, V, chosen, _STEPS, threads)
    topic = np.arange(K, dtype=np.int32)
    if many > K:
        topic = merge(*kmeans.likeness(rows, V, many, labels, threads), K)
    if len(sample) == len(documents) - 1:
        return topic[labels]
    labels = np.empty(len(documents) - 1, dtype=np.int32)
    for first, last in parallel.cuts(documents, max(1, int(documents[-1]) // _SAMPLE)):
        some = rows_of(words, documents, np.arange(first, last), weight, place, threads)
        labels[first:last] = topic[kmeans.nearest(some, many, centres, threads)]
    return labels


def n_clusters(K: int, D: int) -> int:
    """Return the number of clusters of D documents that are found before they are merged into K.

    >>> n_clusters(50, 10_000), n_clusters(50, 240), n_clusters(400, 10_000), n_clusters(1_000, 10_000)
    (150, 60, 600, 1000)
    """
    return max(K, min(_MORE * K, _ENOUGH, D // _OF_EACH))


def merge(products: F64, sizes: F64, K: int) -> I32:
    """Merge clusters two at a time, those with the least worth apart, until K are left; return the new labels.

    `products` [n, n] are those of the clusters' sums of rows, and `sizes` [n] their tokens. The worth of two clusters
    apart is the dissimilarity of their centres, times the root of the smaller one's tokens. By dissimilarity alone
    strange documents would keep clusters of their own; by tokens alone large subjects would have many clusters with the
    same words. The bound on tokens is for corpora of similar documents, such as reviews of films, where one cluster
    would take most of them.
    """
    most = _LARGEST * sizes.sum() / K
    products, sizes, into, left = products.copy(), sizes.copy(), np.arange(len(sizes)), np.ones(len(sizes), np.bool_)
    worth = np.array([_worth(products, sizes, a, most) for a in range(len(sizes))])
    for _ in range(len(sizes) - K):
        a, b = sorted(divmod(int(np.argmin(worth)), len(sizes)))
        products[a] += products[b]
        products[:, a] += products[:, b]
        sizes[a] += sizes[b]
        into[into == b], left[b] = a, False
        worth[a] = worth[:, a] = np.where(left, _worth(products, sizes, a, most), np.inf)
        worth[b] = worth[:, b] = np.inf
    return np.unique(into, return_inverse=True)[1].astype(np.int32)


def _worth(products: F64, sizes: F64, a: int, most: float) -> F64:
    """Compute the worth of cluster a and each other apart; infinite if both have more than `most` tokens together."""
    norms = np.sqrt(np.maximum(np.diag(products), 1e-12))
    found: F64 = (1.0 - products[a] / (norms[a] * norms)) * np.minimum(sizes[a], sizes) ** _LIKE
    found[(sizes[a] + sizes > most) | (np.arange(len(sizes)) == a)] = np.inf
    return found


def _word_weights(df: I64, D: int, K: int) -> F32:
    """Compute log(D / df) [V]; words beyond the room of the centres have 0."""
    weight = np.log(max(D, 1) / np.maximum(df, 1)) + 1e-3  # even words of all documents count
    room = max(1, _CELLS // padded_width(K))
    if room < len(df):
        weight[np.argsort(-df, kind="stable")[room:]] = 0.0
    found: F32 = weight.astype(np.float32)
    return found


def _sample(documents: I64, key: np.uint64) -> I64:
    """Sample documents of about _SAMPLE tokens, in order; all documents if they have fewer."""
    D, N = len(documents) - 1, int(documents[-1])
    if N <= _SAMPLE:
        return np.arange(D)
    order = np.argsort(hashes(key, D), kind="stable")
    enough = int(np.searchsorted(np.cumsum(np.diff(documents)[order]), _SAMPLE)) + 1
    return np.sort(order[:enough])


def rows_of(words: I32, documents: I64, chosen: I64, weight: F32, place: I32, threads: int = 1) -> Rows:
    """Make the rows of some documents; each thread makes its share."""
    lengths = documents[chosen + 1] - documents[chosen]
    shares = parallel.cuts(np.concatenate(([0], np.cumsum(lengths))), threads)
    made = parallel.run(_some_rows, [(words, documents, chosen[a:b], weight) for a, b in shares], threads)
    sizes, mine, values = (np.concatenate(parts) for parts in zip(*made, strict=True))
    starts = np.concatenate(([0], np.cumsum(sizes)))
    return Rows(starts, place[mine], values, lengths.astype(np.float32))


def _some_rows(words: I32, documents: I64, chosen: I64, weight: F32) -> tuple[I64, I32, F32]:
    """Return the number of words in each row, these words, and their values."""
    most = int((documents[chosen + 1] - documents[chosen]).sum())
    sizes, mine, values = np.empty(len(chosen), np.int64), np.empty(most, np.int32), np.empty(most, np.float32)
    at = np.full(len(weight), -1, dtype=np.int64)
    n = fill_rows(words, documents, freeze(chosen, np.int64), weight, at, sizes, mine, values)
    return sizes, mine[:n], values[:n]


def document_frequency(words: I32, documents: I64, V: int) -> I64:
    """Count in how many documents each word occurs."""
    df = np.zeros(V, dtype=np.int64)
    count_documents_of_words(words, documents, df, np.full(V, -1, dtype=np.int64))
    return df


@lean_kernel
def count_documents_of_words(words: I32, documents: I64, df: I64, latest: I64) -> None:
    """Add to df [V] in how many documents each word occurs; `latest` [V] holds the last such."""
    for d in range(documents.shape[0] - 1):
        for i in range(documents[d], documents[d + 1]):
            df[words[i]] += latest[words[i]] != d
            latest[words[i]] = d


@lean_kernel
def fill_rows(
    words: I32, documents: I64, chosen: I64, weight: F32, place: I64, sizes: I64, mine: I32, values: F32
) -> int:
    """Write the rows of chosen documents; return how many entries they have. `place` is where a word's last one is."""
    n = 0
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
        sizes[c] = n - first
    return n
