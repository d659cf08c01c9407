"""Mini-batches of documents as pairs (document, word), by document and by word: what a step of online EM works on.

Step t moves the expected counts towards those of its batch by rho_t = (delay + t)^-0.9.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.jit import freeze, kernel

PARTS = 16  # of the words of a batch: fixed, for the order of sums
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
    longest: I64  # [documents] the longest documents first: what is taken last should not take long
    order: I32  # [pairs] the pairs sorted by word, words in the order in which they first come
    columns: I64  # [distinct words+1] into the order
    parts: I64  # [PARTS+1] into the columns, about equal in pairs


class Course(NamedTuple):
    """The batches of an epoch."""

    first: I64  # [batches] the first document, and behind the last one
    last: I64
    rate: F64  # [batches] rho_t
    times: F64  # [batches] how many times the batch's tokens the corpus has


class Room(NamedTuple):
    """Room for one batch per thread, each as large as the largest; see `Batch`."""

    words: I32
    counts: F32
    owner: I32
    offsets: I64
    longest: I64
    order: I32
    columns: I64
    parts: I64
    pairs: I64  # [threads] how much of it is in use
    documents: I64
    distinct: I64
    latest: I32  # [threads, V] scratch, -1 between batches


def batches(documents: I64) -> list[tuple[int, int]]:
    """Documents in mini-batches (first, last), none of them without tokens."""
    N = int(documents[-1])
    size = int(np.clip(N // _BATCHES, _SMALLEST, _LARGEST))
    ranges = parallel.cuts(documents, max(N // size, 1))
    return [(first, last) for first, last in ranges if documents[first] < documents[last]]


def course(documents: I64) -> Course:
    """The batches of an epoch over all documents."""
    N, cuts = int(documents[-1]), batches(documents)
    delay = max(_DELAY, len(cuts) * min(_DELAY_TOKENS / max(N, 1), _DELAY_SHARE))
    first, last = (freeze([cut[i] for cut in cuts], np.int64) for i in (0, 1))
    rate: F64 = (delay + np.arange(len(cuts), dtype=np.float64)) ** -_DECAY
    return Course(first, last, rate, N / np.maximum(documents[last] - documents[first], 1))


def room(documents: I64, course: Course, V: int, threads: int) -> Room:
    """Room for the batches of a course."""
    tokens = int((documents[course.last] - documents[course.first]).max(initial=1))
    most = int((course.last - course.first).max(initial=1))
    return Room(
        words=np.empty((threads, tokens), dtype=np.int32),
        counts=np.empty((threads, tokens), dtype=np.float32),
        owner=np.empty((threads, tokens), dtype=np.int32),
        offsets=np.empty((threads, most + 1), dtype=np.int64),
        longest=np.empty((threads, most), dtype=np.int64),
        order=np.empty((threads, tokens), dtype=np.int32),
        columns=np.empty((threads, tokens + 1), dtype=np.int64),
        parts=np.empty((threads, PARTS + 1), dtype=np.int64),
        pairs=np.zeros(threads, dtype=np.int64),
        documents=np.zeros(threads, dtype=np.int64),
        distinct=np.zeros(threads, dtype=np.int64),
        latest=np.full((threads, V), -1, dtype=np.int32),
    )


@kernel
def batch_at(room: Room, slot: int) -> Batch:
    """The batch that was collected there."""
    pairs, documents, distinct = room.pairs[slot], room.documents[slot], room.distinct[slot]
    return Batch(
        room.words[slot, :pairs],
        room.counts[slot, :pairs],
        room.owner[slot, :pairs],
        room.offsets[slot, : documents + 1],
        room.longest[slot, :documents],
        room.order[slot, :pairs],
        room.columns[slot, : distinct + 1],
        room.parts[slot],
    )


@kernel
def collect(words: I32, documents: I64, first: int, last: int, rows: I32, room: Room, slot: int) -> None:
    """Put the batch of documents first..last-1 into a slot; word w counts as rows[w]."""
    row, counts, owner, offsets = room.words[slot], room.counts[slot], room.owner[slot], room.offsets[slot]
    order, columns, latest = room.order[slot], room.columns[slot], room.latest[slot]
    column = np.empty(row.shape[0], dtype=np.int32)
    n = distinct = 0
    offsets[0], columns[0] = 0, 0
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
                columns[distinct] = 0
            else:
                column[n] = column[before]
            row[n], counts[n], owner[n], latest[w] = w, 1.0, d, n
            columns[column[n] + 1] += 1
            n += 1
        offsets[d + 1] = n
    room.pairs[slot], room.documents[slot], room.distinct[slot] = n, last - first, distinct
    room.longest[slot, : last - first] = np.argsort(offsets[: last - first] - offsets[1 : last - first + 1])
    _sort(column, distinct, row, order, columns, latest, n)
    for part in range(PARTS + 1):
        room.parts[slot, part] = np.searchsorted(columns[: distinct + 1], n * part // PARTS)


@kernel
def _sort(column: I32, distinct: int, row: I32, order: I32, columns: I64, latest: I32, n: int) -> None:
    """Sort the pairs by their columns, whose sizes become offsets."""
    for c in range(distinct):
        columns[c + 1] += columns[c]
    free = columns[: distinct + 1].copy()
    for i in range(n):
        order[free[column[i]]] = i
        free[column[i]] += 1
        latest[row[i]] = -1
