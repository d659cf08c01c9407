"""Words that reports name, and expected counts of reported words, against the formulas."""

from itertools import pairwise

import numpy as np
import pytest

from tertulia.kernels.noise_aware.reported import expected_counts, named_words
from tertulia.kernels.reports import Reports, reports
from tertulia.kernels.reports.channel import Channel

WORDS = np.random.default_rng(1).integers(0, 30, 600).astype(np.int32)
DOCUMENTS = np.array([0, 0, 7, 300, 300, 600])
KEY = bytes(range(32))


def channel(kind, epsilon=3.0):
    return Channel(kind, epsilon, V=30)


@pytest.mark.parametrize("kind", ["krr", "subset", "laplace"])
def test_expected_counts_are_those_of_the_formula(kind):
    source = reports(WORDS, channel(kind), KEY, "corpus")
    phi, alpha = np.random.default_rng(2).dirichlet(np.ones(30), 3), np.array([0.5, 0.2, 0.1])
    expected = np.zeros((30, 3))
    for first, last in pairwise(DOCUMENTS):
        tokens = [slice(source.indptr[i], source.indptr[i + 1]) for i in range(first, last)]
        evidence = [source.a[t][:, None] * phi.T[source.idx[t]] for t in tokens]  # [entries, K] of each token
        theta = np.full(3, 1 / 3)
        for _ in range(15):
            pull = alpha + sum((theta * e.sum(axis=0) / (source.r0 + theta @ e.sum(axis=0)) for e in evidence), 0)
            theta = pull / pull.sum()
        for t, e in zip(tokens, evidence, strict=True):
            np.add.at(expected, source.idx[t], theta * e / (source.r0 + theta @ e.sum(axis=0)))
    found = expected_counts(source, DOCUMENTS, phi, alpha)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert 0 < found.sum() < len(WORDS)  # the others are background
    on_demand = lambda first, last: reports(WORDS, channel(kind), KEY, "corpus", first, last)  # noqa: E731
    assert expected_counts(on_demand, DOCUMENTS, phi, alpha) == pytest.approx(found)


def test_topics_of_few_documents_are_left_out():
    """The third topic has only word 9, which only the first document holds."""
    words = np.array([9, 9, 9, *[0, 1] * 20], np.int32)
    phi = np.eye(3, 10)
    phi[2] = np.eye(10)[9]
    source = Reports(np.arange(44), words, np.full(43, 50.0, np.float32), np.ones(43, np.float32), 1.0)
    documents = np.array([0, *range(3, 44, 4)])
    assert expected_counts(source, documents, phi, np.full(3, 0.1), 1)[9, 2] > 2
    found = expected_counts(source, documents, phi, np.full(3, 0.1), 2)
    assert (found[:, 2] == 0).all()
    assert (found[:2].sum(axis=0)[:2] > 5).all()


@pytest.mark.parametrize("kind", ["krr", "subset", "laplace"])
def test_the_loudest_words_are_named(kind):
    source = reports(WORDS, channel(kind), KEY, "corpus")
    words, documents = named_words(source, DOCUMENTS)
    rows = [slice(a, b) for a, b in pairwise(source.indptr)]
    loudest = [source.idx[row][source.a[row] == source.a[row].max()] for row in rows if row.stop > row.start]
    assert words.tolist() == np.concatenate(loudest).tolist()
    per_token = [np.count_nonzero(source.a[row] == source.a[row].max(initial=0)) for row in rows]
    assert documents.tolist() == [sum(per_token[:end]) for end in DOCUMENTS]
    on_demand = lambda first, last: reports(WORDS, channel(kind), KEY, "corpus", first, last)  # noqa: E731
    again = named_words(on_demand, DOCUMENTS)
    assert again[0].tolist() == words.tolist()
    assert again[1].tolist() == documents.tolist()


def test_no_documents_have_no_words():
    nothing = Reports(np.zeros(1, np.int64), WORDS[:0], np.zeros(0, np.float32), np.zeros(0, np.float32), 1.0)
    words, documents = named_words(nothing, np.zeros(1, np.int64))
    assert (len(words), documents.tolist()) == (0, [0])
