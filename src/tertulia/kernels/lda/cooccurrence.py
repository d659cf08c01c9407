"""Topics of a noisy co-occurrence matrix: its leading eigenpairs, and words that stand for one topic each.

The matrix M [n, n] is the sum over documents of x x^T, where x is a document's unit vector of word counts. Its diagonal
is unknown, because a document's x_w^2 says little about topics and much about the document. It is imputed by the
eigenpairs, and these are computed again (Lanczos' method, with all vectors kept orthogonal).

Noise of deviation s alone has eigenvalues up to 2 s sqrt(n) (Wigner's semicircle). So the number of eigenvalues beyond
that edge is the number of topics that show above the noise (`count_above`). A shorter list of frequent words has
a lower edge, so fewer words may show more topics (`best_list`).

A row of M, divided by its sum, is a mixture of K rows: those of words that are in one topic only ("anchor words"). The
anchors are the rows farthest from the span of those before. The shares of topics in each word are a non-negative least
squares fit (Arora et al., ICML 2013, "A Practical Algorithm for Topic Modeling with Provable Guarantees", RecoverL2).
Here rows are projected to the leading eigenvectors first, which removes most of the noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from tertulia._arrays import F64, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core.jit import kernel

SHORTEST = 150  # words of the shortest list that is tried
_IMPUTATIONS = 5  # of the diagonal
_STEPS, _MORE_STEPS = 4, 30  # Lanczos steps for each eigenpair, and more: those at the edge of the noise settle last
_FITS = 200  # passes of coordinate descent in a least squares fit
_ANCHOR = 0.005  # weight per document that an anchor needs: rarer words have rows of noise
_TINY = 1e-12


class Spectrum(NamedTuple):
    """The leading eigenpairs of a symmetric matrix, the largest first; negative eigenvalues are 0."""

    values: F64  # [r]
    vectors: F64  # [n, r]


def spectrum(pairs: Array, n: int, r: int, noise: float = 0.0) -> Spectrum:
    """Compute r eigenpairs of the symmetric matrix with the strict upper triangle `pairs`, row by row.

    The diagonal is imputed by the eigenpairs that noise of this deviation alone would not have.
    """
    pairs = np.ascontiguousarray(pairs, np.float64)
    if pairs.shape != (n * (n - 1) // 2,) or not 1 <= r <= n:
        raise InputError(f"{pairs.shape} numbers are not the upper triangle of {n} words, or {r} pairs are too many")
    diagonal, values, vectors = np.zeros(n), np.zeros(r), np.zeros((n, r))
    for _ in range(_IMPUTATIONS):
        basis, main, off = _lanczos(pairs, diagonal, min(n, _STEPS * r + _MORE_STEPS))
        ritz, turn = eigh_tridiagonal(main, off)
        largest = np.argsort(-ritz, kind="stable")[:r]
        values[: len(largest)] = np.maximum(ritz[largest], 0.0)
        vectors[:, : len(largest)] = np.einsum("sn,sr->nr", basis, turn[:, largest])
        diagonal = np.einsum("nr,nr,r->n", vectors, vectors, np.where(values > edge(noise, n), values, 0.0))
    return Spectrum(values, vectors)


def edge(noise: float, n: int) -> float:
    """Return the largest eigenvalue of a symmetric matrix [n, n] of noise of this deviation."""
    return float(2.0 * noise * np.sqrt(n))


def count_above(found: Spectrum, noise: float) -> int:
    """Count the eigenvalues that noise of this deviation alone would not have."""
    return int((found.values > edge(noise, len(found.vectors))).sum())


class Found(NamedTuple):
    """A list of words, its spectrum, and the number of topics that show above the noise."""

    words: I64  # places on the whole list, in increasing order
    spectrum: Spectrum
    topics: int


def best_list(pairs: Array, chosen: I64, order: I64, K: int, noise: float) -> Found:
    """Choose the longest list of frequent words on which K topics show, or else the one on which most show.

    `pairs` are of the words `chosen`, in increasing order; `order` has the same words by frequency. Lists are halved.
    """
    best: Found | None = None
    for words in _lists(order):
        places = np.searchsorted(chosen, words)
        part = pairs if len(words) == len(chosen) else _sub_triangle(pairs, len(chosen), places)
        found = spectrum(part, len(words), min(K, len(words)), noise)
        above = count_above(found, noise)
        if best is None or above > best.topics:
            best = Found(words, found, above)
        if above >= K:
            break
    assert best is not None
    return best


def _sub_triangle(pairs: Array, n: int, chosen: I64) -> Array:
    """Return the upper triangle of the rows and columns `chosen`, in increasing order."""
    i, j = np.triu_indices(len(chosen), 1)
    i, j = chosen[i], chosen[j]
    part: Array = np.asarray(pairs)[i * n - i * (i + 1) // 2 + j - i - 1]
    return part


def _lists(order: I64) -> list[I64]:
    """Return lists of the most frequent words, each half as long as the one before; `order` has them by frequency."""
    found, n = [], len(order)
    while n >= min(SHORTEST, len(order)):
        found.append(np.sort(order[:n]))
        n //= 2
    return found


def topics_of(found: Spectrum, K: int, weights: Array, documents: float) -> F64:
    """Return first topics: the part of each word in each of K topics [K, n], by anchor words.

    `weights` [n] are the sums of words' weights over the documents, of which there are about `documents`.
    """
    rows = found.vectors[:, :K] * found.values[:K]
    sums = np.maximum(np.einsum("nk,k->n", rows, found.vectors[:, :K].sum(axis=0)), _TINY)
    profiles = rows / sums[:, None]
    known = np.flatnonzero((weights >= _ANCHOR * documents) & (sums > _TINY))
    if len(known) < K:
        known = np.argsort(-np.asarray(weights), kind="stable")[:K]
    anchors = known[_farthest(np.ascontiguousarray(profiles[known]), K)]
    basis = np.ascontiguousarray(profiles[anchors])
    shares = _fit(np.einsum("ak,bk->ab", basis, basis), np.einsum("nk,ak->na", profiles, basis))
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), _TINY)
    return np.ascontiguousarray((shares * sums[:, None]).T)


def _lanczos(pairs: F64, diagonal: F64, steps: int) -> tuple[F64, F64, F64]:
    """Return an orthonormal basis [s, n] of a Krylov space, and the matrix in it: its diagonal and off-diagonal."""
    basis, main, off = np.zeros((steps, len(diagonal))), np.zeros(steps), np.zeros(steps)
    made = int(_take_steps(pairs, diagonal, basis, main, off))
    return basis[:made], main[:made], off[: made - 1]


@kernel
def _take_steps(pairs: F64, diagonal: F64, basis: F64, main: F64, off: F64) -> int:
    """Take Lanczos steps until the space is exhausted; return their number."""
    steps, n = basis.shape
    for i in range(n):
        basis[0, i] = (1.0 + 0.5 * np.cos(float(i * i))) / np.sqrt(n)  # any start that is in no subspace
    basis[0] /= np.sqrt((basis[0] ** 2).sum())
    made = 0
    for s in range(steps):
        made += 1
        y = diagonal * basis[s]
        _add_product(pairs, basis[s], y)
        main[s] = (basis[s] * y).sum()
        before = np.sqrt((y**2).sum())
        for _ in range(2):
            for j in range(s + 1):
                along = 0.0
                for i in range(n):
                    along += basis[j, i] * y[i]
                for i in range(n):
                    y[i] -= along * basis[j, i]
        off[s] = np.sqrt((y**2).sum())
        if s + 1 == steps or off[s] <= 1e-10 * before:
            break
        basis[s + 1] = y / off[s]
    return made


@kernel
def _add_product(pairs: F64, x: F64, y: F64) -> None:
    """Add the product of the matrix without its diagonal and x [n] to y [n]."""
    n, t = x.shape[0], 0
    for i in range(n):
        along, mine = 0.0, x[i]
        for j in range(i + 1, n):
            along += pairs[t] * x[j]
            y[j] += pairs[t] * mine
            t += 1
        y[i] += along


@kernel
def _farthest(rows: F64, K: int) -> I64:
    """Choose K rows, each the farthest from the affine span of those before."""
    n, width = rows.shape
    rest, chosen = rows.copy(), np.zeros(K, np.int64)
    for k in range(K):
        best, most = 0, -1.0
        for i in range(n):
            square = 0.0
            for c in range(width):
                square += rest[i, c] * rest[i, c]
            if square > most:
                best, most = i, square
        chosen[k] = best
        away = rest[best].copy()
        if k == 0:  # distances are from the first row, not from the origin
            for i in range(n):
                rest[i] -= away
        elif most > 0.0:
            for i in range(n):
                along = 0.0
                for c in range(width):
                    along += rest[i, c] * away[c]
                for c in range(width):
                    rest[i, c] -= along / most * away[c]
    return chosen


@kernel
def _fit(gram: F64, products: F64) -> F64:
    """Minimise |row - shares basis|^2 over non-negative shares [n, K], by coordinate descent.

    `gram` [K, K] has the products of the basis with itself, `products` [n, K] those of the rows with the basis.
    """
    n, K = products.shape
    shares = np.full((n, K), 1.0 / K)
    for i in range(n):
        for _ in range(_FITS):
            moved = 0.0
            for k in range(K):
                slope = products[i, k]
                for j in range(K):
                    slope -= gram[k, j] * shares[i, j]
                new = max(0.0, shares[i, k] + slope / max(gram[k, k], 1e-300))
                moved = max(moved, abs(new - shares[i, k]))
                shares[i, k] = new
            if moved < 1e-9:
                break
    return shares
