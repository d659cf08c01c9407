"""What threads inside one kernel need to work together: a number that all may add to, and a gate where all meet.

A batch of online EM takes a millisecond, about as long as Python takes to hand out its parts. So all threads run the
whole epoch, take parts from a shared counter, and meet at a gate between the steps. A thread that waits keeps
looking for a while, then lets others have its core.
"""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numba import types

from tertulia._arrays import I64
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.vectors import data_of, intrinsic

_LOOKS = 2_000  # at the gate, before a thread lets others run: some ten microseconds
_LINE = 8  # int64 numbers that share a line of the cache


@intrinsic
def fetch_add(typing: Any, x: Any, i: Any, more: Any) -> Any:
    """Add to x[i] of a flat array of whole numbers, undisturbed by other threads; return what was there before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args)
        value = context.cast(builder, args[2], signature.args[2], x.dtype)
        return builder.atomic_rmw("add", place, value, "acq_rel")

    return x.dtype(x, types.intp, more), build


@intrinsic
def add_float(typing: Any, x: Any, i: Any, more: Any) -> Any:
    """Add to x[i] of a flat array of float32, undisturbed by other threads: in any order, as long as all are whole."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.atomic_rmw("fadd", _place(context, builder, signature, args), args[2], "acq_rel")
        return context.get_dummy_value()

    return types.void(x, types.intp, types.float32), build


@intrinsic
def _look(typing: Any, x: Any, i: Any) -> Any:
    """x[i] as other threads have left it, not as this one remembers it."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, args), "acquire", align=x.dtype.bitwidth // 8)

    return x.dtype(x, types.intp), build


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.gep(data_of(context, builder, signature, args, 0), [args[1]])


def gate() -> I64:
    """A new gate."""
    return np.zeros(2 * _LINE, dtype=np.int64)


@kernel
def meet(gate: I64, threads: int) -> None:
    """Wait until all threads are here; what they wrote before, each can read after."""
    if threads == 1:
        return
    turn = _look(gate, _LINE)
    if fetch_add(gate, 0, 1) == threads - 1:
        gate[0] = 0
        fetch_add(gate, _LINE, 1)
        return
    looks = 0
    while _look(gate, _LINE) == turn:
        looks += 1
        if looks > _LOOKS:
            _rest()


if hasattr(os, "sched_yield"):
    _rest: Any = types.ExternalFunction("sched_yield", types.int32())
else:

    @kernel
    def _rest() -> int:
        return 0
