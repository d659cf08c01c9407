"""The decoder of ProdLDA with LayerNorm: softmax(LayerNorm(logits)) scored by the documents' words, and its gradient.

Logits stand with a row for each document, for LayerNorm looks at one at a time: loss and gradient of a row are computed
while it is in cache.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.kernels.core.exp import exp
from tertulia.kernels.core.jit import loose_kernel

_FAR = 60.0  # a logit whose exponential float32 holds with ease, also summed over all words


@loose_kernel
def score(logits: Array, words: I64, counts: Array, offsets: I64, eps: float) -> float:
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
