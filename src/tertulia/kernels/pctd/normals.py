"""Standard normal numbers from uniform 64-bit words: the ziggurat (Marsaglia and Tsang 2000; 53 bits, after Doornik).

The density is covered by 255 rectangles of equal area and a base with the tail. A word chooses one and a point across;
98.8 of 100 lie where the rectangle is all below the density, and are done.

It is our own for its speed: 2.4 million numbers take 0.05 CPU seconds, ChaCha20's 0.03 included; by
`scipy.special.ndtri` 0.11, and by Box and Muller's formula in NumPy 0.08. A noisy E-step of PC-TD (30,000 units, 18,000
words, 50 topics) takes 0.09 instead of 0.15.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tertulia._arrays import F64, I64, U64
from tertulia.kernels.core.jit import freeze, kernel

_LAYERS = 256
_TAIL = 3.6541528853610088  # where the tail begins
_AREA = 0.00492867323399141  # of each layer
_SPARE = 16  # more words for a number that one word does not settle; hardly any needs all of them


def normals(uniform: Callable[[int], U64], n: int) -> F64:
    """Draw the next n standard normal numbers from a source of uniform words."""
    out = np.empty(n)
    open_ = np.empty(n, dtype=np.int64)
    words = freeze(uniform(n), np.uint64)
    left = open_[: _core(words, _EDGES, out, open_)]
    chosen = freeze(words[left], np.uint64)
    while len(left):
        spare = freeze(uniform(_SPARE * len(left)), np.uint64).reshape(-1, _SPARE)
        left = left[_settle(chosen, spare, freeze(left, np.int64), _EDGES, out)]
        chosen = freeze(uniform(len(left)), np.uint64)  # these have used up their words: they begin again
    return out


def _edges() -> F64:
    """Compute the layers' right edges, the base's first; the base is as wide as a rectangle of its area and height."""
    x = [_AREA / math.exp(-0.5 * _TAIL**2), _TAIL]
    for _ in range(2, _LAYERS):
        x.append(math.sqrt(-2.0 * math.log(math.exp(-0.5 * x[-1] ** 2) + _AREA / x[-1])))
    return freeze([*x, 0.0], np.float64)


_EDGES = _edges()


@kernel
def _across(word: np.uint64) -> float:
    """Return a point in (-1, 1), from the upper bits; the lower eight choose the layer."""
    return (np.int64(word) >> np.int64(10)) * 2.0**-53 + 2.0**-54


@kernel
def _core(words: U64, edges: F64, out: F64, open_: I64) -> int:
    """Compute the numbers that one word settles; list the others, and return how many they are."""
    n = 0
    for i in range(words.shape[0]):
        layer = words[i] & np.uint64(_LAYERS - 1)
        out[i] = _across(words[i]) * edges[layer]
        open_[n] = i
        n += abs(out[i]) >= edges[layer + np.uint64(1)]
    return n


@kernel
def _settle(words: U64, spare: U64, places: I64, edges: F64, out: F64) -> I64:
    """Settle the others by their spare words; return which are still open."""
    still = np.empty(words.shape[0], dtype=np.int64)
    n = 0
    for j in range(words.shape[0]):
        word, used, done = words[j], 0, False
        while not done and used + 3 <= spare.shape[1]:
            layer = word & np.uint64(_LAYERS - 1)
            x = _across(word) * edges[layer]
            low = edges[layer + np.uint64(1)]
            if abs(x) < low:
                done = True
            elif layer == 0:  # the tail (Marsaglia 1964)
                a = -math.log((spare[j, used] + 0.5) * 2.0**-64) / _TAIL
                b = -math.log((spare[j, used + 1] + 0.5) * 2.0**-64)
                done = 2.0 * b > a * a
                x = math.copysign(_TAIL + a, x)
            else:  # between the rectangle below and the one above
                u = (spare[j, used] >> np.uint64(11)) * 2.0**-53
                top, bottom = math.exp(-0.5 * low * low), math.exp(-0.5 * edges[layer] ** 2)
                done = bottom + u * (top - bottom) < math.exp(-0.5 * x * x)
            out[places[j]] = x
            if not done and layer != 0:
                word = spare[j, used + 2]
            used += 3
        if not done:
            still[n] = j
            n += 1
    return still[:n]
