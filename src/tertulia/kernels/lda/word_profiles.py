"""Profiles of words, and first topics from words with similar profiles.

The profile of a word is the sum over the documents that hold it of their rows: sqrt(tf) idf, of length 1 (`clusters`),
without the word itself. Words of one subject are in similar documents, so their profiles point the same way. Rows are
projected to 256 random signs (Achlioptas, JCSS 2003), which keeps angles and makes the profiles of all parties one
small table that can be added up.

K-means over the profiles (`kmeans`) finds K groups of words. A word belongs to the group k with probability
∝ exp(_SHARP cos(profile, centre_k)), and brings its tokens: that is a first topic-word matrix, which a few rounds of EM
(`soft_counts`) turn into good topics.
"""

# Chosen on BBC, medical abstracts, food reviews, grants and Reuters (K = 40), where 128 dimensions end 2 % worse in
# perplexity and 512 no better; _SHARP from 5 to 12, 2,000 to 8,000 words and other powers of tokens are all within 1 %.

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import bits, derive
from tertulia.kernels.core.simd import add
from tertulia.kernels.lda import clusters, kmeans
from tertulia.kernels.lda.counts import frequency

DIMENSIONS = 256
MOST_WORDS = 4_000  # with a profile: the most frequent ones
_SIGNS = np.uint64(0x5EED)  # the key of the projection, the same everywhere: it hides nothing
_SHARP = 10.0
_STEPS, _RESTARTS = 20, 3  # of k-means
_POWER = 0.5  # of a word's tokens: its weight in k-means


def counts_of_words(words: I32, documents: I64, V: int, least: int) -> tuple[I64, I64]:
    """Count the documents that hold each word, and its tokens [V]; 0 for words in fewer than `least` documents."""
    df = clusters.document_frequency(words, documents, V)
    known = df >= least
    return np.where(known, df, 0), np.where(known, frequency(words, V), 0)


def most_frequent(df: Array) -> I64:
    """Return the words that have a profile, those in most documents, in order of their place on the list."""
    order = np.argsort(-df, kind="stable")[:MOST_WORDS]
    return np.sort(order[df[order] > 0])


def profiles(words: I32, documents: I64, V: int, chosen: I64, least: int) -> tuple[F32, I64]:
    """Return the profiles [n, DIMENSIONS] of the chosen words [n], and the number of documents in each [n].

    Words that fewer than `least` of these documents hold have no profile, and are in none. Weights (idf) are of these
    documents, too, so nothing that somebody else has said enters.
    """
    df, _ = counts_of_words(words, documents, V, least)
    weight = np.where(df > 0, np.log(max(len(documents) - 1, 1) / np.maximum(df, 1)) + 1e-3, 0.0).astype(np.float32)
    place = np.maximum(np.cumsum(weight > 0.0) - 1, 0).astype(np.int32)  # of a word among those that count
    rows = clusters.rows_of(words, documents, np.arange(len(documents) - 1), weight, place)
    counted = np.flatnonzero(weight > 0.0)
    target = np.full(V, -1, dtype=np.int64)
    target[chosen] = np.arange(len(chosen))
    found = np.zeros((len(chosen), DIMENSIONS), dtype=np.float32)
    add_profiles(rows.starts, rows.words, rows.values, signs(_SIGNS, counted), target[counted], found)
    return found, df[chosen]


def topics_of_profiles(profiles: Array, documents: Array, chosen: Array, tokens: Array, K: int, key: np.uint64) -> F64:
    """Return first topics as expected tokens [K, V]; a word without a profile belongs to all topics alike.

    `profiles` [n, DIMENSIONS] and `documents` [n] are of the chosen words [n], `tokens` [V] of all.
    """
    known = np.flatnonzero(documents > 0)
    rows = _unit_rows(profiles[known] / documents[known, None])
    sizes = np.maximum(tokens[chosen[known]], 1).astype(np.float32) ** _POWER
    cosines = _cosines_to_centres(rows, sizes, K, key)
    mass = np.exp(_SHARP * (cosines - cosines.max(axis=1, keepdims=True)))
    share = np.full((len(tokens), K), 1.0 / K)
    share[chosen[known]] = mass / mass.sum(axis=1, keepdims=True)
    return np.ascontiguousarray((share * np.maximum(tokens, 1)[:, None]).T)


def _unit_rows(x: Array) -> F32:
    lengths = np.sqrt((x * x).sum(axis=1, keepdims=True))
    found: F32 = (x / np.maximum(lengths, 1e-12)).astype(np.float32)
    return found


def _cosines_to_centres(rows: F32, sizes: F32, K: int, key: np.uint64) -> F64:
    """Return the cosines [n, K] of rows to the centres of the best of several runs of k-means."""
    n = len(rows)
    sparse = kmeans.Rows(
        np.arange(n + 1) * DIMENSIONS, np.tile(np.arange(DIMENSIONS, dtype=np.int32), n), rows.ravel(), sizes
    )
    best: F64 | None = None
    most = -np.inf
    for restart in range(_RESTARTS):
        seeds = kmeans.seeds(sparse, DIMENSIONS, K, derive(key, restart))
        centres, _ = kmeans.find_centres(sparse, DIMENSIONS, seeds, _STEPS, threads=1)
        cosines = np.einsum("nd,dk->nk", rows, centres[:, :K], dtype=np.float64)  # no BLAS: its bits vary with threads
        likeness = float((sizes * cosines.max(axis=1)).sum())
        if best is None or likeness > most:
            best, most = cosines, likeness
    assert best is not None
    return best


@kernel
def signs(key: np.uint64, words: I64) -> F32:
    """Return the random signs [n, DIMENSIONS] of words, scaled so that they keep lengths."""
    found = np.empty((words.shape[0], DIMENSIONS), dtype=np.float32)
    scale = np.float32(1.0 / np.sqrt(DIMENSIONS))
    for i in range(words.shape[0]):
        for block in range(DIMENSIONS // 64):
            drawn = bits(key, np.uint64(words[i] * (DIMENSIONS // 64) + block))
            for bit in range(64):
                up = (drawn >> np.uint64(bit)) & np.uint64(1)
                found[i, 64 * block + bit] = scale if up else -scale
    return found


@kernel
def add_profiles(starts: I64, words: I32, values: F32, signs: F32, target: I64, found: F32) -> None:
    """Add each document's projected row, without the word itself, to the profiles of its words that have one."""
    row = np.empty(DIMENSIONS, dtype=np.float32)
    for d in range(starts.shape[0] - 1):
        row[:] = 0.0
        for j in range(starts[d], starts[d + 1]):
            add(row, values[j], signs, words[j])
        for j in range(starts[d], starts[d + 1]):
            p = target[words[j]]
            if p >= 0:
                for c in range(DIMENSIONS):
                    found[p, c] += row[c] - values[j] * signs[words[j], c]


def on_grid(found: F32, bits: int) -> I32:
    """Round to whole numbers of units 2^-bits, which add up exactly."""
    return freeze(np.rint(np.ldexp(found, bits)), np.int32)
