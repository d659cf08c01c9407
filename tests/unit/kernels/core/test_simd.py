"""The vectorised draw: the right topic for a given u, the right frequencies, and none of the padding."""

import numpy as np
import pytest

from tertulia.kernels.core import simd, vectors
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import uniform32


@kernel
def histogram(weight, phi, w, n, key):
    running = np.empty(weight.shape[0], dtype=np.float32)
    counts = np.zeros(weight.shape[0], dtype=np.int64)
    for i in range(n):
        counts[simd.draw(weight, phi, w, running, uniform32(key, np.uint64(i)), -1)] += 1
    return counts


def widen(x):
    wide = np.zeros((*x.shape[:-1], vectors.padded_width(x.shape[-1])), dtype=np.float32)
    wide[..., : x.shape[-1]] = x
    return wide


@pytest.mark.parametrize("K", [1, 2, 15, 16, 17, 100])
def test_frequencies(K):
    generator = np.random.default_rng(K)
    weight, phi = generator.gamma(1.0, size=K), generator.dirichlet(np.ones(K), size=3)
    n = 400_000
    counts = histogram(widen(weight), widen(phi), 1, n, np.uint64(K))
    p = weight * phi[1] / (weight @ phi[1])
    assert counts[K:].sum() == 0
    assert np.all(np.abs(counts[:K] - n * p) <= 4.5 * np.sqrt(n * p * (1 - p)) + 1)


@pytest.mark.parametrize("k", [0, 3, 16, 19])
@pytest.mark.parametrize("u", [0.0, 0.5, 1.0 - 2.0**-24])
def test_the_only_topic_with_mass_is_drawn_at_any_u(k, u):
    weight = np.zeros(20)
    weight[k] = 0.7
    phi = widen(np.full((1, 20), 0.3))
    assert simd.draw(widen(weight), phi, 0, np.empty(32, np.float32), np.float32(u), -1) == k


def test_without_mass_the_fallback_is_returned():
    zeros = np.zeros(16, dtype=np.float32)
    assert simd.draw(zeros, zeros[None], 0, np.empty(16, np.float32), np.float32(0.4), 11) == 11


@kernel
def masses_at_the_seams(K, cases, key):
    """The smallest mass drawn when u lies within two steps of a border between lanes, over random sparse weights."""
    size = (K + simd.LANES - 1) // simd.LANES * simd.LANES
    running = np.empty(size, dtype=np.float32)
    smallest = np.float32(1.0)
    for case in range(cases):
        weight, phi = np.zeros(size, dtype=np.float32), np.zeros((1, size), dtype=np.float32)
        for k in range(K):
            weight[k] = uniform32(key, np.uint64(case * K + k)) + np.float32(0.1)
            phi[0, k] = max(uniform32(key, np.uint64((case + cases) * K + k)) - np.float32(0.5), np.float32(0.0))
        phi[0, case % K] = 0.3
        mass = weight * phi[0]
        border = np.float32(0.0)
        for lane in range(simd.LANES):
            border += mass[lane :: simd.LANES].sum()
            for ulp in range(-2, 3):
                u = border / mass.sum() * np.float32(1.0 + ulp * 2.0**-23)
                if u < np.float32(1.0):
                    k = simd.draw(weight, phi, 0, running, u, case % K)
                    smallest = min(smallest, mass[k])
    return smallest


@pytest.mark.parametrize("K", [1, 5, 20, 40, 100])
def test_rounding_never_draws_a_topic_without_mass(K):
    assert masses_at_the_seams(K, 5_000, np.uint64(K)) > 0.0


@kernel
def sums(x, rows, r, scale):
    y = x.copy()
    simd.add(y, scale, rows, r)
    return simd.dot(x, rows, r), simd.total(x), y


def test_vector_sums():
    for n in (1, 16, 17, 64, 100, 1000):
        generator = np.random.default_rng(n)
        x, rows = simd.pad_with_zeros(generator.random(n)), np.stack([simd.pad_with_zeros(generator.random(n))] * 3)
        rows[1] *= 2
        product, whole, y = sums(x, rows, 1, np.float32(0.5))
        assert product == pytest.approx(x @ rows[1], rel=1e-5)
        assert whole == pytest.approx(x.sum(), rel=1e-5)
        assert np.allclose(y, x + 0.5 * rows[1])
