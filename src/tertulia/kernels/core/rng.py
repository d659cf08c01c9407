"""Counter-based random numbers: draw `counter` of stream `key` is a pure function of both.

So a draw depends neither on the thread that makes it nor on earlier draws: results are equal bit for bit at any
number of threads. The function is the output mix of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), whose state after
n steps is key + n * GOLDEN. Gamma variates are by Marsaglia and Tsang (ACM TOMS 26, 2000), and by Ahrens and Dieter
(Computing 12, 1974) for shapes below 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.vectors import intrinsic

_GOLDEN, _WORD = 0x9E3779B97F4A7C15, 0xFFFF_FFFF_FFFF_FFFF
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))  # shift, factor
_I64, _F32, _F64 = ir.IntType(64), ir.FloatType(), ir.DoubleType()
_ONE = np.uint64(1)
_TWO = np.uint64(2)


@intrinsic
def mix(typing: Any, x: Any) -> Any:
    """Mix a word's bits by a one-to-one function with random-looking results."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _mix(builder, args[0])

    return types.uint64(types.uint64), build


@intrinsic
def bits(typing: Any, key: Any, counter: Any) -> Any:
    """Draw 64 random bits."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _bits(builder, *args)

    return types.uint64(types.uint64, types.uint64), build


@intrinsic
def uniform(typing: Any, key: Any, counter: Any) -> Any:
    """Draw a float64 in the open interval (0, 1): its logarithm is always finite."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x = builder.uitofp(builder.lshr(_bits(builder, *args), _I64(12)), _F64)
        return builder.fmul(builder.fadd(x, _F64(0.5)), _F64(2.0**-52))

    return types.float64(types.uint64, types.uint64), build


@intrinsic
def uniform32(typing: Any, key: Any, counter: Any) -> Any:
    """Draw a float32 in [0, 1)."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x = builder.uitofp(builder.lshr(_bits(builder, *args), _I64(40)), _F32)
        return builder.fmul(x, _F32(2.0**-24))

    return types.float32(types.uint64, types.uint64), build


def _mix(builder: Any, x: Any) -> Any:
    for shift, factor in _ROUNDS:
        x = builder.mul(builder.xor(x, builder.lshr(x, _I64(shift))), _I64(factor))
    return x


def _bits(builder: Any, key: Any, counter: Any) -> Any:
    return _mix(builder, builder.add(key, builder.mul(builder.add(counter, _I64(1)), _I64(_GOLDEN))))


def derive(key: int | np.uint64, *labels: int) -> np.uint64:
    """Derive the key of a sub-stream, as in `derive(seed, sweep)`; other labels give unrelated numbers.

    >>> len({int(derive(7, 0)), int(derive(7, 1)), int(derive(7, 1, 0))})
    3
    """
    stream = int(key) & _WORD
    for label in labels:
        stream = (stream + (int(label) + 1) * _GOLDEN) & _WORD
        for shift, factor in _ROUNDS:
            stream = (stream ^ (stream >> shift)) * factor & _WORD
    return np.uint64(stream)


@kernel
def gamma(shape: float, key: np.uint64) -> float:
    """Draw a Gamma(shape, 1) variate from a stream of its own; one too small for a float is 0."""
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
    """Draw the logarithm of a Gamma(shape, 1) variate for a shape below 1; it is always finite.

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
