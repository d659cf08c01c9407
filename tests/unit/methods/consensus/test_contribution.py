"""Alpha from summed histograms is alpha from the pooled documents, to the bit."""

import numpy as np
import pytest

from tertulia.kernels.lda import priors
from tertulia.methods.consensus.contribution import histograms

K = 5


def party(seed: int, documents: int, silent: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Token offsets of documents, some of them empty or long, and the tokens' topics; -1: its report says nothing."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 400, documents)
    theta = rng.dirichlet(np.linspace(0.05, 0.8, K), documents)
    z = np.concatenate([rng.choice(K, n, p=share) for n, share in zip(lengths, theta, strict=True)]).astype(np.int32)
    z[rng.random(len(z)) < silent] = -1
    return np.concatenate([[0], np.cumsum(lengths)]), z


def pool(parties: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """All documents in one place."""
    lengths = np.concatenate([np.diff(documents) for documents, _ in parties])
    return np.concatenate([[0], np.cumsum(lengths)]), np.concatenate([z for _, z in parties])


def added(parties: list[tuple[np.ndarray, np.ndarray]]) -> priors.Histograms:
    """What the server sees: the sum, of numbers as narrow as they travel."""
    seen = [histograms(documents, z, K) for documents, z in parties]
    return priors.Histograms(*(sum(x.astype(np.int32).astype(np.int64) for x in xs) for xs in zip(*seen, strict=True)))


@pytest.mark.parametrize("silent", [0.0, 0.3])
def test_alpha_of_the_parties_is_alpha_of_the_pooled_documents(silent):
    parties = [party(seed, 40 * (seed + 1), silent) for seed in range(3)]
    total, pooled = added(parties), histograms(*pool(parties), K)
    assert np.array_equal(total.topics, pooled.topics)
    assert np.array_equal(total.lengths, pooled.lengths)
    first = np.full(K, 1.0)
    documents, z = pool(parties)
    known = z >= 0
    left = np.concatenate([[0], np.cumsum(known)])[documents]  # the pooled documents without tokens that have no topic
    learned = priors.fit_alpha(total, first)
    assert np.array_equal(learned, priors.learn_alpha(left, z[known], first))
    assert np.all(np.diff(learned) > 0)  # as they were planted


def test_a_party_without_tokens_adds_nothing():
    nothing = (np.zeros(4, dtype=np.int64), np.zeros(0, dtype=np.int32))
    some = party(1, 30)
    alone, with_silent = added([some]), added([some, nothing])
    assert np.array_equal(alone.topics, with_silent.topics)
    assert np.array_equal(alone.lengths, with_silent.lengths)
    assert not histograms(*nothing, K).topics.any()
