"""The decoder of ProdLDA between its matrix products: softmax(BatchNorm(logits)) scored by the documents' words.

Logits stand with a row for each word and a column for each document, so that all that BatchNorm and its gradient need
of a word lies side by side, in cache. Two passes then do: the softmax's totals are known only after the first. Columns
are padded to whole vectors by documents whose logits are 0; as logits come centred, they stay 0 in all that follows.

Normalised logits are at most the root of the batch's size. Only a batch of thousands with a document far off all others
comes near what an exponential can hold: each document's largest logit is then taken off before, and added afterwards.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.kernels.core.exp import exponent_row, normalise_row
from tertulia.kernels.core.jit import loose_kernel

Entries = tuple[I64, I64, I64, Array]  # words, starts, holders, counts: see `score`
Scored = tuple[float, Array]
_ROWS = 16  # treated together: a row's sum must be known before the row is scaled, and others can be summed meanwhile
_SAFE = 80.0  # the largest logarithm of a sum of exponentials that float32 holds with ease


@loose_kernel
def centred(theta: Array, columns: int) -> Array:
    """Theta [B, K] less its mean, turned over, [K, columns]: documents, the mean, and zeros."""
    B, K = theta.shape
    out = np.zeros((K, columns), theta.dtype)
    share = theta.dtype.type(1.0 / B)
    for k in range(K):
        for d in range(B):
            out[k, B] += theta[d, k]
        out[k, B] *= share
        for d in range(B):
            out[k, d] = theta[d, k] - out[k, B]
    return out


@loose_kernel
def centred_slopes(slopes: Array, documents: int) -> Array:
    """The gradient by theta, [B, K], from that by its centred form, [K, columns]."""
    K, share = slopes.shape[0], slopes.dtype.type(1.0 / documents)
    out = np.empty((documents, K), slopes.dtype)
    for k in range(K):
        mean = slopes.dtype.type(0.0)
        for d in range(documents):
            mean += slopes[k, d]
        mean *= share
        for d in range(documents):
            out[d, k] = slopes[k, d] - mean
    return out


@loose_kernel
def normalise(logits: Array, documents: int, eps: float) -> tuple[Array, Array, Array, Array, Array]:
    """Divide centred logits [V, B] by their words' deviations; the column after the last document holds the means.

    Means, variances and the factors [V]; what is taken off documents' logits, and their sums of exponents then, [B].
    """
    V, B = logits.shape
    mean, variance, scale = np.empty(V, logits.dtype), np.empty(V, logits.dtype), np.empty(V, logits.dtype)
    shifts, totals = np.zeros(B, logits.dtype), np.zeros(B, logits.dtype)
    dtype = logits.dtype.type
    share, least, one = dtype(1.0 / documents), dtype(eps), dtype(1.0)
    for first in range(0, V, _ROWS):
        last = min(first + _ROWS, V)
        for v in range(first, last):
            mean[v], logits[v, documents] = logits[v, documents], dtype(0.0)
            square = dtype(0.0)
            for b in range(B):
                square += logits[v, b] * logits[v, b]
            variance[v] = square * share
        for v in range(first, last):
            scale[v] = one / np.sqrt(variance[v] + least)
        for v in range(first, last):
            normalise_row(logits, v, scale[v], shifts, totals)
    if np.sqrt(documents) + np.log(V) > _SAFE:
        totals[:] = dtype(0.0)
        for v in range(V):
            for b in range(B):
                shifts[b] = max(shifts[b], logits[v, b])
        for v in range(V):
            normalise_row(logits, v, one, shifts, totals)
    return mean, variance, scale, shifts, totals


@loose_kernel
def score(logits: Array, shifts: Array, totals: Array, tokens: Array, entries: Entries) -> Scored:
    """The negative log likelihood of all words under the softmax of normalised logits, and each document's rate, [B].

    A rate is the document's tokens over its total: times its exponents, what the softmax expects of each word. Word
    words[i] occurs counts[j] times in document holders[j], for j from starts[i] to starts[i + 1].
    """
    words, starts, holders, counts = entries
    loss, rates = 0.0, np.zeros_like(totals)
    for d in range(tokens.shape[0]):
        loss += tokens[d] * (shifts[d] + np.log(totals[d]))
        rates[d] = tokens[d] / totals[d]
    for i in range(words.shape[0]):
        for j in range(starts[i], starts[i + 1]):
            loss -= counts[j] * logits[words[i], holders[j]]
    return loss, rates


@loose_kernel
def slopes(logits: Array, shifts: Array, rates: Array, entries: Entries, documents: int, scale: Array) -> None:
    """Put the loss's gradient by raw logits in the place of the normalised ones; arguments are those of `score`."""
    (V, B), (words, starts, holders, counts) = logits.shape, entries
    gradient, along = np.empty((_ROWS, B), logits.dtype), np.empty(_ROWS, logits.dtype)
    share = rates.dtype.type(1.0 / documents)
    i = 0
    for first in range(0, V, _ROWS):
        rows = min(_ROWS, V - first)
        for r in range(rows):
            exponent_row(logits, first + r, shifts, rates, gradient, r)
        while i < words.shape[0] and words[i] < first + rows:
            for j in range(starts[i], starts[i + 1]):
                gradient[words[i] - first, holders[j]] -= counts[j]
            i += 1
        for r in range(rows):
            product = rates.dtype.type(0.0)
            for b in range(B):
                product += gradient[r, b] * logits[first + r, b]
            along[r] = product * share
        for r in range(rows):
            part, factor = along[r], scale[first + r]
            for b in range(B):
                logits[first + r, b] = (gradient[r, b] - logits[first + r, b] * part) * factor
