"""How far collapsed Gibbs in blocks is from the exact posterior, on the toy of test_lda_exact.

A sweep's law is known in closed form (`helpers.blocked_law`), one document to a block, and so is its limit. Draws show
that the sweep has this law. Seen in total variation: 0.106 from the posterior for collapsed Gibbs whose C_wk and
C_k wait for the end of a document, which is half of this corpus; 0.124 for `blocked`, whose sums per word wait for the
end of the sweep, and whose parts with alpha leave the token in C_k. The two are 0.043 apart.
"""

import numpy as np
import pytest
from scipy.stats import chisquare

from helpers.blocked_law import outcomes
from helpers.exact import topics_posterior
from tertulia.kernels import lda
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import blocked

WORDS, DOCUMENTS = freeze([0, 1, 1, 2, 0, 2, 2], np.int32), freeze([0, 3, 7], np.int64)
V, K, ALPHA, BETA = 3, 2, np.array([0.3, 0.7]), 0.4
DRAWS = 8_000


def digits(code):
    return np.array([code // K**i % K for i in range(len(WORDS))], dtype=np.int32)


def stationary(law):
    values, vectors = np.linalg.eig(law.T)
    found = np.abs(vectors[:, np.argmax(values.real)].real)
    return found / found.sum()


def limit(collapsed):
    law = [outcomes(WORDS, DOCUMENTS, digits(code), V, ALPHA, BETA, collapsed) for code in range(K ** len(WORDS))]
    assert np.allclose(np.sum(law, axis=1), 1.0)
    return stationary(np.array(law))


def far(p, q):
    return 0.5 * np.abs(p - q).sum()


def test_it_is_about_as_near_to_the_posterior_as_waiting_counts_allow():
    start = lda.init(WORDS, DOCUMENTS, V, K, ALPHA, BETA, key=1)
    posterior = topics_posterior(WORDS, DOCUMENTS, start)
    blocked, waiting = limit(collapsed=False), limit(collapsed=True)
    assert far(waiting, posterior) == pytest.approx(0.106, abs=0.002)
    assert far(blocked, posterior) == pytest.approx(0.124, abs=0.002)
    assert far(blocked, waiting) == pytest.approx(0.043, abs=0.002)


@pytest.mark.parametrize("code", [0, 37, 100])
def test_a_sweep_has_this_law(code):
    before, seen = digits(code), np.zeros(K ** len(WORDS))
    for draw in range(DRAWS):
        z = before.copy()
        counts = blocked.count(WORDS, z, V, K)
        blocked.sweep(WORDS, DOCUMENTS, z, counts, ALPHA, BETA, derive(code, draw))
        seen[z @ K ** np.arange(len(WORDS))] += 1
    p = outcomes(WORDS, DOCUMENTS, before, V, ALPHA, BETA) * DRAWS
    rare = p < 5
    seen, p = np.append(seen[~rare], seen[rare].sum()), np.append(p[~rare], p[rare].sum())
    assert chisquare(seen, p).pvalue > 1e-3
