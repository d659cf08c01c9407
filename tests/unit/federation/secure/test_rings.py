"""Numbers in rings: exact sums, no number that wraps, and a wider ring for what does not fit."""

from typing import Annotated

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia._arrays import Array
from tertulia.errors import FormatError, InputError
from tertulia.federation import fields
from tertulia.federation.secure.rings import (
    WIDTHS,
    TooWide,
    bound,
    fitting,
    from_ring,
    rings_of,
    to_integers,
    to_ring,
    wider,
    widths_of,
)
from tertulia.federation.types import message


@message
class Reply:
    whole: fields.LengthChange
    real: Annotated[Array, fields.Numbers(("*",), "f", scale=20)]
    documents: fields.DocumentCount


@message
class Unmarked:
    values: Array


def reply(whole, real, documents=3):
    return Reply(np.asarray(whole), np.asarray(real, float), np.array(documents))


@given(st.integers(3, 40), st.sampled_from(WIDTHS), st.integers(0, 2**32 - 1), st.sampled_from([np.int32, np.int64]))
@settings(max_examples=60, deadline=None)
def test_totals_never_wrap_and_are_exact(n, width, seed, dtype):
    rng, most = np.random.default_rng(seed), bound(width, n)
    most = min(most, np.iinfo(dtype).max)
    parts = [rng.integers(-most, most, 50, endpoint=True).astype(dtype) for _ in range(n)]
    parts[0][0] = parts[1][0] = most
    totals = sum(to_ring([part], [width], n)[0] for part in parts)
    exact = np.sum([part.astype(object) for part in parts], axis=0)
    assert totals.dtype.itemsize * 8 == width
    assert (totals.view(f"<i{width // 8}").astype(object) == exact).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_number_beyond_the_bound_is_refused_not_clipped(width):
    most = bound(width, 5)
    assert to_ring([np.array([most, -most])], [width], 5)
    for beyond in (most + 1, -most - 1):
        with pytest.raises(TooWide):
            to_ring([np.array([beyond])], [width], 5)


def test_reals_are_rounded_to_their_grid():
    got = from_ring(Reply, to_ring(to_integers(reply([1, -2], [0.1, -1 / 3])), (32, 64, 32), 5))
    assert got.whole.tolist() == [1, -2]
    assert got.whole.dtype == np.int64
    assert np.allclose(got.real, [0.1, -1 / 3], rtol=0, atol=2.0**-21)
    assert (got.real * 2**20 == np.rint(np.array([0.1, -1 / 3]) * 2**20)).all()
    assert got.documents == 3


def test_what_is_no_number_is_refused():
    for bad in (np.nan, np.inf):
        with pytest.raises(InputError, match="not finite"):
            to_integers(reply([1], [bad]))
    with pytest.raises(TooWide):
        to_integers(reply([1], [1e30]))
    with pytest.raises(FormatError, match="'values' of Unmarked cannot be masked"):
        rings_of(Unmarked)


def test_widths_come_from_the_question_or_from_the_marks():
    assert widths_of(Reply, ()) == (32, 32, 32)
    assert widths_of(Reply, (64,)) == (64, 64, 64)
    assert widths_of(Reply, (16, 32, 64)) == (16, 32, 64)
    for bad in ((16, 32), (8, 8, 8), (12,)):
        with pytest.raises(FormatError):
            widths_of(Reply, bad)


def test_rings_widen_and_narrow():
    assert wider(()) == (64,)
    assert wider((16, 32)) == (32, 64)
    with pytest.raises(InputError, match="beyond every ring"):
        wider((64, 64))
    totals = to_ring([np.array([300]), np.array([3000]), np.array([10**8])], [64, 64, 64], 5)
    assert fitting(totals, 5) == (16, 16, 32)
    assert fitting(totals, 50) == (16, 32, 64)  # a party may hold less of a ring that more parties share
