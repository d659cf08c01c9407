"""Inner loops as explicit vector code: a draw from K unnormalised float32 weights, and the sums of EM.

Topics lie in rows of 16 lanes. Sums run down the lanes, all 16 at once. Then one prefix sum across the lanes finds the
lane, and a walk down its running sums finds the row: a draw may add topics up in any order. Written as LLVM vectors,
the code needs neither numba's fast-math nor its SLP vectoriser (it is twice as fast as their version of a loop over
blocks), and the sums are the same bits on every machine.
"""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from tertulia._arrays import F32, Array
from tertulia.kernels.core.jit import freeze, kernel, lean_kernel
from tertulia.kernels.core.vectors import (
    LANES,
    array_of,
    constant,
    data_of,
    intrinsic,
    load,
    mask,
    padded_width,
    spread,
    store,
    sum_across,
)

_CHAINS = 4  # sums of `dot` that run side by side: an addition takes four cycles, and two can start in each
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_INDEX = ir.IntType(32)
_ZEROS = constant(_FLOATS, 0.0)
_LINE = 64  # bytes that a prefetch brings at a time
_READ, _KEPT, _DATA = (ir.Constant(_INDEX, n) for n in (0, 3, 1))


def pad_with_zeros(x: Array) -> F32:
    """Return numbers [K] as float32, padded to whole rows of lanes."""
    lanes = np.zeros(padded_width(len(x)), dtype=np.float32)
    lanes[: len(x)] = x
    return freeze(lanes, np.float32)


