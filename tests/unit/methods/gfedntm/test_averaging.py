import math

import numpy as np
import pytest

from tertulia.methods.gfedntm.averaging import fedadam


def by_hand(changes, rate, tau, momentum):
    """Algorithm 2 of Reddi et al. (2021), one weight, letter by letter."""
    x, m, v = 0.5, 0.0, tau**2
    for delta in changes:
        m = momentum * m + (1 - momentum) * delta
        v = 0.99 * v + 0.01 * delta**2
        x = x + rate * m / (math.sqrt(v) + tau)
    return x


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("tau", [1e-3, 0.1])
def test_fedadam_is_the_published_rule(tau, momentum):
    changes = np.random.default_rng(0).normal(scale=0.02, size=(5, 3))
    weights, moments = np.full(3, 0.5), None
    for change in changes:
        weights, moments = fedadam(weights, change, moments, 0.03, tau, momentum)
    assert np.allclose(weights, [by_hand(column, 0.03, tau, momentum) for column in changes.T], rtol=1e-12)
    assert moments.shape == (2, 3)


def test_fedadam_does_not_correct_for_the_start():
    """With bias correction the first step would be the rate, for any change and tau."""
    weights, _ = fedadam(np.zeros(1), np.array([0.002]), None, 1.0, 0.01, 0.9)
    assert weights[0] == pytest.approx(0.0002 / (math.sqrt(0.99e-4 + 0.01 * 0.002**2) + 0.01))
    assert weights[0] < 0.02
