"""Tags of sums: they add up, and nobody without the key makes one of other numbers."""

import numpy as np
import pytest

from tertulia.federation.secure.sum_tags import CELLS, is_tag_of, tag_of

KEY, OTHER = b"k" * 32, b"o" * 32
PARTS = np.random.default_rng(1).integers(-(2**20), 2**20, (7, 3, 50))
PRIME = 2**31 - 1


def by_hand(key, arrays):
    """The definition, with Python's whole numbers."""
    flat = [int(x) for array in arrays for x in array.reshape(-1)]
    factors = [tag_of(key, (row,)) for row in np.eye(len(flat), dtype=np.int64)]  # the tag of a unit is its factor
    return [
        sum(x * int(factor[cell]) for x, factor in zip(flat, factors, strict=True)) % PRIME for cell in range(CELLS)
    ]


def test_a_tag_is_the_sum_of_numbers_times_secret_factors():
    arrays = PARTS[0], PARTS[1, 0].astype(np.int32)
    assert tag_of(KEY, arrays).tolist() == by_hand(KEY, arrays)


def test_tags_of_parts_add_up_to_the_tag_of_the_total():
    tags = sum(tag_of(KEY, (part,)) for part in PARTS)
    assert is_tag_of(tags, KEY, (PARTS.sum(axis=0),))
    assert is_tag_of(tags + tag_of(KEY, (-PARTS[0],)), KEY, (PARTS[1:].sum(axis=0),))


@pytest.mark.parametrize("changed", [1, -1, 2**16, 2**30])
def test_another_number_has_another_tag(changed):
    tag = tag_of(KEY, (PARTS[0],))
    for place in range(0, PARTS[0].size, 13):
        other = PARTS[0].copy()
        other.reshape(-1)[place] += changed
        assert not is_tag_of(tag, KEY, (other,))


def test_another_order_another_key_and_another_shape_have_another_tag():
    tag = tag_of(KEY, (PARTS[0], PARTS[1]))
    assert is_tag_of(tag, KEY, (PARTS[0], PARTS[1]))
    assert not is_tag_of(tag, KEY, (PARTS[1], PARTS[0]))
    assert not is_tag_of(tag, OTHER, (PARTS[0], PARTS[1]))
    assert not is_tag_of(tag[:1], KEY, (PARTS[0], PARTS[1]))
    assert not is_tag_of(np.zeros(CELLS, np.int64), KEY, (PARTS[0], PARTS[1]))


def test_numbers_that_differ_by_the_prime_are_refused():
    """Their remainders are equal, and so are their tags."""
    one = np.array([5, 9])
    assert np.array_equal(tag_of(KEY, (one,)), tag_of(KEY, (one + PRIME,)))
    assert is_tag_of(tag_of(KEY, (one,)), KEY, (one,))
    assert not is_tag_of(tag_of(KEY, (one,)), KEY, (one + PRIME,))


def test_long_arrays_are_hashed_in_pieces():
    long = np.zeros(2**20 + 9, np.int64)
    long[[0, 2**20 - 1, 2**20, -1]] = 3, 5, 7, 11
    pieces = [np.where(np.arange(len(long)) == place, long, 0) for place in (0, 2**20 - 1, 2**20, len(long) - 1)]
    assert is_tag_of(sum(tag_of(KEY, (piece,)) for piece in pieces), KEY, (long,))
