"""Approximations find good topics: those of every sampler predict as well as the topics of collapsed Gibbs.

Bar, fixed before the first run: from the true topics on, held-out perplexities stay within 2 % of collapsed Gibbs'.
That Gibbs' own topics come within 5 % of the true ones shows that there was something to find.
"""

import pytest

from helpers.marks import seeds
from helpers.planted import completion_perplexity, planted
from tertulia.kernels import lda

D, HELDOUT, LENGTH, V, K, ALPHA, BETA, SWEEPS = 2_000, 300, 80, 1_000, 20, 0.1, 0.05, 120
SAMPLERS = [("sparse", "draw"), ("sparse", "mean"), ("blocked", "mean"), ("warp", "mean")]


@pytest.mark.parametrize("seed", seeds(3, quick=1))
def test_heldout_perplexity_is_that_of_gibbs(seed):
    corpus = planted(seed, D + HELDOUT, LENGTH, V, K, ALPHA)
    train, heldout = corpus.split(D)
    start = lda.init_from_topics(*train, corpus.topics, ALPHA, BETA, key=1)

    def perplexity(sampler, phi):
        state, _ = lda.run(*train, start, SWEEPS, 2, sampler, phi=phi, threads=2)
        return completion_perplexity(*heldout, lda.topic_word(state), ALPHA)

    gibbs = perplexity("gibbs", "draw")
    assert gibbs < 1.05 * completion_perplexity(*heldout, corpus.topics, ALPHA)
    for sampler, phi in SAMPLERS:
        assert perplexity(sampler, phi) == pytest.approx(gibbs, rel=0.02), (sampler, phi)
