"""The trainer against long collapsed Gibbs: three kinds of corpora, five of each, held-out perplexity and coherence.

A chain may end in one of several modes, collapsed Gibbs too: two chains on one corpus may differ by 5 % in perplexity
for that reason alone. So of three chains the best by log joint is kept, as in `test_kernels_recovery`, and what is
compared is the mean over five corpora.
"""

import numpy as np
import pytest
from test_kernels_recovery import completion, planted

from tertulia.kernels import lda

BETA = 0.05
# documents, length, words, planted topics, alpha, topics of the model: as many, fewer, and more than were planted
CORPORA = [(1_000, 60, 600, 12, 0.1, 12), (1_000, 60, 800, 20, 0.1, 12), (800, 80, 600, 10, 0.2, 20)]


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


def best(corpus, states):
    """The state of the highest log joint."""
    return max(states, key=lambda state: lda.log_joint(*corpus, state))


@pytest.mark.parametrize("shape", CORPORA)
def test_as_good_as_long_collapsed_gibbs(shape):
    D, length, V, planted_topics, alpha, K = shape
    scores = {"trainer": [], "gibbs": []}
    for seed in range(5):
        words, documents, _ = planted(seed, D, length, V, planted_topics, alpha)
        cut = D * 9 // 10
        train = words[: cut * length], documents[: cut + 1]
        heldout = words[cut * length :], documents[: D - cut + 1]
        keys = [seed, seed + 10, seed + 20]
        random = [lda.init(*train, V, K, alpha, BETA, key) for key in keys]
        chains = {
            "trainer": [lda.train(*train, V, K, alpha, BETA, 100, key, threads=2) for key in keys],
            "gibbs": [lda.run(*train, start, 200, key, "gibbs")[0] for start, key in zip(random, keys, strict=True)],
        }
        for name, states in chains.items():
            topics = lda.topic_word(best(train, states))
            scores[name].append((completion(*heldout, topics, alpha), coherence(topics, train[0], length)))
    trainer, gibbs = (np.mean(scores[name], axis=0) for name in ("trainer", "gibbs"))
    assert trainer[0] < 1.01 * gibbs[0]
    assert trainer[1] > gibbs[1] - 0.01


def test_the_warm_start_is_ahead_of_random_topics():
    """It is worth more than five sweeps from random topics, at once and five sweeps later."""
    for seed in range(3):
        words, documents, _ = planted(seed, D=2_000, length=60, V=2_000, K=50, alpha=0.1)
        train, heldout = (words[: 1_800 * 60], documents[:1_801]), (words[1_800 * 60 :], documents[:201])

        def score(start, sweeps, seed=seed, train=train, heldout=heldout):
            state = lda.train(*train, 2_000, 50, 0.1, BETA, sweeps, seed, start=start, threads=2)
            return completion(*heldout, lda.topic_word(state), 0.1)

        assert score("warm", 0) < score("random", 5)
        assert score("warm", 5) < score("random", 10)
