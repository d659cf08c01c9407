"""What stands in for numpy in kernels does what numpy does."""

import numpy as np

from tertulia.kernels.core.cells import copy_cells, first_above


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
