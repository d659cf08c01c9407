"""The first topics of tokens, from clusters of documents.

A fifth of a document's tokens begin in its cluster, and the others in the home of their word, the cluster of which the
word is the greatest share: so topics begin with few words in common.
"""

# Homes instead of the clusters of other documents with the same word, and a fifth instead of half of the tokens in
# their document's cluster: K = 50, 320 sweeps, means over BBC news, abstracts, grants and reviews: diversity .612 ->
# .629, NPMI .095 -> .099, perplexity 0.4 % lower. All five together, a million tokens, 160 sweeps, one seed: .660 ->
# .671, .171 -> .176, 0.5 % higher; with no token in its document's cluster .687, .167, 2.1 % higher. Tried besides, and
# no more diverse: half of the tokens, half of the documents or common words at random; no steps of k-means; first
# sweeps with a large or with a symmetric alpha. More diverse, and worse otherwise: half as many clusters, each cut in
# two at random (.633 against .625 after 160 sweeps, perplexity 1.2 % higher); a random start (.655, 1.9 % higher).

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tertulia._arrays import F64, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import derive, uniform
from tertulia.kernels.lda.clusters import cluster
from tertulia.kernels.lda.dense import frequency

U16 = NDArray[np.uint16]
MOST_TOPICS = 2**16  # clusters are kept in two bytes
_OWN = 0.2  # of a document's tokens begin in its own cluster


def topics_of_clusters(words: I32, documents: I64, V: int, K: int, key: np.uint64, threads: int = 1) -> I32:
    """Topics [N] of all tokens."""
    labels = cluster(words, documents, V, K, derive(key, 0), threads)
    home, z = homes(words, documents, V, K, labels, threads), np.empty(len(words), dtype=np.int32)
    jobs = [(words, documents, *some, labels, home, derive(key, 1), z) for some in parallel.shares(documents, threads)]
    parallel.run(seat_block, jobs, threads)
    return z


def homes(words: I32, documents: I64, V: int, K: int, labels: I32, threads: int = 1) -> I32:
    """The cluster [V] that has the greatest share of each word among its own tokens; -1 if none has the word twice."""
    starts = np.concatenate(([0], np.cumsum(frequency(words, V))))
    by_word, home = np.empty(len(words), dtype=np.uint16), np.empty(V, dtype=np.int32)
    _sort_labels(words, documents, labels, starts[:-1].copy(), by_word)
    sizes = np.bincount(labels, weights=np.diff(documents), minlength=K)
    jobs = [(starts, by_word, sizes, *some, home) for some in parallel.cuts(starts, threads)]
    parallel.run(home_block, jobs, threads)
    return home


@kernel
def _sort_labels(words: I32, documents: I64, labels: I32, free: I64, by_word: U16) -> None:
    """The clusters of tokens, sorted by their words."""
    for d in range(documents.shape[0] - 1):
        for i in range(documents[d], documents[d + 1]):
            by_word[free[words[i]]] = labels[d]
            free[words[i]] += 1


@kernel
def home_block(starts: I64, by_word: U16, sizes: F64, first: int, last: int, home: I32) -> None:
    """The homes of words first..last-1; one token of each is left out, for it says nothing of where others are."""
    count = np.zeros(sizes.shape[0], dtype=np.int64)
    for w in range(first, last):
        for i in range(starts[w], starts[w + 1]):
            count[by_word[i]] += 1
        home[w], most = -1, 0.0
        for i in range(starts[w], starts[w + 1]):
            k = by_word[i]
            share = (count[k] - 1) / sizes[k]
            if share > most:
                home[w], most = k, share
        for i in range(starts[w], starts[w + 1]):
            count[by_word[i]] = 0


@kernel
def seat_block(
    words: I32, documents: I64, first: int, last: int, labels: I32, home: I32, key: np.uint64, z: I32
) -> None:
    """The first topics of documents first..last-1."""
    for d in range(first, last):
        for i in range(documents[d], documents[d + 1]):
            at = home[words[i]]
            z[i] = labels[d] if at < 0 or uniform(key, np.uint64(i)) < _OWN else at
