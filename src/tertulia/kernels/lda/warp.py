"""WarpLDA (Chen, Li, Zhu and Chen, VLDB 2016): Metropolis-Hastings moves at a cost that grows with neither K nor V.

Each token holds a topic and a proposal, in four bytes. A sweep goes over the words, then over the documents. A word
judges the proposals of its tokens, which their documents made, and then proposes others for the documents to judge:
    word w     accepts s for z with min(1, (C_ws + beta) (C_z + V beta) / ((C_wz + beta) (C_s + V beta)))
               proposes k with probability ∝ C_wk + beta: the topic of another of its tokens, or any topic
    document d accepts s for z with min(1, (C_ds + alpha_s) (C_z + V beta) / ((C_dz + alpha_z) (C_s + V beta)))
               proposes k with probability ∝ C_dk + alpha_k: the topic of another of its tokens, or one from alpha
We depart from the paper in two points, at no cost. The token itself is left out of all these counts; with it in, 160
sweeps of 20 Newsgroups (K = 100, cold) give a perplexity of 899, where here 80 give 853. And a word's or document's own
counts follow each move at once. One proposal per token and pass: a prototype with two was no faster to any perplexity.

This is an approximation, with no posterior of its own: the counts of topics C_k stand still during a pass, and so do
the counts that a proposal was drawn from, although other tokens of that document (word) move before it is judged. On
the seven tokens of the tests the total variation from the posterior is 0.074; without the departures 0.079, with the
first alone 0.175.
"""

# CPU seconds to a completion perplexity on 20 Newsgroups after the same warm start (one run each on a loaded core,
# interpolated between scores; phi at its mean):
#   K = 100    792:  sparse 0.9, warp 1.7        K = 1000  797:  sparse 2.1, warp 2.3, then flat
#   K = 300    784:  sparse 0.9, warp 2.1        K = 3000  836:  sparse 4.5, warp 2.3
# From a random start: K = 100, 853: sparse 4.4, warp 3.7; K = 1000, 842: sparse 6.3, warp 2.9; K = 10,000, 875: sparse
# 10.1, warp 4.4. So warp is for K beyond 2000, for random starts from K = 1000 on, and where
# memory is tight: 12 bytes per token with its word, and nothing that grows with K x V.

from __future__ import annotations

from typing import Any

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.guide_table import guide_table, search
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import derive, uniform, uniform32
from tertulia.kernels.lda.word_columns import U32, Columns, check_topic_count, parts

_LOW = np.uint32(0xFFFF)
_HIGH = np.uint32(16)
_GAP = 16  # between counts of different threads: on one line of the cache they would slow each other


def pack(places: U32, z: I32, threads: int = 1) -> U32:
    """Pack topics [N] at their places, each as its own proposal, which changes nothing."""
    packed = np.empty(len(z), dtype=np.uint32)
    parallel.run(
        _pack_block, [(places, freeze(z, np.int32), packed, *ends) for ends in parts(len(z), threads)], threads
    )
    return packed


def unpack(places: U32, packed: U32, threads: int = 1) -> I32:
    """Unpack the topics [N] in the order of tokens."""
    z = np.empty(len(packed), dtype=np.int32)
    parallel.run(_unpack_block, [(places, packed, z, *ends) for ends in parts(len(z), threads)], threads)
    return z


@kernel
def _pack_block(places: U32, z: I32, packed: U32, first: int, last: int) -> None:
    for i in range(first, last):
        packed[places[i]] = z[i] << 16 | z[i]


@kernel
def _unpack_block(places: U32, packed: U32, z: I32, first: int, last: int) -> None:
    for i in range(first, last):
        z[i] = packed[places[i]] >> _HIGH


def sweep(
    documents: I64, columns: Columns, packed: U32, ck: I64, alpha: F64, beta: float, key: np.uint64, threads: int
) -> tuple[I64, int]:
    """Judge and propose twice for every token, in place; return the counts of topics [K] and how many moves there were.

    `packed` [N] and the counts `ck` of its topics come from `pack` or from the last sweep.
    """
    check_topic_count(len(alpha))
    ck, by_words = word_pass(columns, packed, ck, beta, key, threads)
    ck, by_documents = document_pass(documents, columns, packed, ck, alpha, beta, key, threads)
    return ck, by_words + by_documents


def word_pass(columns: Columns, packed: U32, ck: I64, beta: float, key: np.uint64, threads: int) -> tuple[I64, int]:
    """Do the first half of a sweep."""
    arrays = (columns.starts, packed, beta, derive(key, 0), derive(key, 1))
    return half_sweep(word_block, columns.starts, arrays, ck, (len(columns.starts) - 1) * beta, threads)


