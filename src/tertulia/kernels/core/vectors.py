"""Helpers of intrinsics in LLVM vector code: arguments as arrays, and loads and stores of whole registers."""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import extending

LANES = 16  # of float32; half as many of float64
intrinsic: Any = extending.intrinsic
_INDEX = ir.IntType(32)


def padded_width(n: int) -> int:
    """Round n up to whole rows of lanes."""
    return -(-n // LANES) * LANES


def array_of(context: Any, builder: Any, signature: Any, args: Any, a: int) -> Any:
    """Return argument `a`, an array."""
    return context.make_array(signature.args[a])(context, builder, args[a])


def data_of(context: Any, builder: Any, signature: Any, args: Any, a: int) -> Any:
    """Return where the numbers of argument `a` begin."""
    return array_of(context, builder, signature, args, a).data


def place(builder: Any, vector: Any, data: Any, at: Any) -> Any:
    """Return the place of a register's numbers, from number `at` on."""
    return builder.bitcast(builder.gep(data, [at]), vector.as_pointer())


def load(builder: Any, vector: Any, data: Any, at: Any) -> Any:
    """Read a register; arrays are aligned to single numbers only."""
    return builder.load(place(builder, vector, data, at), align=4)


def store(builder: Any, vector: Any, value: Any, data: Any, at: Any) -> None:
    """Write a register."""
    builder.store(value, place(builder, vector, data, at), align=4)


def constant(vector: Any, value: Any) -> Any:
    """Return a vector with the same known number in all lanes."""
    return ir.Constant(vector, [value] * vector.count)


def spread(builder: Any, vector: Any, value: Any) -> Any:
    """Copy one number to all lanes."""
    zeros = constant(vector, 0.0)
    first = builder.insert_element(zeros, value, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(first, zeros, constant(ir.VectorType(_INDEX, vector.count), 0))


def mask(indices: list[int]) -> Any:
    """Return the mask of a shuffle that takes these lanes."""
    return ir.Constant(ir.VectorType(_INDEX, len(indices)), indices)


def sum_across(builder: Any, x: Any) -> Any:
    """Sum all lanes."""
    for step in (8, 4, 2, 1):
        turned = builder.shuffle_vector(x, x, mask([(j + step) % LANES for j in range(LANES)]))
        x = builder.fadd(x, turned)
    return builder.extract_element(x, ir.Constant(_INDEX, 0))
