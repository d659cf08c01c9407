"""Minimum, maximum, copy and search, written so that kernels compile fast.

numba compiles its own `min` and `max` again in each kernel, in 0.06 s for each type; here they are intrinsics. An
assignment to a slice takes two seconds, for numba compiles the text of an error that cannot occur. `np.searchsorted`
takes a third of a second. Here both are loops.
"""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

from typing import Any

from numba import types

from tertulia._arrays import F64, Array
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.vectors import intrinsic


@intrinsic
def smaller(typing: Any, x: Any, y: Any) -> Any:
    """Return the smaller of two numbers of one kind; y if one is not a number."""
    return _choose("<", typing.unify_types(x, y))


@intrinsic
def larger(typing: Any, x: Any, y: Any) -> Any:
    """Return the larger of two numbers of one kind; y if one is not a number."""
    return _choose(">", typing.unify_types(x, y))


def _choose(relation: str, kind: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        signed = kind in types.signed_domain
        compare = builder.icmp_signed if signed else builder.icmp_unsigned
        if isinstance(kind, types.Float):
            compare = builder.fcmp_ordered
        return builder.select(compare(relation, *args), *args)

    kind = types.unliteral(kind)
    return kind(kind, kind), build


@kernel
def copy_cells(source: Array, target: Array) -> None:
    """Do target[:] = source, for arrays of one length."""
    for k in range(source.shape[0]):
        target[k] = source[k]


@kernel
def first_above(upto: F64, goal: float) -> int:
    """Find the first place whose running sum exceeds the goal, or the last place."""
    low, high = 0, upto.shape[0] - 1
    while low < high:
        middle = (low + high) >> 1
        if upto[middle] > goal:
            high = middle
        else:
            low = middle + 1
    return low
