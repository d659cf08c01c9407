"""Rows asked for before they are needed: those of a batch's words lie scattered, and no processor guesses the next."""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

intrinsic: Any = extending.intrinsic
_LINE = 64  # bytes that come at a time
_READ, _KEPT, _DATA = (ir.Constant(ir.IntType(32), n) for n in (0, 3, 1))


@intrinsic
def fetch_row(typing: Any, table: Any, r: Any) -> Any:
    """Have row r of a matrix brought into cache, without waiting for it."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        H = builder.extract_value(array.shape, 1)
        row = builder.gep(array.data, [builder.mul(args[1], H)])
        byte = ir.IntType(8).as_pointer()
        fetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte] + [ir.IntType(32)] * 3)
        )
        zero, step = ir.Constant(H.type, 0), ir.Constant(H.type, _LINE // (signature.args[0].dtype.bitwidth // 8))
        with cgutils.for_range_slice(builder, zero, H, step, H.type) as (h, _):
            builder.call(fetch, [builder.bitcast(builder.gep(row, [h]), byte), _READ, _KEPT, _DATA])
        return context.get_dummy_value()

    return types.void(table, types.intp), build
