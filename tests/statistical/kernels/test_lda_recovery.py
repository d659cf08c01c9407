"""Planted topics are found again, for each of five seeds.

Bar, fixed before the first run: matched topics overlap (1 - total variation) by at least 0.85 on average, for every
seed.

One chain from a random start was not enough: of ten, four stayed in a mode that merges two topics and splits a third
(overlap 0.79 to 0.81; two of the four were collapsed Gibbs). Those modes give themselves away by a log joint that is
thousands lower, so recovery keeps the best of four chains by log joint.
"""

import pytest

from helpers.marks import seeds
from helpers.planted import overlap, planted
from tertulia.kernels import lda


@pytest.mark.parametrize("sampler", ["gibbs", "sparse"])
@pytest.mark.parametrize("seed", seeds(5, quick=1))
def test_planted_topics_are_recovered(seed, sampler):
    words, documents, truth = planted(seed, D=600, length=60, V=200, K=8, alpha=0.2)
    chains = []
    for chain in range(4):
        state = lda.init(words, documents, 200, 8, alpha=0.2, beta=0.05, key=seed + 10 * chain)
        assert overlap(lda.topic_word(state), truth) < 0.5
        key = seed + 10 * chain + 100
        chains.append(lda.run(words, documents, state, 200, key, sampler, threads=2, monitor=True))
    best, _ = max(chains, key=lambda chain: chain[1].log_joint)
    assert overlap(lda.topic_word(best), truth) > 0.85
