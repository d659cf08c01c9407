"""Scalars, copy and search that stand in for numpy in kernels do what numpy does."""

import numpy as np
import pytest

from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.scalars import copy_cells, first_above, larger, smaller


@kernel
def both(x, y):
    return smaller(x, y), larger(x, y)


@kernel
def beside_a_constant(x):
    return smaller(x, 3), larger(x, 3)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("pair", [(1, 2), (2, 1), (2, 2), (0, 7)])
def test_as_min_and_max(kind, pair):
    assert both(*map(kind, pair)) == (min(pair), max(pair))


def test_signs_count_for_signed_numbers_only():
    assert both(np.int64(-1), np.int64(1)) == (-1, 1)
    assert both(np.uint64(2**64 - 1), np.uint64(1)) == (1, 2**64 - 1)


@pytest.mark.parametrize("x", [-5, 3, 8])
def test_kinds_that_differ_become_one(x):
    assert beside_a_constant(x) == (min(x, 3), max(x, 3))
    assert both(np.float32(x), 0.5) == (min(x, 0.5), max(x, 0.5))


def test_the_first_above_is_numpys_place_to_the_right_or_the_last():
    rng = np.random.default_rng(0)
    for _ in range(300):
        upto = np.cumsum(rng.integers(0, 3, rng.integers(1, 9)).astype(float))  # with ties
        for goal in (*upto, upto[-1] * rng.random(), -1.0, upto[-1] + 1):
            assert first_above(upto, goal) == min(np.searchsorted(upto, goal, "right"), len(upto) - 1)


def test_cells_are_copied():
    source, target = np.arange(5, dtype=np.float32), np.empty(5, dtype=np.float32)
    copy_cells(source, target)
    np.testing.assert_array_equal(source, target)
