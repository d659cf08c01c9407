"""Sums over groups of documents, each group clipped in the L2 norm and put on a grid: what document privacy adds up.

A group is a document, or all documents of one user. The contribution of a group is computed from its own documents
alone. It is scaled down to the clip norm where it is larger, then each number is truncated towards zero to a multiple
of 2^-bits. Truncation makes no number larger, so no group moves a sum by more than the clip norm. Sums of integers are
exact, in any order.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core.checks import check_alpha, check_documents, check_topics
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.lda import fold_in

PAIRS_NORM = 0.5**0.5  # of the products of two words of a unit vector: (1 - sum x^4) / 2 is at most 1/2
_SAFE = 1 - 2.0**-30  # norms are computed in float64: rounding must not lift one above its clip
_ITERATIONS = 20  # of fold-in; a fixed number, so that a document's shares depend on nothing but the document


def clipped_words(words: Array, documents: Array, groups: Array, V: int, bits: int) -> I64:
    """Sum unit vectors of word counts over documents [V], in steps of 2^-bits; a group's sum has at most norm 1.

    `words` [N] are tokens, `documents` [D+1] their offsets, `groups` [G+1] offsets of documents. Words from V on are
    left out.
    """
    words, documents, groups = _check(words, documents, groups)
    total = np.zeros(V, np.int64)
    _add_words(words, documents, groups, float(2**bits), total)
    return total


def clipped_pairs(words: Array, documents: Array, groups: Array, chosen: Array, V: int, bits: int) -> I64:
    """Sum products of two different words' weights in documents [n (n - 1) / 2], in steps of 2^-bits.

    A document is the unit vector of its counts of `chosen` words [n]. The result is the strict upper triangle of the
    sum of its products with itself, row by row; a group's sum is clipped to `PAIRS_NORM`.
    """
    words, documents, groups = _check(words, documents, groups)
    place = np.full(V + 1, -1, np.int64)
    place[np.asarray(chosen, np.int64)] = np.arange(len(chosen))
    total = np.zeros(len(chosen) * (len(chosen) - 1) // 2, np.int64)
    _add_pairs(words, documents, groups, place, len(chosen), float(2**bits), total)
    return total


def clipped_counts(
    words: Array, documents: Array, groups: Array, topic_word: Array, alpha: Array, clip: float, bits: int,
    threads: int = 1,
) -> I64:  # fmt: skip
    """Sum expected counts by topic and word [K, V], in steps of 2^-bits; each group is clipped to `clip`."""
    words, documents, groups = _check(words, documents, groups)
    topic_word = check_topics(topic_word)
    K, V = topic_word.shape
    alpha = check_alpha(alpha, K)
    shares = fold_in.theta(words, documents, topic_word, alpha, _ITERATIONS, threads)
    phi, rows = fold_in.phi_by_word(topic_word, words, threads)
    total = np.zeros((V, K), np.int64)
    _add_counts(words, documents, groups, rows, phi, shares, clip * _SAFE, float(2**bits), total)
    return np.ascontiguousarray(total.T)


def _check(words: Array, documents: Array, groups: Array) -> tuple[I32, I64, I64]:
    words, documents = check_documents(words, documents, int(np.max(words, initial=0)) + 1)
    groups = np.ascontiguousarray(groups, np.int64)
    if len(groups) < 1 or groups[0] != 0 or groups[-1] != len(documents) - 1 or np.any(np.diff(groups) < 0):
        raise InputError("groups must be offsets of documents, from 0 to their number")
    return words, documents, groups


@kernel
def _distinct(words: I32, first: int, last: int, slot: I64, mine: I64, n: int) -> int:
    """Give each word of a document that has none a slot, behind the n words that have one; return their number."""
    for i in range(first, last):
        w = words[i]
        if slot[w] < 0:
            slot[w] = n
            mine[n] = w
            n += 1
    return n


@kernel
def _add_words(words: I32, documents: I64, groups: I64, unit: float, total: I64) -> None:
    V = total.shape[0]
    sums, counts = np.zeros(V), np.zeros(V)
    for g in range(groups.shape[0] - 1):
        for d in range(groups[g], groups[g + 1]):
            norm = 0.0
            for i in range(documents[d], documents[d + 1]):
                w = words[i]
                if w < V:
                    norm += 2.0 * counts[w] + 1.0  # (c + 1)^2 - c^2
                    counts[w] += 1.0
            for i in range(documents[d], documents[d + 1]):
                w = words[i]
                if w < V and counts[w] > 0.0:
                    sums[w] += counts[w] / np.sqrt(norm)
                    counts[w] = 0.0
        norm = 0.0
        for d in range(groups[g], groups[g + 1]):
            for i in range(documents[d], documents[d + 1]):
                w = words[i]
                if w < V and counts[w] == 0.0:
                    norm += sums[w] * sums[w]
                    counts[w] = 1.0
        scale = unit * _SAFE / max(1.0, np.sqrt(norm))
        for d in range(groups[g], groups[g + 1]):
            for i in range(documents[d], documents[d + 1]):
                w = words[i]
                if w < V:
                    total[w] += np.int64(sums[w] * scale)  # truncates
                    sums[w] = counts[w] = 0.0


@kernel
def _add_pairs(
    words: I32, documents: I64, groups: I64, place: I64, n: int, unit: float, total: I64
) -> None:  # fmt: skip
    slot, mine, x = np.full(n, -1, np.int64), np.empty(n, np.int64), np.empty(n)
    table = np.zeros((64, 64))
    for g in range(groups.shape[0] - 1):
        m = 0
        for d in range(groups[g], groups[g + 1]):
            for i in range(documents[d], documents[d + 1]):
                p = place[words[i]]
                if p >= 0 and slot[p] < 0:
                    slot[p] = m
                    mine[m] = p
                    m += 1
        if m > table.shape[0]:
            table = np.zeros((m, m))
        for d in range(groups[g], groups[g + 1]):
            _add_document(words, documents[d], documents[d + 1], place, slot, x, table, m)
        norm = 0.0
        for a in range(m):
            for b in range(a):
                norm += table[a, b] * table[a, b]
        scale = unit * _SAFE * min(1.0, PAIRS_NORM / np.sqrt(norm)) if norm > 0.0 else 0.0
        for a in range(m):
            for b in range(a):
                i, j = min(mine[a], mine[b]), max(mine[a], mine[b])
                total[i * n - i * (i + 1) // 2 + j - i - 1] += np.int64(table[a, b] * scale)  # truncates
                table[a, b] = 0.0
        for a in range(m):
            slot[mine[a]] = -1


@kernel
def _add_document(
    words: I32, first: int, last: int, place: I64, slot: I64, x: F64, table: F64, m: int
) -> None:  # fmt: skip
    """Add the products of a document's unit vector, below the diagonal."""
    x[:m] = 0.0
    norm = 0.0
    for i in range(first, last):
        p = place[words[i]]
        if p >= 0:
            norm += 2.0 * x[slot[p]] + 1.0
            x[slot[p]] += 1.0
    for a in range(m):
        if x[a] > 0.0:
            for b in range(a):
                table[a, b] += x[a] * x[b] / norm


