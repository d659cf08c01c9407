"""Cells of one array into another, without what numba would compile for `target[:] = source`.

A slice that takes an array might not fit it. For the text of that error numba compiles how numbers and tuples are
written: two seconds, in each kernel that has such a line.
"""

from __future__ import annotations

from tertulia._arrays import Array
from tertulia.kernels.core.jit import kernel


@kernel
def copy_cells(source: Array, target: Array) -> None:
    """Do target[:] = source, for arrays of one length."""
    for k in range(source.shape[0]):
        target[k] = source[k]
