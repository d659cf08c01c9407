"""Packed messages come back bit for bit, are small, and take no memory that they were not sent for."""

import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tertulia.errors import FormatError
from tertulia.federation import zstd
from tertulia.federation.codec import decode, encode
from tertulia.federation.packed_arrays import compressor, section
from tertulia.federation.packing import MOST_BYTES, Base, Bases, LackingBase, pack, size_of, unpack

TYPES = [np.dtype(t) for t in "?bhiqBHIQefd"]
COUNTS = np.random.default_rng(0).poisson(0.05, (40, 5000))  # int64, 95 % zeros
MIXED = {"counts": COUNTS, "phi": np.random.default_rng(1).random((20, 300)), "words": ("a", "b"), "n": 3}


def both_ways(message: bytes, base: bytes | None = None) -> bytes:
    """Pack, check that it comes back, and return what would travel."""
    known = None if base is None else Base.of(base)
    packed = pack(message, known)
    assert unpack(packed, lambda name: known.data if known and known.name == name else None) == message
    assert size_of(packed) == len(message)
    assert len(packed) <= len(message)
    return packed


def shaped_as(x: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """An array like `x` with the bits of another."""
    found = np.frombuffer(bits.tobytes() or bytes(8), np.uint8)
    return np.resize(found, x.nbytes).view(x.dtype).reshape(x.shape)


@st.composite
def arrays(draw):
    """Arrays of any type and shape, long enough to be packed, with extreme numbers among few others."""
    dtype = draw(st.sampled_from(TYPES))
    some = draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=9)))
    shape = draw(st.sampled_from([some.shape, (), (0, 3), (1500,), (3, 700), (40_000,)]))
    return np.resize(some, shape) if some.size else np.zeros(shape, dtype)


@settings(deadline=None, max_examples=150)
@given(st.lists(arrays(), max_size=3), st.lists(arrays(), max_size=3), st.booleans())
def test_every_message_comes_back(values, others, same):
    message = encode(tuple(values))
    both_ways(message)
    both_ways(message, encode(tuple(values if same else others)))
    if len(values) == len(others):
        both_ways(message, encode(tuple(map(shaped_as, values, others))))


EXTREMES = {
    "uint64": np.array([0, 1, 2**64 - 1] * 200, np.uint64),
    "int64": np.array([-(2**63), 2**63 - 1, 0, -1] * 200, np.int64),
    "int8": np.arange(-128, 128, dtype=np.int8).repeat(8),
    "float": np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 5e-324] * 200),
    "a NaN with a message": np.array([0x7FF0DEADBEEF0001] * 400, np.uint64).view(np.float64),
    "none": np.zeros((0, 5)),
    "one": np.array(7),
}


@pytest.mark.parametrize("one", EXTREMES)
@pytest.mark.parametrize("other", EXTREMES)
def test_extreme_numbers_come_back_beside_any_base(one, other):
    padding = np.arange(1000)
    both_ways(encode((EXTREMES[one], padding)), encode((shaped_as(EXTREMES[one], EXTREMES[other]), padding)))


def test_what_is_no_message_goes_as_it_is():
    for data in (b"", b"x" * 5000, encode("short"), bytes(8) + b"{}" * 2000, b"\xff" * 3000):
        assert pack(data) is data
        assert unpack(data) is data


def test_whole_numbers_take_the_bytes_that_they_need():
    dense = np.random.default_rng(2).integers(1, 200, 50_000)  # int64
    assert len(both_ways(encode(dense))) < 1.02 * dense.size
    assert len(both_ways(encode(dense + 40_000))) < 2.05 * dense.size
    assert len(both_ways(encode(dense - 100))) < 1.02 * dense.size  # signs cost nothing
    assert len(both_ways(encode(COUNTS))) < 0.06 * COUNTS.size  # its entropy is 0.04 bytes a number
    assert len(both_ways(encode(np.zeros(10**6, np.int64)))) < 40_000


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_that_repeat_are_listed_once(dtype):
    counts = np.random.default_rng(8).poisson(np.random.default_rng(9).gamma(0.1, 5, (20, 3000)))
    topics = ((counts + 0.1) / (counts + 0.1).sum(axis=1, keepdims=True)).astype(dtype)
    packed = both_ways(encode(topics))
    assert len(packed) < 0.75 * len(zstd.compressor(1).compress(topics.tobytes()))
    both_ways(encode(topics[:, :2].copy()))
    both_ways(encode(-topics))  # the least of its bits is not its least number