@kernel
def _add_counts(
    words: I32, documents: I64, groups: I64, rows: I32, phi: F32, shares: F64, clip: float, unit: float, total: I64
) -> None:  # fmt: skip
    V, K = total.shape
    slot, mine = np.full(V, -1, np.int64), np.empty(V, np.int64)
    table = np.zeros((64, K))
    expected = np.empty(K)
    for g in range(groups.shape[0] - 1):
        m = 0
        for d in range(groups[g], groups[g + 1]):
            m = _distinct(words, documents[d], documents[d + 1], slot, mine, m)
        if m > table.shape[0]:
            table = np.zeros((m, K))
        for d in range(groups[g], groups[g + 1]):
            for i in range(documents[d], documents[d + 1]):
                r, mass = rows[words[i]], 0.0
                for k in range(K):
                    expected[k] = shares[d, k] * phi[r, k]
                    mass += expected[k]
                if mass > 0.0:
                    for k in range(K):
                        table[slot[words[i]], k] += expected[k] / mass
        norm = 0.0
        for a in range(m):
            for k in range(K):
                norm += table[a, k] * table[a, k]
        scale = unit * min(1.0, clip / np.sqrt(norm)) if 0.0 < norm < np.inf else 0.0
        for a in range(m):
            for k in range(K):
                total[mine[a], k] += np.int64(table[a, k] * scale)  # truncates
                table[a, k] = 0.0
            slot[mine[a]] = -1
