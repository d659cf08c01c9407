from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pydantic import BaseModel, ConfigDict, Field

from tertulia.errors import FormatError
from tertulia.federation.codec import decode, encode
from tertulia.federation.types import message


@message
class Parcel:
    label: str
    content: object


DTYPES = st.sampled_from(
    [np.int8, np.uint8, np.uint16, np.int32, np.int64, np.uint64, np.float32, np.float64, np.bool_]
)
ARRAYS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)))
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    ARRAYS | SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.builds(Parcel, label=st.text(), content=inner)
    ),
    max_leaves=8,
)


def same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, Parcel):
        return isinstance(b, Parcel) and a.label == b.label and same(a.content, b.content)
    return type(a) is type(b) and a == b


@given(VALUES)
def test_decoding_gives_back_what_was_encoded(value):
    assert same(decode(encode(value)), value)


@given(VALUES)
def test_encoding_is_deterministic(value):
    assert encode(value) == encode(value)


def test_arrays_in_any_memory_layout_arrive_in_order():
    x = np.arange(12).reshape(3, 4)
    assert np.array_equal(decode(encode(x.T)), x.T)
    assert np.array_equal(decode(encode(x[:, ::2])), x[:, ::2])
    assert np.array_equal(decode(encode(x.astype(">i8"))), x)


@pytest.mark.parametrize("junk", [b"", b"abc", b"\xff" * 40, encode({"a": np.ones(9)})[:-3]])
def test_damaged_bytes_are_refused(junk):
    with pytest.raises(FormatError, match="not a Tertulia message"):
        decode(junk)


def test_only_known_messages_are_rebuilt():
    travelling = encode(Parcel("x", 1)).replace(b"Parcel", b"Bogus1")
    with pytest.raises(FormatError, match="unknown message"):
        decode(travelling)


def test_objects_that_are_not_data_are_refused():
    with pytest.raises(FormatError, match="cannot carry a set"):
        encode({1, 2})


@message
class Pace(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    rate: float = Field(0.5, gt=0)
    sizes: tuple[int, ...] = (1, 2)
    kind: Literal["slow", "fast"] | None = None


def test_settings_travel_as_they_are():
    pace = Pace(rate=2, kind="fast")
    assert decode(encode(Parcel("pace", pace))).content == pace
    assert encode(pace) == encode(Pace(kind="fast", rate=2.0))


@pytest.mark.parametrize(
    ("sent", "arrives", "says"),
    [
        (b"0.25", b"-.25", "not a Tertulia message"),
        (b"0.25", b"-1.0", "rate = -1.0: Input should be greater than 0"),
        (b"slow", b"fest", "kind = 'fest'"),
        (b"rate", b"rite", r"differ in \['rate', 'rite'\]"),
    ],
)
def test_settings_are_checked_where_they_arrive(sent, arrives, says):
    with pytest.raises(FormatError, match=says):
        decode(encode(Pace(rate=0.25, kind="slow")).replace(sent, arrives))


def test_settings_that_are_no_message_do_not_travel():
    class Own(Pace):
        secret: int = 1

    with pytest.raises(FormatError, match="is not a message"):
        encode(Own())