def test_differences_are_taken_where_they_are_smaller():
    rng = np.random.default_rng(3)
    last = rng.integers(0, 60_000, 50_000)
    moved = last + rng.integers(-1, 2, last.size) * (rng.random(last.size) < 0.1)
    alone, beside = len(both_ways(encode(moved))), len(both_ways(encode(moved), encode(last)))
    assert beside < 0.1 * alone
    assert len(both_ways(encode(COUNTS), encode(COUNTS[::-1].copy()))) <= len(both_ways(encode(COUNTS))) + 64


def test_random_numbers_are_left_alone():
    """As masked ones would be."""
    ring = encode(np.random.default_rng(4).integers(0, 2**32, 100_000, np.uint32))
    assert pack(ring) is ring
    assert pack(ring, Base.of(encode(np.random.default_rng(5).integers(0, 2**32, 100_000, np.uint32)))) is ring


def test_who_lacks_the_base_says_so():
    last = encode(np.arange(5000))
    packed = pack(encode(np.arange(5000) * 1001), Base.of(encode(np.arange(5000) * 1001)))
    with pytest.raises(LackingBase):
        unpack(packed)
    with pytest.raises(FormatError):  # another message under its name
        unpack(packed, lambda name: encode("other"))
    assert unpack(pack(last, Base.of(encode("other")))) == last  # no differences: no base is needed


def test_bases_are_the_last_of_each_step_within_their_memory():
    bases = Bases(10_000)
    data = {name: Base.of(name.encode() * 2000) for name in "abcdefg"}
    for name, step in zip("abcd", ("one", "two", "one", "three"), strict=True):
        bases.keep(step, data[name])
    assert bases.of_step_or_none("one") == data["c"]
    assert bases.find_or_none(data["a"].name) is None
    for name in "efg":  # the oldest go
        bases.keep(name, data[name])
    assert bases.of_step_or_none("two") is None
    assert bases.of_step_or_none("g") == data["g"]
    bases.keep("one", Base.of(b"x" * 20_000))  # too long to be kept, and what was there is old
    assert bases.of_step_or_none("one") is None


def head(total: int, size: int) -> bytes:
    return struct.pack("<8s32sQQ", b"\xfftertul1", bytes(32), total, size)


@pytest.mark.parametrize("total", [MOST_BYTES + 1, 2**62, 2**64 - 1, MOST_BYTES])
@pytest.mark.parametrize("size", [0, 100, 2**62])
def test_claims_of_memory_are_refused_before_it_is_taken(total, size):
    bomb = head(total, size) + bytes(5000)
    tracemalloc.start()
    with pytest.raises(FormatError):
        unpack(bomb)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("size", [10**5 + 1, 10**8])
def test_a_section_that_holds_more_than_its_array_is_refused_before_memory_is_taken(size):
    message = encode(np.ones(100_000, np.uint8))
    tree = message[: int.from_bytes(message[:8], "little") + 8]
    squeezed = zstd.compressor(3).compress(b"\1" * size)
    header = section(tree, compressor())
    bomb = b"".join([head(len(message), len(tree)), *header, b"\1", struct.pack("<Q", len(squeezed)), squeezed])
    bomb += bytes(1000)  # so that it may hold a message of this size
    tracemalloc.start()
    with pytest.raises(FormatError, match="another size"):
        unpack(bomb)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_damage_is_a_format_error_or_a_message():
    last, message = encode({**MIXED, "counts": COUNTS[::-1].copy()}), encode(MIXED)
    base = Base.of(last)
    packed = pack(message, base)
    rng = np.random.default_rng(6)
    for turn in range(600):
        damaged = bytearray(packed)
        at = rng.integers(0, len(packed) if turn % 2 else 200)
        damaged[at] = rng.integers(0, 256)
        data = bytes(damaged[: rng.integers(1, len(packed))]) if turn % 5 == 0 else bytes(damaged)
        try:
            unpack(data, lambda name: base.data)
        except FormatError:
            continue


def test_what_comes_back_can_be_decoded():
    found = decode(unpack(pack(encode(MIXED))))
    assert np.array_equal(found["counts"], COUNTS)
    assert found["words"] == ("a", "b")
