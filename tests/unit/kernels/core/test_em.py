"""A step of EM against its formula."""

import numpy as np
import pytest

from tertulia.kernels.core import em, vectors
from tertulia.kernels.core.jit import kernel


def widen(x):
    wide = np.zeros((*x.shape[:-1], vectors.padded_width(x.shape[-1])), dtype=np.float32)
    wide[..., : x.shape[-1]] = x
    return wide


@kernel
def pulled(theta, phi, mine, count):
    pull = np.zeros(theta.shape[0], dtype=np.float32)
    for j in range(0, len(mine), em.FOUR):
        em.attract(theta, pull, phi, mine, count, j)
    return pull


@kernel
def advanced(theta, pull, alpha):
    return em.advance(theta, pull, alpha)


@pytest.mark.parametrize("K", [1, 16, 17, 100])
def test_words_attract_and_theta_advances(K):
    generator = np.random.default_rng(K)
    theta, alpha, phi = generator.gamma(1.0, size=K), generator.gamma(1.0, size=K), generator.random((9, K))
    phi[3] = 0.0  # a word without mass
    mine, count = np.array([8, 0, 3, 5, 7, 7, 1, 2]), generator.integers(0, 5, size=8).astype(float)
    mass = phi[mine] @ theta
    expected = np.divide(count, mass, out=np.zeros(8), where=mass > 0) @ phi[mine]
    pull = pulled(widen(theta), widen(phi), mine, count.astype(np.float32))
    assert np.allclose(pull, widen(expected), rtol=1e-5)
    moved = advanced(widen(theta), pull, widen(alpha))
    assert np.allclose(pull, widen(alpha + theta * expected), rtol=1e-5)
    assert moved == pytest.approx(np.abs(alpha + theta * expected - theta).sum(), rel=1e-5)
