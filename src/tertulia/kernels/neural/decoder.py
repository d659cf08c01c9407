"""The decoder of ProdLDA between its matrix products: the softmax of normalised logits, scored by documents' words.

With BatchNorm, logits have a row for each word and a column for each document, so that the values that BatchNorm and
its gradient need of a word are adjacent, in cache. There are two passes: the softmax's totals are known only after the
first. Columns are padded to whole vectors by documents whose logits are and stay 0. Logits are centred; the column
after the last document, that of theta's mean, holds their means.

Statistics and mean slopes (see `norms`) are the batch's own where the argument for known ones is empty, [2, 0].

Logits normalised by statistics over n documents are at most the root of n. They approach the range of an exponential
only in batches of thousands of documents with one outlier. Then each document's largest logit is subtracted before the
exponential, and added afterwards.

With LayerNorm, logits have a row for each document (`score_by_document`), since LayerNorm uses one document at a
time: loss and gradient of a row are computed while it is in cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.kernels.core.exp import exp, exponent_row, normalise_row
from tertulia.kernels.core.jit import loose_kernel


class NormStatistics(NamedTuple):
    """The results of a norm."""

    statistics: Array  # [2, V] mean and variance
    scale: Array  # [V] one over the deviation
    shifts: Array  # [B] subtracted from documents' logits
    totals: Array  # [B] their sums of exponents then


Entries = tuple[I64, I64, I64, Array]  # words, starts, holders, counts: see `score`
Score = tuple[float, Array]
_ROWS = 16  # treated together: a row's sum must be known before the row is scaled, and others can be summed meanwhile
_FAR = 60.0  # a logit whose exponential float32 holds with ease, also summed over all words
_SAFE = 80.0  # the largest logarithm of a sum of exponentials that float32 holds with ease


@loose_kernel
def centre(theta: Array, columns: int) -> Array:
    """Subtract theta's mean from theta [B, K] and transpose it, [K, columns]: documents, the mean, and zeros."""
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
def centre_back(slopes: Array, documents: int) -> Array:
    """Compute the gradient by theta, [B, K], from that by its centred form, [K, columns]."""
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
def normalise(logits: Array, documents: int, known: Array, n: float, eps: float) -> NormStatistics:
    """Normalise centred logits [V, B] in place by their own statistics, or by known ones over `n` documents."""
    V, B = logits.shape
    statistics, scale = np.empty((2, V), logits.dtype), np.empty(V, logits.dtype)
    shifts, totals = np.zeros(B, logits.dtype), np.zeros(B, logits.dtype)
    dtype, own = logits.dtype.type, known.shape[1] == 0
    share, least, one = dtype(1.0 / documents), dtype(eps), dtype(1.0)
    for first in range(0, V, _ROWS):
        last = min(first + _ROWS, V)
        for v in range(first, last):
            statistics[0, v], logits[v, documents] = logits[v, documents], dtype(0.0)
            if own:
                square = dtype(0.0)
                for b in range(B):
                    square += logits[v, b] * logits[v, b]
                statistics[1, v] = square * share
            else:
                offset = statistics[0, v] - known[0, v]
                for b in range(documents):
                    logits[v, b] += offset
                statistics[0, v], statistics[1, v] = known[0, v], known[1, v]
        for v in range(first, last):
            scale[v] = one / np.sqrt(statistics[1, v] + least)
        for v in range(first, last):
            normalise_row(logits, v, scale[v], shifts, totals)
    if np.sqrt(n) + np.log(V) > _SAFE:
        totals[:] = dtype(0.0)
        for v in range(V):
            for b in range(B):
                shifts[b] = max(shifts[b], logits[v, b])
        for v in range(V):
            normalise_row(logits, v, one, shifts, totals)
    return NormStatistics(statistics, scale, shifts, totals)


