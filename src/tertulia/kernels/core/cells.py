"""Two things that numpy has, without what numba would compile for them.

A slice that takes an array might not fit it. For the text of that error numba compiles how numbers and tuples are
written: two seconds for `target[:] = source`. `np.searchsorted` takes arrays, too, and whatever can be compared: a
third of a second.
"""

from __future__ import annotations

from tertulia._arrays import F64, Array
from tertulia.kernels.core.jit import kernel


@kernel
def copy_cells(source: Array, target: Array) -> None:
    """Do target[:] = source, for arrays of one length."""
    for k in range(source.shape[0]):
        target[k] = source[k]


@kernel
def first_above(upto: F64, goal: float) -> int:
    """The first place whose running sum exceeds the goal, or the last."""
    low, high = 0, upto.shape[0] - 1
    while low < high:
        middle = (low + high) >> 1
        if upto[middle] > goal:
            high = middle
        else:
            low = middle + 1
    return low
