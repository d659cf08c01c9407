"""PC-TD's E-step and statistic over semantic units, against their definitions."""

import numpy as np
import pytest

from tertulia.corpus import Corpus
from tertulia.errors import InputError
from tertulia.kernels.pctd import em
from tertulia.methods.pctd.method import maximise

TEXTS = ["Sun rain sun wind. Storm hail.", "", "Rain rain. Wind wind wind wind wind", "storm"]
CORPUS = Corpus.from_texts(TEXTS)
V = len(CORPUS.vocabulary)


def unit_table(kind: str = "ngram", n: int = 3) -> em.SemanticUnits:
    return em.semantic_units(CORPUS.words, CORPUS.documents, CORPUS.units(kind, n), V)


def model(K: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return np.log(rng.dirichlet(np.ones(V), K).T), rng.dirichlet(np.ones(K), CORPUS.n_documents)


def by_definition(found: em.SemanticUnits, log_phi, theta):
    """(3) in plain probabilities, and (10) without noise."""
    r, M = [], np.zeros_like(log_phi)
    for d in range(len(theta)):
        for u in range(found.documents[d], found.documents[d + 1]):
            words = found.words[slice(*found.bounds[u])]
            p = theta[d] * np.exp(log_phi[words]).prod(axis=0)
            r.append(p / p.sum())
            for w in words:
                M[w] += r[-1]
    return np.array(r), M


@pytest.mark.parametrize("kind", ["ngram", "sentence", "paragraph"])
@pytest.mark.parametrize("K", [1, 4])
def test_responsibilities_and_statistic_are_the_papers(kind, K):
    found, (log_phi, theta) = unit_table(kind), model(K)
    r, _ = em.responsibilities(found, log_phi, theta)
    expected_r, expected_M = by_definition(found, log_phi, theta)
    assert np.allclose(r, expected_r)
    assert np.allclose(em.statistics(found, r, V), expected_M)
    assert em.statistics(found, r, V).sum() == pytest.approx(CORPUS.n_tokens)


def test_a_documents_shares_are_the_mean_of_its_units_and_equal_without_any():
    found, (log_phi, theta) = unit_table(), model(3)
    r, _ = em.responsibilities(found, log_phi, theta)
    shares = em.shares(found, r)
    assert np.allclose(shares[0], r[:3].mean(axis=0))
    assert np.array_equal(shares[1], np.full(3, 1 / 3))
    assert np.allclose(shares.sum(axis=1), 1)


def test_what_a_document_adds_is_found_for_itself():
    found, (log_phi, theta) = unit_table(), model(2)
    r, _ = em.responsibilities(found, log_phi, theta)
    place, mine, rows = np.full(V, -1), np.empty(9, np.int64), np.empty((9, 2))
    total = np.zeros((V, 2))
    for d in range(4):
        first, last = found.documents[d], found.documents[d + 1]
        n = em.document_statistic(found.words, found.bounds, first, last, r, place, mine, rows)
        assert len(set(mine[:n])) == n
        total[mine[:n]] += rows[:n]
    assert np.all(place == -1)
    assert np.allclose(total, em.statistics(found, r, V))


def test_an_empty_unit_has_its_documents_shares():
    found = em.semantic_units(np.array([0, 1]), np.array([0, 2]), np.array([[0, 2], [2, 2]]), 2)
    theta = np.array([[0.2, 0.8]])
    r, _ = em.responsibilities(found, np.log([[0.5, 0.1], [0.5, 0.9]]), theta)
    assert np.allclose(r[1], theta[0])


def test_no_documents_at_all():
    found = em.semantic_units(np.zeros(0, np.int32), np.array([0, 0]), np.zeros((0, 2)), V)
    r, _ = em.responsibilities(found, model(3)[0], np.full((1, 3), 1 / 3))
    assert r.shape == (0, 3)
    assert not em.statistics(found, r, V).any()
    assert np.array_equal(em.shares(found, r), np.full((1, 3), 1 / 3))


def test_words_of_next_to_no_probability_leave_finite_shares():
    found = em.semantic_units(np.zeros(400, np.int32), np.array([0, 400]), np.array([[0, 400]]), 2)
    r, likelihood = em.responsibilities(found, np.log([[1e-300, 1e-250], [1.0, 1.0]]), np.array([[1.0, 0.0]]))
    assert np.array_equal(r, [[0.0, 1.0]])
    assert np.isfinite(likelihood).all()


def test_threads_change_no_bit():
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(["sun", "rain", "wind", "hail", "snow"], 30)) for _ in range(40)]
    corpus = Corpus.from_texts(texts)
    found = em.semantic_units(corpus.words, corpus.documents, corpus.units("ngram"), 5)
    log_phi, theta = np.log(rng.dirichlet(np.ones(5), 3).T), rng.dirichlet(np.ones(3), 40)
    one, three = (em.responsibilities(found, log_phi, theta, threads)[0] for threads in (1, 3))
    assert one.tobytes() == three.tobytes()


@pytest.mark.parametrize(
    "bounds",
    [
        [[0, 3], [2, 4]],  # they overlap
        [[0, 5], [5, 13]],  # the second crosses the end of the first document
        [[3, 1]],
        [[1, 99]],
    ],
)
def test_units_that_cannot_be(bounds):
    with pytest.raises(InputError, match="units must follow one another"):
        em.semantic_units(CORPUS.words, CORPUS.documents, np.array(bounds), V)


@pytest.mark.parametrize("beta", [1e-9, 0.05])
@pytest.mark.parametrize("kind", ["ngram", "sentence"])
def test_em_never_lowers_the_likelihood(beta, kind):
    """Of the documents; with beta, of documents and a Dirichlet(1 + beta) prior of the words of topics."""
    rng = np.random.default_rng(3)
    words = [f"w{i}" for i in range(30)]
    texts = [". ".join(" ".join(rng.choice(words[d % 3 * 8 : d % 3 * 8 + 14], 7)) for _ in range(4)) for d in range(30)]
    corpus = Corpus.from_texts(texts)
    V, K = len(corpus.vocabulary), 4
    found = em.semantic_units(corpus.words, corpus.documents, corpus.units(kind), V)
    phi, theta = rng.dirichlet(np.ones(V), K), np.full((30, K), 1 / K)
    path = []
    for _ in range(40):
        r, likelihood = em.responsibilities(found, np.log(phi.T), theta)
        path.append(likelihood.sum() + beta * np.log(phi).sum())
        theta = em.shares(found, r)
        phi, _ = maximise(em.statistics(found, r, V).T, beta)
    assert np.all(np.diff(path) >= -1e-6)
    assert path[-1] > path[0] + 50
