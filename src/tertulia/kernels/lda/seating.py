"""Where training begins: tokens in the clusters of their documents, and in a few topics that have no cluster.

These few are for what is said in documents of all subjects. Half of all tokens begin there, the more so the more
documents their word is in; the others in their document's cluster. Without general topics such words would be among the
first of most topics, or all in one that takes a quarter of the corpus. What they give is measured by
`python -m benchmarks.sampler --parts start`.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import derive, uniform
from tertulia.kernels.lda.clusters import cluster, document_frequency
from tertulia.kernels.lda.dense import frequency

_GENERAL = 0.06  # of the topics have no cluster
_BEGIN_THERE = 0.5  # of the tokens, in general topics


def topics_of_clusters(words: I32, documents: I64, V: int, K: int, key: np.uint64, threads: int = 1) -> I32:
    """Topics [N] of all tokens; where no topic is general, those of their documents' clusters."""
    df, general = document_frequency(words, documents, V), n_general(K)
    labels = cluster(words, documents, df, K - general, derive(key, 0), threads)
    if not general:
        return np.repeat(labels, np.diff(documents))
    share, z = general_share(frequency(words, V), df), np.empty(len(words), dtype=np.int32)
    jobs = [(words, documents, *some, labels, share, K - general, general, derive(key, 1), z)
            for some in parallel.shares(documents, threads)]  # fmt: skip
    parallel.run(seat_block, jobs, threads)
    return z


def n_general(K: int) -> int:
    """How many of K topics are general: several or none, for one alone would take a quarter of the corpus.

    >>> n_general(20), n_general(50), n_general(100)
    (0, 3, 6)
    """
    general = int(_GENERAL * K)
    return general if general > 1 else 0


def general_share(tokens: I64, df: I64) -> F32:
    """Which share of each word's tokens begins in general topics [V]: so much times the documents it is in, up to all.

    >>> general_share(np.array([50, 40, 10]), np.array([10, 5, 1])).astype(float).round(2)
    array([0.7 , 0.35, 0.07])
    """
    share = np.zeros(len(df), dtype=np.float32)
    order = np.argsort(-df, kind="stable")[: np.count_nonzero(df)]
    if not len(order):
        return share
    n, d = tokens[order].astype(np.float64), df[order].astype(np.float64)
    left = _BEGIN_THERE * n.sum() - (np.cumsum(n) - n)  # if all tokens of the words before begin there
    times = left / np.cumsum((n * d)[::-1])[::-1]
    whole = int(np.argmax(times * d <= 1.0))  # so many words do
    share[order[:whole]] = 1.0
    share[order[whole:]] = times[whole] * d[whole:]
    return share


@kernel
def seat_block(
    words: I32, documents: I64, first: int, last: int, labels: I32, share: F32, general: int, n: int, key: np.uint64,
    z: I32,
) -> None:  # fmt: skip
    """The first topics of documents first..last-1: general ones, n from `general` on, or the document's cluster."""
    for d in range(first, last):
        for i in range(documents[d], documents[d + 1]):
            u, limit = uniform(key, np.uint64(i)), share[words[i]]
            z[i] = general + np.int64(u / limit * n) if u < limit else labels[d]
