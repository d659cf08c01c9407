"""Additions that threads may make to the same numbers at the same time."""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

from typing import Any

from numba import types

from tertulia.kernels.core.vectors import data_of, intrinsic


@intrinsic
def fetch_add(typing: Any, x: Any, i: Any, more: Any) -> Any:
    """Add to x[i] of a flat array of whole numbers, undisturbed by other threads; return what was there before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args)
        value = context.cast(builder, args[2], signature.args[2], x.dtype)
        return builder.atomic_rmw("add", place, value, "acq_rel")

    return x.dtype(x, types.intp, more), build


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.gep(data_of(context, builder, signature, args, 0), [args[1]])
