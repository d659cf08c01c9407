import numpy as np
import pytest

from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.scalars import larger, smaller


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
