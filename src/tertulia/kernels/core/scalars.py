"""The smaller and the larger of two numbers, as intrinsics.

numba's own `min` and `max` are functions that each kernel compiles anew, in 0.06 s for each kind of numbers.
"""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

from typing import Any

from numba import types

from tertulia.kernels.core.vectors import intrinsic


@intrinsic
def smaller(typing: Any, x: Any, y: Any) -> Any:
    """The smaller of two numbers of one kind; y if one is not a number."""
    return _choose("<", typing.unify_types(x, y))


@intrinsic
def larger(typing: Any, x: Any, y: Any) -> Any:
    """The larger of two numbers of one kind; y if one is not a number."""
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
