"""Mini-batches of documents as pairs (document, word), by document and by word: what a step of online EM works on.

Step t moves the expected counts towards those of its batch by rho_t = (delay + t)^-0.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tertulia.arrays import F32, I32, I64
from tertulia.kernels import blocks
from tertulia.kernels.compiled import kernel

_BATCHES = 200  # in an epoch, unless that makes them too small to be worth starting or too large to be held
_SMALLEST, _LARGEST = 250, 50_000  # tokens of a batch
_DECAY = 0.9
_DELAY = 2.0  # batches; small ones get a longer delay, of so many tokens but at most this share of the epoch:
_DELAY_TOKENS, _DELAY_SHARE = 10_000, 0.05  # topics must not be those of the first few documents


class Batch(NamedTuple):
    """The distinct words of each document of a mini-batch, by document and by word."""

    words: I32  # [pairs] sorted by document
    counts: F32  # [pairs]
    owner: I32  # [pairs] the document of a pair
    offsets: I64  # [documents+1] into the pairs
    order: I32  # [pairs] the pairs sorted by word, words in the order in which they first come
    columns: I64  # [distinct words+1] into the order


def batches(documents: I64) -> list[tuple[int, int]]:
    """Documents in mini-batches (first, last), none of them without tokens."""
    N = int(documents[-1])
    size = int(np.clip(N // _BATCHES, _SMALLEST, _LARGEST))
    ranges = blocks.cuts(documents, max(N // size, 1))
    return [(first, last) for first, last in ranges if documents[first] < documents[last]]


def steps(words: I32, documents: I64, rows: I32, V: int) -> Iterator[tuple[Batch, float, float]]:
    """The batches of an epoch, each with its rate rho_t and with how many times its tokens the corpus has.

    Word w counts as row rows[w] of V.
    """
    N, cuts = len(words), batches(documents)
    delay = max(_DELAY, len(cuts) * min(_DELAY_TOKENS / max(N, 1), _DELAY_SHARE))
    latest = np.full(V, -1, dtype=np.int32)
    for t, (first, last) in enumerate(cuts):
        batch = collect(words, documents, first, last, rows, latest)
        yield batch, (delay + t) ** -_DECAY, N / int(documents[last] - documents[first])


@kernel
def collect(words: I32, documents: I64, first: int, last: int, rows: I32, latest: I32) -> Batch:
    """The batch of documents first..last-1; word w counts as rows[w]. `latest` [rows] is scratch, -1 between calls."""
    N = documents[last] - documents[first]
    row, counts = np.empty(N, dtype=np.int32), np.empty(N, dtype=np.float32)
    owner, column = np.empty(N, dtype=np.int32), np.empty(N, dtype=np.int32)
    offsets, columns = np.zeros(last - first + 1, dtype=np.int64), np.zeros(N + 1, dtype=np.int64)
    n = distinct = 0
    for d in range(last - first):
        for i in range(documents[first + d], documents[first + d + 1]):
            w = rows[words[i]]
            before = latest[w]  # the last pair of this word, if there was one
            if before >= offsets[d]:
                counts[before] += np.float32(1.0)
                continue
            if before < 0:
                column[n] = distinct
                distinct += 1
            else:
                column[n] = column[before]
            row[n], counts[n], owner[n], latest[w] = w, 1.0, d, n
            columns[column[n] + 1] += 1
            n += 1
        offsets[d + 1] = n
    columns = np.cumsum(columns[: distinct + 1])
    free, order = columns.copy(), np.empty(n, dtype=np.int32)
    for i in range(n):
        order[free[column[i]]] = i
        free[column[i]] += 1
        latest[row[i]] = -1
    return Batch(row[:n], counts[:n], owner[:n], offsets, order, columns)
