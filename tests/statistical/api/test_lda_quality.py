"""The trainer against long collapsed Gibbs: three kinds of corpora, held-out perplexity and coherence.

Like with like: both begin with the same topics, have as many sweeps, and end with the mean of counts over the last
quarter of them. Bars: perplexity on average at most 0.5 % higher than collapsed Gibbs', coherence at most 0.01 lower.

The models have fewer or more topics than were planted. With as many, and on small real corpora, a chain may end in one
of several modes, collapsed Gibbs too: the ratio then has a standard deviation of 2.5 %, too much for five to say.
Seen over five seeds: 0.998, 1.002 and 0.993, with standard errors of 0.002, 0.001 and 0.007.
"""

import numpy as np
import pytest

from helpers.marks import seeds, slow
from helpers.planted import completion_perplexity, planted
from tertulia.kernels import lda
from tertulia.kernels.core.rng import derive

BETA, HELDOUT, SWEEPS = 0.05, 500, 160
# documents, length, words, planted topics, alpha, topics of the model: fewer than planted, more, far fewer
CORPORA = [(1_000, 50, 800, 40, 0.1, 25), (800, 60, 600, 20, 0.1, 30), (1_000, 50, 800, 80, 0.05, 30)]


def coherence(topic_word, words, length):
    """Mean NPMI of the ten top words of topics, by documents of the training corpus."""
    documents = words.reshape(-1, length)
    present = np.zeros((len(documents), topic_word.shape[1]), dtype=np.float32)
    present[np.arange(len(documents))[:, None], documents] = 1.0
    together = present.T @ present / len(documents)  # [V, V]
    scores = []
    for top in np.argsort(-topic_word, axis=1)[:, :10]:
        joint = together[np.ix_(top, top)] + 1e-12
        alone = np.diag(joint)
        npmi = np.log(joint / np.outer(alone, alone)) / -np.log(joint)
        scores.append(npmi[np.triu_indices(10, 1)].mean())
    return float(np.mean(scores))


def long_gibbs(corpus, state, sweeps, key):
    """The mean of counts over the last quarter of the sweeps."""
    state, _ = lda.run(*corpus, state, sweeps - sweeps // 4, key, "gibbs")
    mean = np.zeros(state.cwk.shape)
    for s in range(sweeps // 4):
        state, _ = lda.run(*corpus, state, 1, int(derive(key, s)), "gibbs")
        mean += state.cwk / (sweeps // 4)
    return state._replace(mean=mean)


@pytest.mark.parametrize(("shape", "n"), [(CORPORA[0], 6), *(slow(shape, 10) for shape in CORPORA[1:])])
def test_as_good_as_long_collapsed_gibbs(shape, n):
    D, length, V, planted_topics, alpha, K = shape
    ratios, gains = [], []
    for seed in range(n):
        train, heldout = planted(seed, D + HELDOUT, length, V, planted_topics, alpha).split(D)
        begun = lda.train(*train, V, K, alpha, BETA, 0, seed)
        trained = lda.train(*train, V, K, alpha, BETA, SWEEPS, seed, sampler="blocked", threads=2)
        ours, theirs = lda.topic_word(trained), lda.topic_word(long_gibbs(train, begun, SWEEPS, seed))
        ratios.append(completion_perplexity(*heldout, ours, alpha) / completion_perplexity(*heldout, theirs, alpha))
        gains.append(coherence(ours, train[0], length) - coherence(theirs, train[0], length))
    assert np.mean(ratios) < 1.005
    assert np.mean(gains) > -0.01


@pytest.mark.parametrize("seed", seeds(3, quick=1))
def test_clusters_are_ahead_of_random_topics(seed):
    """It is worth more than five sweeps from random topics, at once and five sweeps later."""
    train, heldout = planted(seed, D=2_000, length=60, V=2_000, K=50, alpha=0.1).split(1_800)

    def score(start, sweeps):
        state = lda.train(*train, 2_000, 50, 0.1, BETA, sweeps, seed, start=start, threads=2)
        return completion_perplexity(*heldout, lda.topic_word(state), 0.1)

    assert score("clusters", 0) < score("random", 5)
    assert score("clusters", 5) < score("random", 10)
