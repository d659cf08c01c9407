"""The noise shortcut has the law of the dense draw: moments, random projections and marginals, beside a control.

Every comparison of shortcut and dense stands next to one of dense and dense, of the same size: this is what equal laws
look like.
"""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from helpers.marks import slow
from tertulia.kernels.pctd import em, unit_noise
from tertulia.kernels.pctd.normals import normals
from tertulia.privacy.noise import NoiseStream

D, S, W, K, SIGMA, N = 3, 7, 12, 3, 0.35, 4_000


def problem(W: int = W, K: int = K, seed: int = 5):
    rng = np.random.default_rng(seed)
    bounds = np.arange(S)[:, None] * 3 + np.array([0, 3])
    found = em.semantic_units(rng.integers(0, W, 3 * S).astype(np.int32), np.array([0, 6, 12, 21]), bounds, W)
    return found, np.log(rng.dirichlet(np.ones(W), K).T), rng.dirichlet(np.ones(K), D)


def replicates(draw, source, parts) -> np.ndarray:
    """Joint draws of responsibilities and statistic, [N, S K + W K]."""
    rows = [draw(*parts, SIGMA, source) for _ in range(N)]
    return np.stack([np.concatenate((row.r.ravel(), row.statistic.ravel())) for row in rows])


@pytest.fixture(scope="module")
def samples():
    parts = problem()
    secret = partial(normals, NoiseStream(bytes(range(32))).words)
    return {
        "short": replicates(unit_noise.on_all_words, secret, parts),
        "dense": replicates(unit_noise.dense, np.random.default_rng(1).standard_normal, parts),
        "control": replicates(unit_noise.dense, np.random.default_rng(2).standard_normal, parts),
    }


