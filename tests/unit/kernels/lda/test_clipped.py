"""Clipped sums: what they are, and that no group moves one further than its clip norm."""

from itertools import pairwise

import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.kernels.lda.clipped import PAIRS_NORM, clipped_counts, clipped_pairs, clipped_words
from tertulia.kernels.lda.fold_in import theta

V, K, BITS, CLIP = 12, 3, 14, 1.5


def corpus_of(seed, D=25):
    rng = np.random.default_rng(seed)
    lengths = rng.choice([0, 1, 2, 5, 40, 400], D)
    documents = np.concatenate(([0], np.cumsum(lengths)))
    words = (rng.integers(0, V + 2, documents[-1]) * (rng.random(documents[-1]) < 0.8)).astype(np.int32)
    groups = np.unique(np.concatenate(([0, D], rng.integers(0, D, D // 2))))
    return words, documents, groups


def topics():
    return np.random.default_rng(9).dirichlet(np.full(V + 2, 0.2), K)


SUMS = {
    "words": (lambda *corpus: clipped_words(*corpus, V, BITS), 1.0),
    "pairs": (lambda *corpus: clipped_pairs(*corpus, np.array([0, 2, 3, 7, 11]), V + 2, BITS), PAIRS_NORM),
    "counts": (lambda *corpus: clipped_counts(*corpus, topics(), np.full(K, 0.5), CLIP, BITS), CLIP),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("by_user", [False, True])
def test_no_group_moves_a_sum_further_than_its_norm(name, by_user):
    add_up, norm = SUMS[name]
    clipped = 0
    for seed in range(4):
        words, documents, groups = corpus_of(seed)
        groups = groups if by_user else np.arange(len(documents))
        whole = add_up(words, documents, groups)
        for g in range(len(groups) - 1):
            first, last = documents[groups[g]], documents[groups[g + 1]]
            inside = np.concatenate((np.arange(groups[g] + 1), np.arange(groups[g + 1] + 1, len(documents))))
            kept = documents[inside] - np.where(inside > groups[g], last - first, 0)
            rest = np.delete(groups, g + 1) - np.where(
                np.delete(np.arange(len(groups)), g + 1) > g, groups[g + 1] - groups[g], 0
            )
            without = add_up(np.delete(words, slice(first, last)), kept, rest)
            moved = np.sqrt(float((np.asarray(whole - without, object) ** 2).sum())) / 2**BITS
            assert moved <= norm
            clipped += moved > 0.6 * norm
    assert clipped > 5  # the bound is reached: clipping took place


def test_words_are_sums_of_unit_vectors():
    words, documents = np.array([0, 0, 1, 3, 3, V], np.int32), np.array([0, 3, 6])
    found = clipped_words(words, documents, np.array([0, 1, 2]), V, BITS) / 2**BITS
    expected = np.zeros(V)
    expected[[0, 1]] = np.array([2, 1]) / np.sqrt(5)
    expected[3] = 1.0  # the word off the list is left out before the norm is taken
    assert np.allclose(found, expected, atol=2**-BITS)


def test_pairs_are_products_of_unit_vectors():
    words, documents, groups = corpus_of(1)
    groups, chosen = np.arange(len(documents)), np.array([0, 2, 3, 7, 11])
    table = np.stack([np.bincount(words[a:b], minlength=V + 2)[chosen] for a, b in pairwise(documents)])
    norms = np.sqrt((table**2).sum(axis=1, keepdims=True))
    x = np.divide(table, norms, out=np.zeros(table.shape), where=norms > 0)
    expected = (x.T @ x)[np.triu_indices(len(chosen), 1)]
    found = clipped_pairs(words, documents, groups, chosen, V + 2, BITS) / 2**BITS
    assert np.allclose(found, expected, atol=len(table) * 2**-BITS)


def test_counts_are_expected_counts():
    words, documents, _ = corpus_of(2)
    phi, alpha = topics(), np.full(K, 0.5)
    shares = theta(words, documents, phi, alpha, 20)
    expected = np.zeros((K, V + 2))
    for d, (a, b) in enumerate(pairwise(documents)):
        mine = np.zeros((K, V + 2))
        for w in words[a:b]:
            p = shares[d] * phi[:, w]
            mine[:, w] += p / p.sum()
        norm = np.sqrt((mine**2).sum())
        expected += mine * min(1.0, CLIP / norm) if norm else 0.0
    found = clipped_counts(words, documents, np.arange(len(documents)), phi, alpha, CLIP, BITS) / 2**BITS
    assert np.allclose(found, expected, atol=len(documents) * (2**-BITS + 1e-5))
    two = clipped_counts(words, documents, np.arange(len(documents)), phi, alpha, CLIP, BITS, threads=2)
    assert np.array_equal(two, np.rint(found * 2**BITS))


@pytest.mark.parametrize("groups", [[0], [1, 25], [0, 5], [0, 9, 4, 25]])
def test_groups_must_be_offsets(groups):
    words, documents, _ = corpus_of(3)
    with pytest.raises(InputError, match="groups must be offsets"):
        clipped_words(words, documents, np.array(groups), V, BITS)
