"""Atomic operations for threads inside one kernel: fetch-and-add, load, and a barrier."""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types

from tertulia._arrays import I64
from tertulia.kernels.core.jit import lean_kernel
from tertulia.kernels.core.scalars import larger, smaller
from tertulia.kernels.core.vectors import data_of, intrinsic

# A thread that waits first spins, then sleeps for short times, after which it is scheduled sooner than after a yield.
# On a rented machine a core that sleeps is lent to others and comes back late: 0.3 s of work with 600 barriers of two
# threads took 0.4 to 2.3 s when threads slept after 0.02 ms. So threads spin for about a millisecond. When the peer is
# descheduled, spinning is in vain: each time the spin budget is quartered.
_X86 = platform.machine() in ("x86_64", "AMD64")
_SPINS = 2**15 if _X86 else 2**20  # about a millisecond, with `spin_pause` or without
_MOST_HALVINGS = 6  # of the spin budget
_SLEEP = 20  # microseconds
_sleep: Any = types.ExternalFunction("usleep", types.int32(types.uint32))


@intrinsic
def fetch_add(typing: Any, x: Any, i: Any, more: Any) -> Any:
    """Add to x[i] of a flat array of whole numbers, undisturbed by other threads; return what was there before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args)
        value = context.cast(builder, args[2], signature.args[2], x.dtype)
        return builder.atomic_rmw("add", place, value, "acq_rel")

    return x.dtype(x, types.intp, more), build


@intrinsic
def read(typing: Any, x: Any, i: Any) -> Any:
    """Load x[i] of a flat array of whole numbers, with acquire semantics."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, args), "acquire", x.dtype.bitwidth // 8)

    return x.dtype(x, types.intp), build


@intrinsic
def spin_pause(typing: Any) -> Any:
    """Tell the processor that this thread spins, so that a thread on the same core gets more of it."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _X86:
            pause = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), pause), [])
        return context.get_dummy_value()

    return types.void(), build


@lean_kernel
def barrier_wait(barrier: I64, threads: int) -> bool:
    """Wait until all threads are here; False if one of them has failed.

    A barrier is three numbers, at first 0: arrivals so far, a flag for failure, and halvings of the spin budget.
    """
    if threads == 1:
        return True
    all_here = (fetch_add(barrier, 0, 1) // threads + 1) * threads  # arrivals only grow: a barrier can be used again
    spins, most = 0, _SPINS >> barrier[2]
    while read(barrier, 0) < all_here:
        if read(barrier, 1) != 0:
            return False
        spins += 1
        if spins > most:
            _sleep(_SLEEP)
        else:
            spin_pause()
    if spins > most:
        barrier[2] = smaller(barrier[2] + 2, _MOST_HALVINGS)
    elif spins > 0:
        barrier[2] = larger(barrier[2] - 1, 0)
    return True


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.gep(data_of(context, builder, signature, args, 0), [args[1]])