def empty_in_lines(n: int, width: int) -> F32:
    """Allocate [n, width] with each row of lanes on one cache line: split lines cost a tenth of EM's time."""
    flat = np.empty(n * width + LANES, dtype=np.float32)
    start = -(flat.ctypes.data // flat.itemsize) % LANES
    return flat[start : start + n * width].reshape(n, width)


@lean_kernel
def draw(weight: F32, phi: F32, w: int, running: F32, u: np.float32, otherwise: int) -> int:
    """Draw topic k with probability ∝ weight[k] phi[w, k], by u in [0, 1); `otherwise` if there is no mass at all.

    weight [K] and phi [V, K] are padded to whole rows with topics of no mass; running [K] is scratch.
    """
    _sum_down(weight, phi, w, running)
    lane, rest = _find_lane(running, u)
    if lane == LANES:
        return otherwise
    k: int = lane
    whole = running[weight.shape[0] - LANES + lane]  # > 0: the first row that reaches it has mass, also after rounding
    while running[np.uintp(k)] <= rest and running[np.uintp(k)] < whole:  # unsigned: no check for a negative index
        k += LANES
    return k


@kernel
def total(x: F32) -> np.float32:
    """Sum x [K]."""
    whole: np.float32 = dot(x, np.ones((1, x.shape[0]), dtype=np.float32), 0)
    return whole


@intrinsic
def dot(typing: Any, x: Any, rows: Any, r: Any) -> Any:
    """Sum x[k] * rows[r, k] over k in float32, with x [K] and rows [n, K] padded to whole rows of lanes."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        K, xs, row = _row(context, builder, signature, args, 0, 1, args[2])
        sums = [cgutils.alloca_once_value(builder, _ZEROS) for _ in range(_CHAINS)]
        wide = builder.and_(K, ir.Constant(K.type, -LANES * _CHAINS))
        for first, last, chains in ((ir.Constant(K.type, 0), wide, sums), (wide, K, sums[:1])):
            step = ir.Constant(K.type, LANES * len(chains))
            with cgutils.for_range_slice(builder, first, last, step, K.type) as (k, _):
                for c, chain in enumerate(chains):
                    at = builder.add(k, ir.Constant(K.type, LANES * c))
                    product = builder.fmul(load(builder, _FLOATS, xs, at), load(builder, _FLOATS, row, at))
                    builder.store(builder.fadd(builder.load(chain), product), chain)
        whole = _ZEROS
        for chain in sums:
            whole = builder.fadd(whole, builder.load(chain))
        return sum_across(builder, whole)

    return types.float32(x, rows, types.intp), build


@intrinsic
def add(typing: Any, x: Any, scale: Any, rows: Any, r: Any) -> Any:
    """Do x[k] += scale * rows[r, k] for all k, padded as for `dot`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        K, xs, row = _row(context, builder, signature, args, 0, 2, args[3])
        scales = spread(builder, _FLOATS, args[1])
        start, step = ir.Constant(K.type, 0), ir.Constant(K.type, LANES)
        with cgutils.for_range_slice(builder, start, K, step, K.type) as (k, _):
            value = builder.fadd(load(builder, _FLOATS, xs, k), builder.fmul(scales, load(builder, _FLOATS, row, k)))
            store(builder, _FLOATS, value, xs, k)
        return context.get_dummy_value()

    return types.void(x, types.float32, rows, types.intp), build


@intrinsic
def sum_rows(typing: Any, values: Any, words: Any, first: Any, last: Any, rows: Any, sums: Any) -> Any:
    """Do sums[:] = sum over j = first..last-1 of values[j] * rows[words[j], :], with rows [n, LANES]."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        scales, names, table, out = (data_of(context, builder, signature, args, a) for a in (0, 1, 4, 5))
        index, begin, end = args[2].type, args[2], args[3]
        chains = [cgutils.alloca_once_value(builder, _ZEROS) for _ in range(2)]  # an addition takes four cycles
        middle = builder.sub(end, builder.and_(builder.sub(end, begin), ir.Constant(index, 1)))
        for start, stop, some in ((begin, middle, chains), (middle, end, chains[:1])):
            step = ir.Constant(index, len(some))
            with cgutils.for_range_slice(builder, start, stop, step, index) as (j, _):
                for c, chain in enumerate(some):
                    at = builder.add(j, ir.Constant(index, c))
                    scale = spread(builder, _FLOATS, builder.load(builder.gep(scales, [at])))
                    word = builder.zext(builder.load(builder.gep(names, [at])), index)
                    row = load(builder, _FLOATS, table, builder.mul(word, ir.Constant(index, LANES)))
                    builder.store(builder.fadd(builder.load(chain), builder.fmul(scale, row)), chain)
        store(builder, _FLOATS, builder.fadd(*map(builder.load, chains)), out, ir.Constant(index, 0))
        return context.get_dummy_value()

    return types.void(values, words, types.intp, types.intp, rows, sums), build


@intrinsic
def _sum_down(typing: Any, weight: Any, phi: Any, w: Any, running: Any) -> Any:
    """Do running[r, :] = sum over rows q <= r of weight[q, :] * phi[w, q, :]."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        K, weights, row = _row(context, builder, signature, args, 0, 1, args[2])
        sums = data_of(context, builder, signature, args, 3)
        total = cgutils.alloca_once_value(builder, _ZEROS)
        start, step = ir.Constant(K.type, 0), ir.Constant(K.type, LANES)
        with cgutils.for_range_slice(builder, start, K, step, K.type) as (k, _):
            mass = builder.fmul(load(builder, _FLOATS, weights, k), load(builder, _FLOATS, row, k))
            mass = builder.fadd(builder.load(total), mass)
            builder.store(mass, total)
            store(builder, _FLOATS, mass, sums, k)
        return context.get_dummy_value()

    return types.void(weight, phi, types.intp, running), build


@intrinsic
def _find_lane(typing: Any, running: Any, u: Any) -> Any:
    """Find the lane in which u times the total mass falls, and how far into it; LANES if no lane above has mass."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        K = builder.extract_value(array_of(context, builder, signature, args, 0).shape, 0)
        last = builder.sub(K, ir.Constant(K.type, LANES))
        upto = load(builder, _FLOATS, data_of(context, builder, signature, args, 0), last)
        real = builder.fcmp_ordered(">", upto, _ZEROS)  # prefix sums are rounded, and may rise where there is no mass
        for step in (1, 2, 4, 8):  # Hillis and Steele's prefix sum
            upto = builder.fadd(upto, _shift(builder, upto, step))
        goal = builder.fmul(args[1], builder.extract_element(upto, ir.Constant(_INDEX, LANES - 1)))
        above = builder.and_(real, builder.fcmp_ordered(">", upto, spread(builder, _FLOATS, goal)))
        above = builder.bitcast(above, ir.IntType(LANES))
        above = builder.or_(builder.zext(above, _INDEX), ir.Constant(_INDEX, 1 << LANES))
        zero = ir.Constant(ir.FloatType(), 0.0)
        lane = builder.cttz(above, ir.Constant(ir.IntType(1), 1))
        inside = builder.and_(lane, ir.Constant(_INDEX, LANES - 1))
        rest = builder.fsub(goal, builder.extract_element(_shift(builder, upto, 1), inside))
        rest = builder.select(builder.fcmp_ordered(">", rest, zero), rest, zero)
        return context.make_tuple(builder, signature.return_type, [builder.zext(lane, K.type), rest])

    return types.Tuple((types.intp, types.float32))(running, types.float32), build


def _row(context: Any, builder: Any, signature: Any, args: Any, x: int, rows: int, r: Any) -> Any:
    """Return the length of argument `x`, its data, and where row r of argument `rows`, as wide as x, begins."""
    K = builder.extract_value(array_of(context, builder, signature, args, x).shape, 0)
    first = builder.gep(data_of(context, builder, signature, args, rows), [builder.mul(r, K)])
    return K, data_of(context, builder, signature, args, x), first


def _shift(builder: Any, x: Any, step: int) -> Any:
    """Shift a vector up by `step` lanes, with zeros below."""
    return builder.shuffle_vector(_ZEROS, x, mask([LANES + j - step if j >= step else 0 for j in range(LANES)]))


@intrinsic
def fetch_row(typing: Any, table: Any, r: Any) -> Any:
    """Prefetch row r of a matrix: processors do not predict scattered rows."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = array_of(context, builder, signature, args, 0)
        H = builder.extract_value(array.shape, 1)
        row = builder.gep(array.data, [builder.mul(args[1], H)])
        zero, step = ir.Constant(H.type, 0), ir.Constant(H.type, _LINE // (signature.args[0].dtype.bitwidth // 8))
        with cgutils.for_range_slice(builder, zero, H, step, H.type) as (h, _):
            _fetch(builder, builder.gep(row, [h]))
        return context.get_dummy_value()

    return types.void(table, types.intp), build


@intrinsic
def fetch_cell(typing: Any, table: Any, r: Any, c: Any) -> Any:
    """Prefetch the cache line of one cell."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = array_of(context, builder, signature, args, 0)
        row = builder.mul(args[1], builder.extract_value(array.shape, 1))
        _fetch(builder, builder.gep(array.data, [builder.add(row, args[2])]))
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp), build


def _fetch(builder: Any, place: Any) -> None:
    byte = ir.IntType(8).as_pointer()
    fetch = builder.module.declare_intrinsic(
        "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte] + [_INDEX] * 3)
    )
    builder.call(fetch, [builder.bitcast(place, byte), _READ, _KEPT, _DATA])
