"""A step of EM for theta as explicit vector code, four words at a time; see `simd` for the reasons."""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from tertulia.kernels.core.vectors import LANES, array_of, constant, data_of, intrinsic, load, mask, store, sum_across

FOUR = 4  # words at a time in `attract`
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_QUARTET = ir.VectorType(ir.FloatType(), FOUR)
_ZEROS = constant(_FLOATS, 0.0)


@intrinsic
def attract(typing: Any, theta: Any, pull: Any, rows: Any, mine: Any, count: Any, j: Any) -> Any:
    """Do pull[k] += sum over words i = j..j+3 of count[i] / mass_i * rows[mine[i], k], padded to whole rows of lanes.

    mass_i = sum over k of theta[k] * rows[mine[i], k]; a word without mass pulls nothing. Four words share the reading
    of theta, the additions across lanes, and the reading and writing of pull: at 112 lanes a word takes 11 ns instead
    of the 16 of `dot` and `add`.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        K = builder.extract_value(array_of(context, builder, signature, args, 0).shape, 0)
        thetas, pulls, data, places, counts = (data_of(context, builder, signature, args, a) for a in range(5))
        at = [builder.add(args[5], ir.Constant(K.type, i)) for i in range(FOUR)]
        words = [builder.gep(data, [builder.mul(builder.load(builder.gep(places, [i])), K)]) for i in at]
        sums = [cgutils.alloca_once_value(builder, _ZEROS) for _ in words]
        start, step = ir.Constant(K.type, 0), ir.Constant(K.type, LANES)
        with cgutils.for_range_slice(builder, start, K, step, K.type) as (k, _):
            x = load(builder, _FLOATS, thetas, k)
            for word, partial in zip(words, sums, strict=True):
                product = builder.fmul(x, load(builder, _FLOATS, word, k))
                builder.store(builder.fadd(builder.load(partial), product), partial)
        mass, none = _sum_four(builder, [builder.load(partial) for partial in sums]), constant(_QUARTET, 0.0)
        shares = builder.fdiv(load(builder, _QUARTET, counts, args[5]), mass)
        shares = builder.select(builder.fcmp_ordered(">", mass, none), shares, none)
        scales = [builder.shuffle_vector(shares, none, mask([i] * LANES)) for i in range(FOUR)]
        with cgutils.for_range_slice(builder, start, K, step, K.type) as (k, _):
            a, b, c, d = (
                builder.fmul(scale, load(builder, _FLOATS, word, k)) for word, scale in zip(words, scales, strict=True)
            )
            more = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
            store(builder, _FLOATS, builder.fadd(load(builder, _FLOATS, pulls, k), more), pulls, k)
        return context.get_dummy_value()

    return types.void(theta, pull, rows, mine, count, types.intp), build


@intrinsic
def advance(typing: Any, theta: Any, pull: Any, alpha: Any) -> Any:
    """Do pull[k] = alpha[k] + theta[k] * pull[k], the next theta; return the sum of its distances from theta.

    At 112 lanes it takes 12 ns; a loop and `dot`, which write to memory in between, take 50.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        K = builder.extract_value(array_of(context, builder, signature, args, 0).shape, 0)
        thetas, pulls, alphas = (data_of(context, builder, signature, args, a) for a in range(3))
        moved = cgutils.alloca_once_value(builder, _ZEROS)
        start, step = ir.Constant(K.type, 0), ir.Constant(K.type, LANES)
        with cgutils.for_range_slice(builder, start, K, step, K.type) as (k, _):
            x = load(builder, _FLOATS, thetas, k)
            value = builder.fmul(x, load(builder, _FLOATS, pulls, k))
            value = builder.fadd(load(builder, _FLOATS, alphas, k), value)
            store(builder, _FLOATS, value, pulls, k)
            up, down = builder.fsub(value, x), builder.fsub(x, value)
            away = builder.select(builder.fcmp_ordered(">", up, _ZEROS), up, down)
            builder.store(builder.fadd(builder.load(moved), away), moved)
        return sum_across(builder, builder.load(moved))

    return types.float32(theta, pull, alpha), build


def _sum_four(builder: Any, vectors: list[Any]) -> Any:
    """Sum each of four vectors; return the sums as one vector of four."""

    def add_halves(x: Any, y: Any, left: list[int], right: list[int]) -> Any:
        return builder.fadd(builder.shuffle_vector(x, y, mask(left)), builder.shuffle_vector(x, y, mask(right)))

    a, b, c, d = vectors
    for half in (8, 4):
        a, b, c, d = (add_halves(v, v, list(range(half)), list(range(half, 2 * half))) for v in (a, b, c, d))
    ab, cd = (add_halves(x, y, [0, 4, 1, 5], [2, 6, 3, 7]) for x, y in ((a, b), (c, d)))
    return add_halves(ab, cd, [0, 1, 4, 5], [2, 3, 6, 7])
