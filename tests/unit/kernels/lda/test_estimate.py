"""A point estimate: the end of training, the averaged sweeps, learned priors, and calls of `progress`."""

import math

import numpy as np
import pytest

from helpers.planted import counts_of, planted
from tertulia.kernels import lda
from tertulia.kernels.lda import blocked
from tertulia.kernels.lda import estimate as fitting
from tertulia.kernels.lda.options import Learning

V, K = 80, 5
CORPUS = planted(2, D=150, length=30, V=V, K=K, alpha=0.2)[:2]


def train(sweeps, corpus=CORPUS, words=V, topics=K, **more):
    return lda.train(*corpus, words, topics, 0.2, 0.05, sweeps, 3, **more)


@pytest.fixture
def sweeps(monkeypatch):
    """Every sweep's alpha and beta, and the topics and counts after it."""
    seen, sweep = [], blocked.sweep

    def spy(words, documents, z, counts, alpha, beta, key, average=blocked.NO_AVERAGE, threads=1):
        found = sweep(words, documents, z, counts, alpha, beta, key, average, threads)
        seen.append((alpha.copy(), beta, z.copy(), found))
        return found

    monkeypatch.setattr(blocked, "sweep", spy)
    return seen


ODD = {
    "one document": (np.arange(60) % V, [0, 60], V),
    "one word": (np.zeros(300, dtype=np.int32), np.arange(0, 301, 10), 1),
    "one token": ([0], [0, 1], 1),
    "equal documents": (np.tile([0, 1, 2], 10_000), np.arange(0, 30_001, 3), 3),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("learning", [Learning(True), Learning("symmetric", True), Learning()], ids=str)
def test_training_ends_by_itself(case, learning, sweeps):
    words, documents, n = ODD[case]
    state = train(None, (np.array(words), documents), n, learning=learning, threads=2)
    assert 0 < len(sweeps) <= 400
    assert state.mean.sum() == pytest.approx(len(words), rel=1e-5)
    assert np.isfinite(state.alpha).all()
    assert (state.alpha > 0).all()
    assert 0 < state.beta < np.inf


@pytest.mark.parametrize("most", [1, 7, 30, 55])
def test_a_bound_on_sweeps_holds(most, sweeps):
    state = train(None, most_sweeps=most)
    assert len(sweeps) == most
    averaged = [counts_of(CORPUS[0], z, V, K) for _, _, z, _ in sweeps[-max(fitting._FEWEST, most // 4) :]]
    assert np.allclose(state.mean, np.mean(averaged, axis=0), rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 41])
def test_the_mean_is_over_the_last_quarter_of_sweeps(n, sweeps):
    state = train(n, threads=2)
    assert len(sweeps) == n
    averaged = [counts_of(CORPUS[0], z, V, K) for _, _, z, _ in sweeps[-max(1, n // 4) :]]
    assert np.allclose(state.mean, np.mean(averaged, axis=0), rtol=1e-6)
    assert np.array_equal(state.z, sweeps[-1][2])
    assert np.array_equal(state.cwk, counts_of(CORPUS[0], state.z, V, K))
    assert np.allclose(lda.topic_sizes(state), state.mean.sum(axis=0))
    assert np.allclose(lda.topic_word(state).T, (state.mean + 0.05) / (state.mean + 0.05).sum(axis=0))


def test_what_settles_by_itself_averages_a_quarter_too(sweeps):
    state = train(None, learning=Learning(True))
    perplexities = [math.exp(-found.log_likelihood / len(CORPUS[0])) for _, _, _, found in sweeps]
    settled = next(s for s in range(1, len(sweeps)) if fitting.settled(perplexities[:s]))
    averaged = max(fitting._FEWEST, settled // 3)
    assert len(sweeps) == settled + averaged
    counts = [counts_of(CORPUS[0], z, V, K) for _, _, z, _ in sweeps[-averaged:]]
    assert np.allclose(state.mean, np.mean(counts, axis=0), rtol=1e-6)


def test_progress_is_called_after_every_sweep_with_the_perplexity(sweeps):
    calls = []
    train(12, progress=lambda *call: calls.append(call))
    perplexities = [math.exp(-found.log_likelihood / len(CORPUS[0])) for _, _, _, found in sweeps]
    assert calls == list(enumerate(perplexities, start=1))
    assert perplexities[-1] < perplexities[0] < V


def test_alpha_is_learned_from_the_first_sweep_on(sweeps):
    train(20)
    assert all(np.array_equal(alpha, np.full(K, 0.2)) for alpha, _, _, _ in sweeps)
    sweeps.clear()
    train(20, learning=Learning(True))
    assert np.array_equal(sweeps[0][0], np.full(K, 0.2))
    assert np.ptp(sweeps[1][0]) > 0


def test_priors_are_learned_if_asked():
    assert np.array_equal(train(30, learning=Learning()).alpha, np.full(K, 0.2))
    assert np.ptp(train(30, learning=Learning(True)).alpha) > 0
    symmetric = train(30, learning=Learning("symmetric")).alpha
    assert np.ptp(symmetric) == 0
    assert symmetric[0] != 0.2
    assert train(30).beta == 0.05
    assert train(30, learning=Learning(beta=True)).beta != 0.05


def test_settled_compares_windows():
    n = fitting.WINDOW
    falling = [100.0 - s for s in range(2 * n)]
    assert not fitting.settled(falling)
    assert not fitting.settled([50.0] * (2 * n - 1))
    assert fitting.settled([*falling, *[40.0] * (2 * n)])
    assert fitting.settled([50.0] * n + [51.0] * n)  # rising is settled, too
