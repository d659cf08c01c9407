"""Which cases are quick, and which wait for `make test-all`."""

import pytest


def seeds(n, quick):
    """The seeds 0 .. n - 1, of which the first few are quick."""
    return [seed if seed < quick else pytest.param(seed, marks=pytest.mark.slow) for seed in range(n)]


def slow(*case):
    """A case that is slow."""
    return pytest.param(*case, marks=pytest.mark.slow)
