"""The inner loop of the dense sampler as explicit vector code: a draw from K unnormalised float32 weights.

Topics lie in rows of 16 lanes. Sums run down the lanes, all 16 at once; then one prefix sum across them finds the lane,
and a walk down its running sums the row: any order of the topics will do to draw one of them. Written as LLVM vectors,
it needs neither numba's fast-math nor its SLP vectoriser (measured: twice as fast as what they make of a loop over
blocks), and the sums are the same bits on every machine.
"""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

from tertulia.arrays import F32
from tertulia.kernels.compiled import kernel

LANES = 16
intrinsic: Any = extending.intrinsic
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_INDEX = ir.IntType(32)
_ZEROS = ir.Constant(_FLOATS, [0.0] * LANES)


def padded(K: int) -> int:
    """K rounded up to whole rows of lanes."""
    return -(-K // LANES) * LANES


@kernel
def draw(weight: F32, phi: F32, w: int, running: F32, u: np.float32, otherwise: int) -> int:
    """A topic k with probability ∝ weight[k] phi[w, k], from u in [0, 1); `otherwise` if there is no mass at all.

    weight [K] and phi [V, K] are padded to whole rows with topics of no mass; running [K] is scratch.
    """
    _sum_down(weight, phi, w, running)
    lane, rest = _find_lane(running, u)
    if lane == LANES:
        return otherwise
    k: int = lane
    whole = running[weight.shape[0] - LANES + lane]  # > 0: the first row that reaches it has mass, whatever was rounded
    while running[np.uintp(k)] <= rest and running[np.uintp(k)] < whole:  # unsigned: no check for a negative index
        k += LANES
    return k


@intrinsic
def _sum_down(typing: Any, weight: Any, phi: Any, w: Any, running: Any) -> Any:
    """running[r, :] = sum over rows q <= r of weight[q, :] * phi[w, q, :]."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        weights, phis, sums = (_data(context, builder, signature, args, a) for a in (0, 1, 3))
        K = builder.extract_value(_array(context, builder, signature, args, 0).shape, 0)
        row = builder.gep(phis, [builder.mul(args[2], K)])
        total = cgutils.alloca_once_value(builder, _ZEROS)
        start, step = ir.Constant(K.type, 0), ir.Constant(K.type, LANES)
        with cgutils.for_range_slice(builder, start, K, step, K.type) as (k, _):
            mass = builder.fmul(_load(builder, weights, k), _load(builder, row, k))
            mass = builder.fadd(builder.load(total), mass)
            builder.store(mass, total)
            builder.store(mass, _vector(builder, sums, k), align=4)
        return context.get_dummy_value()

    return types.void(weight, phi, types.intp, running), build


@intrinsic
def _find_lane(typing: Any, running: Any, u: Any) -> Any:
    """The lane in which u times the total mass falls, and how far into it; LANES if none above it has mass."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        K = builder.extract_value(_array(context, builder, signature, args, 0).shape, 0)
        last = builder.sub(K, ir.Constant(K.type, LANES))
        upto = _load(builder, _data(context, builder, signature, args, 0), last)
        real = builder.fcmp_ordered(">", upto, _ZEROS)  # prefix sums are rounded, and may rise where there is no mass
        for step in (1, 2, 4, 8):  # Hillis and Steele's prefix sum
            upto = builder.fadd(upto, _shifted(builder, upto, step))
        goal = builder.fmul(args[1], builder.extract_element(upto, ir.Constant(_INDEX, LANES - 1)))
        goals = builder.insert_element(_ZEROS, goal, ir.Constant(_INDEX, 0))
        goals = builder.shuffle_vector(goals, _ZEROS, _mask([0] * LANES))
        above = builder.and_(real, builder.fcmp_ordered(">", upto, goals))
        above = builder.bitcast(above, ir.IntType(LANES))
        above = builder.or_(builder.zext(above, _INDEX), ir.Constant(_INDEX, 1 << LANES))
        zero = ir.Constant(ir.FloatType(), 0.0)
        lane = builder.cttz(above, ir.Constant(ir.IntType(1), 1))
        inside = builder.and_(lane, ir.Constant(_INDEX, LANES - 1))
        rest = builder.fsub(goal, builder.extract_element(_shifted(builder, upto, 1), inside))
        rest = builder.select(builder.fcmp_ordered(">", rest, zero), rest, zero)
        return context.make_tuple(builder, signature.return_type, [builder.zext(lane, K.type), rest])

    return types.Tuple((types.intp, types.float32))(running, types.float32), build


def _array(context: Any, builder: Any, signature: Any, args: Any, a: int) -> Any:
    return context.make_array(signature.args[a])(context, builder, args[a])


def _data(context: Any, builder: Any, signature: Any, args: Any, a: int) -> Any:
    return _array(context, builder, signature, args, a).data


def _vector(builder: Any, data: Any, k: Any) -> Any:
    return builder.bitcast(builder.gep(data, [k]), _FLOATS.as_pointer())


def _load(builder: Any, data: Any, k: Any) -> Any:
    return builder.load(_vector(builder, data, k), align=4)


def _mask(indices: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_INDEX, LANES), indices)


def _shifted(builder: Any, x: Any, step: int) -> Any:
    """The vector moved up by `step` lanes, zeros below."""
    return builder.shuffle_vector(_ZEROS, x, _mask([LANES + j - step if j >= step else 0 for j in range(LANES)]))
