"""The compiled half of `similarity`: the largest entries of rows, and the overlap of all pairs of top-word lists."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64, I32, I64, Array
from tertulia.kernels.core.jit import kernel


@kernel
def top_dense(rows: Array, indices: I32, values: F64) -> None:
    """Write the largest entries of each row of a dense matrix to indices and values [K, L]."""
    columns = np.arange(rows.shape[1]).astype(np.int32)
    for k in range(len(rows)):
        _top(columns, rows[k], indices[k], values[k])


@kernel
def top_sparse(indptr: I64, columns: I32, data: Array, indices: I32, values: F64) -> None:
    """Write the largest entries of each row of a CSR matrix with sorted columns."""
    for k in range(len(indptr) - 1):
        part = slice(indptr[k], indptr[k + 1])
        _top(columns[part], data[part], indices[k], values[k])


@kernel
def _top(columns: I32, row: Array, indices: I32, values: F64) -> None:
    """Insert entries into a list sorted from large to small; of equals the lower column, met earlier, stays ahead."""
    L = len(indices)
    n = 0
    for i in range(len(row)):
        if n == L and row[i] <= values[L - 1]:
            continue
        place = n if n < L else L - 1
        while place > 0 and values[place - 1] < row[i]:
            values[place], indices[place] = values[place - 1], indices[place - 1]
            place -= 1
        values[place], indices[place] = row[i], columns[i]
        n = min(n + 1, L)


@kernel
def _overlap(words: I32, values: F64, starts: I64, topics: I32, masses: F64, minima: F64, met: I32) -> int:
    """Sum min(mass) over common words into minima [Kb], list the topics b that share a word, and return their number.

    Topics b are sorted by word: topics[starts[w] : starts[w + 1]] hold word w, with their masses, all > 0.
    """
    n = 0
    for i in range(len(words)):
        w = words[i]
        if 0 <= w < len(starts) - 1 and values[i] > 0:
            for j in range(starts[w], starts[w + 1]):
                topic = topics[j]
                if minima[topic] == 0:
                    met[n] = topic
                    n += 1
                minima[topic] += min(values[i], masses[j])
    return n


@kernel
def all_pairs(words: I32, values: F64, sums: F64, starts: I64, topics: I32, masses: F64, rho: F64) -> None:
    """Weighted Jaccard (17/29) of all pairs, into rho [Ka, Kb], which must be zero at first."""
    met = np.empty(len(sums), np.int32)
    for k in range(len(words)):
        n = _overlap(words[k], values[k], starts, topics, masses, rho[k], met)
        mass = values[k].sum()
        for j in met[:n]:
            rho[k, j] = min(rho[k, j] / (mass + sums[j] - rho[k, j]), 1.0)


@kernel
def close_pairs(
    words: I32, values: F64, sums: F64, starts: I64, topics: I32, masses: F64, least: float, out: tuple[I32, I32, F64]
) -> int:
    """Write the pairs with rho >= least to `out` while there is room, and return the number of all such pairs."""
    rows, columns, rho = out
    minima = np.zeros(len(sums))
    met = np.empty(len(sums), np.int32)
    found = 0
    for k in range(len(words)):
        n = _overlap(words[k], values[k], starts, topics, masses, minima, met)
        mass = values[k].sum()
        for j in met[:n]:
            similarity = min(minima[j] / (mass + sums[j] - minima[j]), 1.0)
            minima[j] = 0.0
            if similarity >= least:
                if found < len(rho):
                    rows[found], columns[found], rho[found] = k, j, similarity
                found += 1
    return found
