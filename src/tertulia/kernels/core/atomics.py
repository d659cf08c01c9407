"""What threads do to the same numbers at the same time: add, read, and wait for each other."""

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

# To wait: at first by looking again, then in short sleeps, after which a thread has its turn again sooner than if it
# had given way to another process. A core that sleeps on a rented machine is lent to others, and comes back late: 0.3 s
# of work in which two threads meet 600 times took 0.4 to 2.3 s with sleeps after 0.02 ms. So looking goes on longer,
# but not where it is in vain because other processes have the core of whom we wait for: each time it is halved twice.
_X86 = platform.machine() in ("x86_64", "AMD64")
_LOOKS = 2**15 if _X86 else 2**20  # about a millisecond, with `rest` or without
_SHORTER = 6  # times halved, at the most
_PAUSE = 20  # microseconds
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
    """What x[i] of a flat array of whole numbers is by now, with all that its writer wrote before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, args), "acquire", x.dtype.bitwidth // 8)

    return x.dtype(x, types.intp), build


@intrinsic
def rest(typing: Any) -> Any:
    """Tell the processor that this thread only looks: one that shares a core with it then has more of the core."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _X86:
            pause = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), pause), [])
        return context.get_dummy_value()

    return types.void(), build


@lean_kernel
def meet(gate: I64, threads: int) -> bool:
    """Wait until all threads are here; False if one of them has failed. A gate is three numbers, at first 0.

    The third is how many times looking was cut by half.
    """
    if threads == 1:
        return True
    all_here = (fetch_add(gate, 0, 1) // threads + 1) * threads  # ever more: a gate serves any number of meetings
    looks, most = 0, _LOOKS >> gate[2]
    while read(gate, 0) < all_here:
        if read(gate, 1) != 0:
            return False
        looks += 1
        if looks > most:
            _sleep(_PAUSE)
        else:
            rest()
    if looks > most:
        gate[2] = smaller(gate[2] + 2, _SHORTER)
    elif looks > 0:
        gate[2] = larger(gate[2] - 1, 0)
    return True


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.gep(data_of(context, builder, signature, args, 0), [args[1]])