def document_pass(
    documents: I64, columns: Columns, packed: U32, ck: I64, alpha: F64, beta: float, key: np.uint64, threads: int
) -> tuple[I64, int]:
    """Do the second half of a sweep."""
    longest = int(np.diff(documents).max(initial=0))
    prior = (freeze(alpha, np.float32), *guide_table(alpha))
    arrays = (documents, columns.places, packed, longest, *prior, derive(key, 2), derive(key, 3))
    return half_sweep(document_block, documents, arrays, ck, (len(columns.starts) - 1) * beta, threads)


def half_sweep(
    block: Any, offsets: I64, arrays: tuple[Any, ...], ck: I64, smoothing: float, threads: int
) -> tuple[I64, int]:
    """Let all words or all documents judge and propose, with the counts of topics as they were before."""
    inverse = (1.0 / (ck + smoothing)).astype(np.float32)
    without = (1.0 / (np.maximum(ck - 1, 0) + smoothing)).astype(np.float32)
    ranges = parallel.shares(offsets, threads)
    counts = np.zeros((max(len(ranges), 1), len(ck) + _GAP), dtype=np.int64)[:, : len(ck)]
    jobs = [(first, last, *arrays, inverse, without, counts[b]) for b, (first, last) in enumerate(ranges)]
    moves = sum(parallel.run(block, jobs, threads))
    return counts.sum(axis=0), moves


@kernel
def word_block(
    first: int,
    last: int,
    starts: I64,
    packed: U32,
    beta: float,
    judge: np.uint64,
    propose: np.uint64,
    inverse: F32,
    without: F32,
    ck: I64,
) -> int:
    """Let words first..last-1 judge, then propose."""
    K, b = inverse.shape[0], np.float32(beta)
    cw = np.zeros(K, dtype=np.int32)
    moves = 0
    for w in range(first, last):
        start, n = np.uintp(starts[w]), np.uintp(starts[w + 1] - starts[w])
        for j in range(n):
            cw[packed[start + j] >> _HIGH] += 1
        for j in range(n):
            old, new = packed[start + j] >> _HIGH, packed[start + j] & _LOW
            if new != old:
                stay = (np.float32(cw[old] - 1) + b) * without[old]
                if uniform32(judge, np.uint64(start + j)) * stay < (np.float32(cw[new]) + b) * inverse[new]:
                    moves += 1
                    cw[old] -= 1
                    cw[new] += 1
                else:
                    new = old
            packed[start + j] = new << _HIGH | old
            ck[new] += 1
        whole = (n - 1.0) + K * beta
        for j in range(n):
            x = packed[start + j]
            cw[x & _LOW], cw[x >> _HIGH] = 0, 0
            r = uniform(propose, np.uint64(start + j)) * whole
            if r < n - 1.0:
                other = np.uintp(r) + np.uintp(np.uintp(r) >= j)  # any but token j
                s = packed[start + other] >> _HIGH
            else:
                s = np.uint32(min((r - (n - 1.0)) / beta, K - 1.0))
            packed[start + j] = (x >> _HIGH << _HIGH) | s
    return moves


@kernel
def document_block(
    first: int,
    last: int,
    documents: I64,
    places: U32,
    packed: U32,
    longest: int,
    alpha: F32,
    upto: F64,
    guide: I32,
    judge: np.uint64,
    propose: np.uint64,
    inverse: F32,
    without: F32,
    ck: I64,
) -> int:
    """Let documents first..last-1 judge, then propose."""
    K = inverse.shape[0]
    cd = np.zeros(K, dtype=np.int32)
    mine = np.empty(longest, dtype=np.uint32)
    moves = 0
    for d in range(first, last):
        start, n = np.uintp(documents[d]), np.uintp(documents[d + 1] - documents[d])
        for j in range(n):
            mine[j] = packed[places[start + j]]
            cd[mine[j] >> _HIGH] += 1
        for j in range(n):
            old, new = mine[j] >> _HIGH, mine[j] & _LOW
            if new != old:
                stay = (np.float32(cd[old] - 1) + alpha[old]) * without[old]
                u = uniform32(judge, np.uint64(start + j))
                if u * stay < (np.float32(cd[new]) + alpha[new]) * inverse[new]:
                    moves += 1
                    cd[old] -= 1
                    cd[new] += 1
                else:
                    new = old
            mine[j] = new << _HIGH | old
            ck[new] += 1
        whole = (n - 1.0) + upto[K - 1]
        for j in range(n):
            cd[mine[j] & _LOW], cd[mine[j] >> _HIGH] = 0, 0
            r = uniform(propose, np.uint64(start + j)) * whole
            if r < n - 1.0:
                other = np.uintp(r) + np.uintp(np.uintp(r) >= j)  # any but token j
                s = mine[other] >> _HIGH
            else:
                s = np.uint32(search(upto, guide, (r - (n - 1.0)) / upto[K - 1]))
            packed[places[start + j]] = (mine[j] >> _HIGH << _HIGH) | s
    return moves
