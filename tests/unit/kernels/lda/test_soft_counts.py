"""Expected counts: a step of EM, summed over parties equal to that of the pooled documents."""

import numpy as np
import pytest

from helpers.planted import planted
from tertulia.kernels.lda.fold_in import settle
from tertulia.kernels.lda.soft_counts import soft_counts

K = 4
TRUTH = planted(seed=3, D=60, length=40, V=50, K=K, alpha=0.1)
ALPHA = np.full(K, 0.2)


def by_hand(words, documents, topics):
    """The same in plain NumPy, from the definition."""
    shares = settle(words, documents, topics, ALPHA)
    found = np.zeros((topics.shape[1], K))
    for d, share in enumerate(shares):
        for w in words[documents[d] : documents[d + 1]]:
            p = share * topics[:, w]
            found[w] += p / p.sum()
    return found


def test_expected_counts_are_those_of_the_definition():
    found = soft_counts(TRUTH.words, TRUTH.documents, TRUTH.topics, ALPHA)
    assert found == pytest.approx(by_hand(TRUTH.words, TRUTH.documents, TRUTH.topics), abs=1e-3)
    assert found.sum() == pytest.approx(len(TRUTH.words), rel=1e-5)


def test_parties_add_up_to_the_pooled_documents():
    cut = TRUTH.documents[25]
    parts = [
        (TRUTH.words[:cut], TRUTH.documents[:26]),
        (TRUTH.words[cut:], TRUTH.documents[25:] - cut),
    ]
    together = sum(soft_counts(words, documents, TRUTH.topics, ALPHA) for words, documents in parts)
    assert together == pytest.approx(soft_counts(TRUTH.words, TRUTH.documents, TRUTH.topics, ALPHA), abs=1e-6)


def test_steps_of_em_raise_the_likelihood():
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.ones(50), size=K)

    def likelihood(topics):
        shares = settle(TRUTH.words, TRUTH.documents, topics, ALPHA)
        documents = np.repeat(np.arange(60), np.diff(TRUTH.documents))
        return np.log((shares[documents] * topics[:, TRUTH.words].T).sum(axis=1)).mean()

    scores = [likelihood(topics)]
    for _ in range(15):
        counts = soft_counts(TRUTH.words, TRUTH.documents, topics, ALPHA).T + 0.01
        topics = counts / counts.sum(axis=1, keepdims=True)
        scores.append(likelihood(topics))
    assert np.all(np.diff(scores[:8]) > 0)
    assert scores[-1] > likelihood(TRUTH.topics) - 0.05


def test_a_topic_of_few_documents_counts_nothing():
    """Word 2 is in one document, and topic 1 is its only home; alpha cannot pretend that others have it."""
    words = np.array([0, 1] * 10 + [2, 2, 2, 0, 1], np.int32)
    documents = np.array([0, *range(2, 21, 2), 25], np.int64)
    topics = np.array([[0.5, 0.5, 1e-9], [1e-9, 1e-9, 1.0]])
    seen = soft_counts(words, documents, topics, np.array([0.1, 0.1]))
    assert seen[2, 1] == pytest.approx(3, abs=0.01)
    for alpha in ([0.1, 0.1], [1e-3, 10.0]):
        hidden = soft_counts(words, documents, topics, np.array(alpha), least=5)
        assert not hidden[:, 1].any()
        assert hidden[:2, 0].sum() > 20
