"""Counter-based random numbers: draw `counter` of stream `key` is a pure function of both.

So a draw does not depend on which thread makes it, nor on what was drawn before: results are equal bit for bit at any
number of threads. The function is the output mix of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), whose state after
n steps is key + n * GOLDEN. Gamma variates are by Marsaglia and Tsang (ACM TOMS 26, 2000), and by Ahrens and Dieter
(Computing 12, 1974) for shapes below 1.
"""

from __future__ import annotations

import math

import numpy as np

from tertulia.kernels.core.jit import kernel, lean_kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_ONE = np.uint64(1)
_TWO = np.uint64(2)


@lean_kernel
def mix(x: np.uint64) -> np.uint64:
    """Scatter a word's bits: a one-to-one function of it that looks like chance."""
    x = (x ^ (x >> np.uint64(30))) * _MIX1
    x = (x ^ (x >> np.uint64(27))) * _MIX2
    return x ^ (x >> np.uint64(31))


@lean_kernel
def bits(key: np.uint64, counter: np.uint64) -> np.uint64:
    """64 random bits."""
    return mix(key + (counter + _ONE) * _GOLDEN)


@lean_kernel
def uniform(key: np.uint64, counter: np.uint64) -> float:
    """A float64 in the open interval (0, 1): its logarithm is always finite."""
    return ((bits(key, counter) >> np.uint64(12)) + 0.5) * 2.0**-52


@lean_kernel
def uniform32(key: np.uint64, counter: np.uint64) -> np.float32:
    """A float32 in [0, 1)."""
    return np.float32(bits(key, counter) >> np.uint64(40)) * np.float32(2.0**-24)


def derive(key: int | np.uint64, *labels: int) -> np.uint64:
    """The key of a sub-stream, such as `derive(seed, sweep)`: other labels, unrelated numbers.

    >>> len({int(derive(7, 0)), int(derive(7, 1)), int(derive(7, 1, 0))})
    3
    """
    stream = np.uint64(int(key) & 0xFFFF_FFFF_FFFF_FFFF)
    for label in labels:
        stream = np.uint64(bits(stream, np.uint64(label)))  # numba returns plain integers
    return stream


@kernel
def gamma(shape: float, key: np.uint64) -> float:
    """A Gamma(shape, 1) variate, drawn from a stream of its own; one too small for a float is 0."""
    if shape < 1.0:
        return math.exp(log_small_gamma(shape, key))
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    counter = np.uint64(0)
    while True:  # Marsaglia and Tsang
        radius = math.sqrt(-2.0 * math.log(uniform(key, counter)))
        x = radius * math.cos(2.0 * math.pi * uniform(key, counter + _ONE))  # standard normal, Box and Muller
        v = (1.0 + c * x) ** 3
        u = uniform(key, counter + _TWO)
        if v > 0.0 and (u < 1.0 - 0.0331 * x**4 or math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v))):
            return d * v
        counter += np.uint64(3)


@kernel
def log_small_gamma(shape: float, key: np.uint64) -> float:
    """The logarithm of a Gamma(shape, 1) variate for a shape below 1, always finite.

    Of shape 0.01, half of the variates are below 1e-30 and one in a thousand below 1e-300.
    """
    bound = 1.0 + shape / math.e
    counter = np.uint64(0)
    while True:  # Ahrens and Dieter
        p = bound * uniform(key, counter)
        u = uniform(key, counter + _ONE)
        if p <= 1.0:
            x = math.log(p) / shape
            if x < -40.0 or u <= math.exp(-math.exp(x)):
                return x
        else:
            x = -math.log((bound - p) / shape)
            if u <= x ** (shape - 1.0):
                return math.log(x)
        counter += _TWO