@loose_kernel
def score(logits: Array, shifts: Array, totals: Array, tokens: Array, entries: Entries) -> Score:
    """Return the negative log likelihood of all words under the softmax of normalised logits, and documents' rates [B].

    A rate is the document's number of tokens over its total; times its exponentials it gives the expected counts.
    Word words[i] occurs counts[j] times in document holders[j], for j from starts[i] to starts[i + 1].
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
def _block(
    logits: Array, shifts: Array, rates: Array, entries: Entries, first: int, rows: int, i: int, out: Array
) -> int:
    """Put the loss's gradient by some rows of normalised logits into `out`; i counts the entries' words so far."""
    words, starts, holders, counts = entries
    for r in range(rows):
        exponent_row(logits, first + r, shifts, rates, out, r)
    while i < words.shape[0] and words[i] < first + rows:
        for j in range(starts[i], starts[i + 1]):
            out[words[i] - first, holders[j]] -= counts[j]
        i += 1
    return i


@loose_kernel
def slopes(
    logits: Array, shifts: Array, rates: Array, entries: Entries, documents: int, scale: Array, known: Array
) -> None:
    """Put the loss's gradient by raw logits in the place of the normalised ones; arguments are those of `score`.

    With the batch's own mean slopes, it is the gradient by centred logits, and theta's centring does the rest. With
    known ones it is by logits as they were, and the column of theta's mean gets the sum over documents.
    """
    V, B = logits.shape
    gradient, along = np.empty((_ROWS, B), logits.dtype), np.empty(_ROWS, logits.dtype)
    dtype, own, i = rates.dtype.type, known.shape[1] == 0, 0
    share = dtype(1.0 / documents)
    for first in range(0, V, _ROWS):
        rows = min(_ROWS, V - first)
        i = _block(logits, shifts, rates, entries, first, rows, i, gradient)
        if own:
            for r in range(rows):
                product = dtype(0.0)
                for b in range(B):
                    product += gradient[r, b] * logits[first + r, b]
                along[r] = product * share
            for r in range(rows):
                part, factor = along[r], scale[first + r]
                for b in range(B):
                    logits[first + r, b] = (gradient[r, b] - logits[first + r, b] * part) * factor
        else:
            for v in range(first, first + rows):
                mean, part, factor, total = known[0, v], known[1, v], scale[v], dtype(0.0)
                for b in range(documents):
                    logits[v, b] = (gradient[v - first, b] - mean - logits[v, b] * part) * factor
                    total += logits[v, b]
                logits[v, documents] = total


@loose_kernel
def slope_means(logits: Array, shifts: Array, rates: Array, entries: Entries, n: float) -> Array:
    """Compute these documents' part of the mean slopes over n documents, [2, V]; arguments are those of `score`."""
    V, B = logits.shape
    gradient, out = np.empty((_ROWS, B), logits.dtype), np.empty((2, V), logits.dtype)
    dtype, i = rates.dtype.type, 0
    share = dtype(1.0 / n)
    for first in range(0, V, _ROWS):
        rows = min(_ROWS, V - first)
        i = _block(logits, shifts, rates, entries, first, rows, i, gradient)
        for r in range(rows):
            total, along = dtype(0.0), dtype(0.0)
            for b in range(B):
                total += gradient[r, b]
                along += gradient[r, b] * logits[first + r, b]
            out[0, first + r], out[1, first + r] = total * share, along * share
    return out


@loose_kernel
def score_by_document(logits: Array, words: I64, counts: Array, offsets: I64, eps: float) -> float:
    """Put the loss's gradient by logits [B, V] in their place; return the negative log likelihood of all words.

    Document d holds words[i], counts[i] times, for i from offsets[d] on. The slopes of a softmax add up to 0, so only
    their mean product with the normalised logits remains to be taken off.
    """
    B, V = logits.shape
    dtype = logits.dtype.type
    zero, one, share, gradient, loss = dtype(0.0), dtype(1.0), dtype(1.0 / V), np.empty(V, logits.dtype), 0.0
    for d in range(B):
        row = logits[d]
        mean, variance, total, along, tokens, far = zero, zero, zero, zero, zero, 0
        for v in range(V):
            mean += row[v]
        mean *= share
        for v in range(V):
            variance += (row[v] - mean) * (row[v] - mean)
        scale = one / np.sqrt(variance * share + dtype(eps))
        for v in range(V):
            row[v] = (row[v] - mean) * scale
            far += row[v] > dtype(_FAR)
        shift = np.max(row) if far else zero
        for v in range(V):
            gradient[v] = exp(row[v] - shift)
            total += gradient[v]
        for i in range(offsets[d], offsets[d + 1]):
            tokens += counts[i]
            loss -= counts[i] * row[words[i]]
        loss += tokens * (shift + np.log(total))
        rate = tokens / total
        for v in range(V):
            gradient[v] *= rate
        for i in range(offsets[d], offsets[d + 1]):
            gradient[words[i]] -= counts[i]
        for v in range(V):
            along += gradient[v] * row[v]
        along *= share
        for v in range(V):
            row[v] = (gradient[v] - row[v] * along) * scale
    return loss