def z_of_means(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt((a.var(axis=0) + b.var(axis=0)) / N)


@pytest.mark.parametrize("name", ["short", "control"])
def test_means_agree(samples, name):
    z = z_of_means(samples[name], samples["dense"])
    assert np.sqrt(np.mean(z**2)) < 1.4
    assert np.abs(z).max() < 4.5


@pytest.mark.parametrize("name", ["short", "control"])
def test_all_second_moments_agree(samples, name):
    """Of responsibilities with each other, with the statistic, and of the statistic."""

    def centred(x: np.ndarray) -> np.ndarray:
        scaled = (x - samples["dense"].mean(axis=0)) / samples["dense"].std(axis=0)
        i, j = np.triu_indices(scaled.shape[1])
        return scaled[:, i] * scaled[:, j]

    z = z_of_means(centred(samples[name]), centred(samples["dense"]))
    assert np.sqrt(np.mean(z**2)) < 1.3
    assert np.abs(z).max() < 5.5


@pytest.mark.parametrize("name", ["short", "control"])
def test_marginals_and_random_projections_agree(samples, name):
    rng = np.random.default_rng(9)
    scale = samples["dense"].std(axis=0)
    directions = np.concatenate((np.eye(len(scale)), rng.standard_normal((60, len(scale))))) / scale
    a, b = (samples[key] @ directions.T for key in (name, "dense"))
    p = np.array([stats.ks_2samp(a[:, i], b[:, i]).pvalue for i in range(len(directions))])
    assert p.min() > 0.01 / len(p)
    assert stats.kstest(p[-60:], "uniform").pvalue > 1e-4


def test_noise_without_the_part_outside_of_the_topics_would_be_caught(samples):
    """The test's own control: had the outer part been left out, marginals would tell."""
    Q, _ = unit_noise.orthonormal(problem()[1])
    short, dense = (samples[key][:, S * K :] for key in ("short", "dense"))
    noise = (short - short.mean(axis=0)).reshape(N, W, K)
    inner = short.mean(axis=0) + (Q @ (Q.T @ noise)).reshape(N, -1)
    p = [stats.ks_2samp(inner[:, i], dense[:, i]).pvalue for i in range(W * K)]
    assert np.median(p) < 1e-9


@pytest.mark.parametrize(("W", "K"), [slow(12, 1), (2, 5)])
def test_one_topic_and_more_topics_than_words(W, K):
    parts = problem(W, K, seed=8)
    rng = np.random.default_rng(4)
    draws = (unit_noise.on_all_words, unit_noise.dense)
    short, dense = (replicates(draw, rng.standard_normal, parts) for draw in draws)
    some = dense.std(axis=0) > 1e-12  # one topic has responsibility 1 under any noise
    assert np.abs(z_of_means(short[:, some], dense[:, some])).max() < 4.5
    ratio = short[:, some].var(axis=0) / dense[:, some].var(axis=0)
    assert np.all(np.abs(ratio - 1) < 0.2)


def test_noise_on_held_words_is_that_of_its_definition():
    """Given the numbers drawn: each distinct word of each unit has its own, no other word has any."""
    (found, log_phi, theta), drawn = problem(W=6), []

    def recorded(n: int) -> np.ndarray:
        drawn.append(np.random.default_rng(3).standard_normal(n))
        return drawn[-1]

    r, M = unit_noise.on_held_words(found, log_phi, theta, SIGMA, recorded)
    counts = np.zeros((S, 6))
    for u, (first, last) in enumerate(found.bounds):
        np.add.at(counts[u], found.words[first:last], 1)
    assert counts.max() > 1  # a word comes twice in a unit, and still has one number
    (numbers,) = drawn
    assert len(numbers) == (counts > 0).sum()
    noisy = counts.copy()
    noisy[counts > 0] += SIGMA * numbers
    p = np.repeat(theta, np.diff(found.documents), axis=0) * np.exp(noisy @ log_phi)
    assert np.allclose(r, p / p.sum(axis=1, keepdims=True))
    assert np.allclose(M, noisy.T @ r)


def test_noise_on_held_words_has_the_law_of_masked_dense_noise():
    found, log_phi, theta = problem()
    holds = np.zeros((S, W))
    for u, (first, last) in enumerate(found.bounds):
        holds[u, found.words[first:last]] = 1.0

    def masked(*parts) -> unit_noise.NoisyStep:
        rng = parts[-1].__self__
        return unit_noise.dense(*parts[:-1], lambda n: (rng.standard_normal((S, W)) * holds).ravel())

    parts = (found, log_phi, theta)
    secret = partial(normals, NoiseStream(bytes(range(32))).words)
    one = replicates(unit_noise.on_held_words, secret, parts)
    two = replicates(masked, np.random.default_rng(1).standard_normal, parts)
    some = two.std(axis=0) > 1e-12  # nobody holds some of the words
    assert np.array_equal(some, one.std(axis=0) > 1e-12)
    assert np.abs(z_of_means(one[:, some], two[:, some])).max() < 4.5
    p = [stats.ks_2samp(one[:, i], two[:, i]).pvalue for i in np.flatnonzero(some)]
    assert min(p) > 0.01 / len(p)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_basis_is_orthonormal_even_where_topics_are_equal(copies):
    log_phi = np.log(np.random.default_rng(0).dirichlet(np.ones(300), 4).T)
    L = np.concatenate([log_phi] * copies, axis=1)
    Q, R = unit_noise.orthonormal(L)
    assert np.allclose(Q @ R, L)
    assert np.allclose(Q.T @ Q, np.eye(L.shape[1]), atol=1e-10)


def test_the_same_secret_gives_the_same_bits():
    parts = problem()
    sources = [partial(normals, NoiseStream(bytes(32)).words) for _ in range(2)]
    one, two = (unit_noise.on_all_words(*parts, SIGMA, source).statistic for source in sources)
    assert one.tobytes() == two.tobytes()


def test_normal_numbers_are_normal_far_into_the_tail():
    x = normals(NoiseStream(bytes([7]) * 32).words, 3_000_000)
    assert abs(x.mean()) < 4.5 / np.sqrt(len(x))
    assert abs(x.var() - 1) < 4.5 * np.sqrt(2 / len(x))
    counts, _ = np.histogram(x, bins=stats.norm.ppf(np.linspace(0, 1, 1001)))
    assert stats.chisquare(counts).pvalue > 1e-4
    for edge in (3.0, 3.6541528853610088, 4.0):
        expected = 2 * stats.norm.sf(edge) * len(x)
        assert abs((np.abs(x) > edge).sum() - expected) < 4.5 * np.sqrt(expected)
    assert np.corrcoef(x[:-1], x[1:])[0, 1] == pytest.approx(0, abs=4.5 / np.sqrt(len(x)))
