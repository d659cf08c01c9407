"""Rows of exponentials as explicit vector code, of float32 or float64.

exp(x) = 2^n e^r with n the whole number next to x / log 2; e^r is its Taylor series, and 2^n an addition to the bits
of the exponent. Rows must be padded to whole vectors (`vectors.padded_width`); |x| is clamped, so
that the result is a normal number.
"""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils

from tertulia.kernels.core.vectors import LANES, array_of, constant, data_of, intrinsic, load, spread, store


class _Format(NamedTuple):
    """A type of numbers, and the constants of its exponential."""

    number: Any
    bits: Any
    lanes: int
    mantissa: int  # bits
    most: float  # |x|
    ln2: tuple[float, float]  # the first short enough for exact products with n
    terms: int  # of the exponential's series
    log_terms: int  # of the logarithm's

    @property
    def vector(self) -> Any:
        """A register's worth of numbers."""
        return self.many(self.number)

    def many(self, kind: Any) -> Any:
        """Return the type of a register of `kind`."""
        return kind if self.lanes == 1 else ir.VectorType(kind, self.lanes)

    def everywhere(self, value: float, kind: Any = None) -> Any:
        """Return a constant in all lanes."""
        kind = kind or self.number
        return ir.Constant(kind, value) if self.lanes == 1 else constant(self.many(kind), value)


_SINGLE = _Format(ir.FloatType(), ir.IntType(32), LANES, 23, 87.0, (0.693359375, -2.12194440054690583e-4), 7, 8)
_DOUBLE = _Format(
    ir.DoubleType(), ir.IntType(64), LANES // 2, 52, 700.0, (0.693145751953125, 1.42860682030941723212e-6), 13, 17
)


@intrinsic
def exp(typing: Any, x: Any) -> Any:
    """Compute the exponential of x; loops over it become vector code."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _exp(builder, _form(signature.args[0])._replace(lanes=1), args[0])

    return x(x), build


@intrinsic
def softplus(typing: Any, x: Any) -> Any:
    """Compute the logarithm of 1 + exp(x); loops over it become vector code."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        form, x = _form(signature.args[0])._replace(lanes=1), args[0]
        zero, two = form.everywhere(0.0), form.everywhere(2.0)
        positive = builder.fcmp_ordered(">", x, zero)
        small = _exp(builder, form, builder.select(positive, builder.fsub(zero, x), x))  # exp(-|x|)
        # log(1 + e) = 2 artanh(e / (2 + e)), and that is at most 1/3
        s = builder.fdiv(small, builder.fadd(two, small))
        square, series = builder.fmul(s, s), form.everywhere(2.0 / (2 * form.log_terms + 1))
        for term in reversed(range(form.log_terms)):
            series = _plus_times(builder, series, square, form.everywhere(2.0 / (2 * term + 1)))
        return builder.fadd(builder.fmul(series, s), builder.select(positive, x, zero))

    return x(x), build


@intrinsic
def normalise_row(typing: Any, rows: Any, r: Any, factor: Any, shifts: Any, sums: Any) -> Any:
    """Do rows[r, :] *= factor; sums[:] += exp(rows[r, :] - shifts)."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        form, B, row = _row(context, builder, signature, args, 0, args[1])
        shift, total = (data_of(context, builder, signature, args, a) for a in (3, 4))
        factors = spread(builder, form.vector, args[2])
        with _vectors(builder, form, B) as b:
            scaled = builder.fmul(load(builder, form.vector, row, b), factors)
            store(builder, form.vector, scaled, row, b)
            away = builder.fsub(scaled, load(builder, form.vector, shift, b))
            raised = builder.fadd(load(builder, form.vector, total, b), _exp(builder, form, away))
            store(builder, form.vector, raised, total, b)
        return context.get_dummy_value()

    return types.void(rows, types.intp, rows.dtype, shifts, sums), build


@intrinsic
def exponent_row(typing: Any, rows: Any, r: Any, shifts: Any, rates: Any, out: Any, q: Any) -> Any:
    """Do out[q, :] = rates * exp(rows[r, :] - shifts)."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        form, B, row = _row(context, builder, signature, args, 0, args[1])
        shift, rate = (data_of(context, builder, signature, args, a) for a in (2, 3))
        _, _, target = _row(context, builder, signature, args, 4, args[5])
        with _vectors(builder, form, B) as b:
            away = builder.fsub(load(builder, form.vector, row, b), load(builder, form.vector, shift, b))
            raised = _exp(builder, form, away)
            store(builder, form.vector, builder.fmul(raised, load(builder, form.vector, rate, b)), target, b)
        return context.get_dummy_value()

    return types.void(rows, types.intp, shifts, rates, out, types.intp), build


def _plus_times(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Compute a b + c, in one instruction where the processor has it."""
    return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


def _exp(builder: Any, form: _Format, x: Any) -> Any:
    most, least = form.everywhere(form.most), form.everywhere(-form.most)
    x = builder.select(builder.fcmp_unordered("<", x, most), x, most)  # unordered: NaN stays NaN
    x = builder.select(builder.fcmp_unordered(">", x, least), x, least)
    # A number added to 1.5 * 2^mantissa is rounded to a whole number, which the lowest bits then hold.
    shift = form.everywhere(1.5 * 2.0**form.mantissa)
    shifted = _plus_times(builder, x, form.everywhere(1.0 / math.log(2.0)), shift)
    n = builder.fsub(shifted, shift)
    rest = x
    for part in form.ln2:
        rest = _plus_times(builder, n, form.everywhere(-part), rest)
    power = form.everywhere(1.0 / math.factorial(form.terms))
    for term in reversed(range(form.terms)):
        power = _plus_times(builder, power, rest, form.everywhere(1.0 / math.factorial(term)))
    whole, places = form.many(form.bits), form.everywhere(form.mantissa, form.bits)
    raised = builder.add(builder.bitcast(power, whole), builder.shl(builder.bitcast(shifted, whole), places))
    return builder.bitcast(raised, form.vector)


@contextmanager
def _vectors(builder: Any, form: _Format, B: Any) -> Iterator[Any]:
    """Loop over the starts of vectors."""
    zero, step = ir.Constant(B.type, 0), ir.Constant(B.type, form.lanes)
    with cgutils.for_range_slice(builder, zero, B, step, B.type) as (b, _):
        yield b


def _row(context: Any, builder: Any, signature: Any, args: Any, a: int, r: Any) -> Any:
    """Return the format of matrix argument `a`, its width, and where its row r begins."""
    array = array_of(context, builder, signature, args, a)
    B = builder.extract_value(array.shape, 1)
    return _form(signature.args[a].dtype), B, builder.gep(array.data, [builder.mul(r, B)])


def _form(kind: Any) -> _Format:
    return _SINGLE if kind == types.float32 else _DOUBLE
