"""ChaCha20 (RFC 8439) in vector code: the keystream from which a party's reports are regenerated.

Sixteen blocks are computed at once, one per lane: either blocks of one token, or one block of sixteen tokens, which
may have sixteen keys. A block is a pure function of the key, its 32-bit counter and a token's 64-bit number (the
nonce's first two words; the third is zero), so that a token's noise does not depend on where a run begins, nor on the
number of threads.

It is our own, for every token has a nonce of its own inside compiled loops: 22 ns per block, where a cipher object of
`cryptography` for each token takes 5,600 ns (and 60 ns per block of one long keystream, without random access). A
whole report by randomised response takes 41 ns. Tests compare both, bit for bit.
"""

# mypy: disable-error-code="no-untyped-call"
# llvmlite and numba's code generator carry no types.

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from tertulia._arrays import I32, I64
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.vectors import LANES, intrinsic

U32 = NDArray[np.uint32]
ROWS = 16  # words of a block
KEY_WORDS = 8
_ROW = ir.VectorType(ir.IntType(32), LANES)
_QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def initial_state(key: bytes) -> U32:
    """Make the state [16 rows of 16 lanes], flat, of a 32-byte key: "expand 32-byte k", key, and room for counters."""
    first = np.frombuffer(b"expand 32-byte k" + key + bytes(16), dtype="<u4").astype(np.uint32)
    return np.repeat(first, LANES)


@kernel
def one_token(state: U32, counter: int, token: int, out: U32) -> None:
    """Compute blocks counter..counter+15 of a token: word r of block counter + l at out[16 r + l]."""
    for lane in range(LANES):
        _set(state, lane, counter + lane, token)
    _blocks(state, out)


@kernel
def many_tokens(state: U32, counter: int, token: int, out: U32) -> None:
    """Compute block `counter` of tokens token..token+15: word r of token + l at out[16 r + l]."""
    for lane in range(LANES):
        _set(state, lane, counter, token + lane)
    _blocks(state, out)


@kernel
def tokens_by_key(
    state: U32, keys: U32, owner: I32, place: I64, counter: int, first: int, last: int, out: U32
) -> None:  # fmt: skip
    """Compute block `counter` of tokens first..last-1, at most 16; t has key keys[owner[t]] and number place[t]."""
    for t in range(first, last):
        lane = t - first
        for r in range(KEY_WORDS):
            state[(4 + r) * LANES + lane] = keys[owner[t], r]
        _set(state, lane, counter, place[t])
    _blocks(state, out)


@kernel
def set_key(state: U32, key: U32) -> None:
    """Give all lanes one key."""
    for r in range(KEY_WORDS):
        for lane in range(LANES):
            state[(4 + r) * LANES + lane] = key[r]


@kernel
def _set(state: U32, lane: int, counter: int, token: int) -> None:
    state[12 * LANES + lane] = np.uint32(counter)
    state[13 * LANES + lane] = np.uint32(token & 0xFFFFFFFF)
    state[14 * LANES + lane] = np.uint32(token >> 32)


@intrinsic
def _blocks(typing: Any, state: Any, out: Any) -> Any:
    """Apply the block function to every lane."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, target = (
            builder.bitcast(context.make_array(kind)(context, builder, value).data, _ROW.as_pointer())
            for kind, value in zip(signature.args, args, strict=True)
        )
        start = [builder.load(_row(builder, source, r), align=4) for r in range(ROWS)]
        x = [cgutils.alloca_once_value(builder, row) for row in start]
        with cgutils.for_range(builder, ir.Constant(ir.IntType(32), 10)):
            rows = [builder.load(slot) for slot in x]
            for quarter in _QUARTERS:
                _quarter_round(builder, rows, *quarter)
            for slot, row in zip(x, rows, strict=True):
                builder.store(row, slot)
        for r in range(ROWS):
            total = builder.add(builder.load(x[r]), start[r])
            builder.store(total, _row(builder, target, r), align=4)
        return context.get_dummy_value()

    return types.void(state, out), build


def _quarter_round(builder: Any, x: list[Any], a: int, b: int, c: int, d: int) -> None:
    for to, by, turned, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[to] = builder.add(x[to], x[by])
        mixed = builder.xor(x[turned], x[to])
        left, right = (ir.Constant(_ROW, [shift] * LANES) for shift in (bits, 32 - bits))
        x[turned] = builder.or_(builder.shl(mixed, left), builder.lshr(mixed, right))


def _row(builder: Any, rows: Any, r: int) -> Any:
    return builder.gep(rows, [ir.Constant(ir.IntType(64), r)])
