"""Who may count: gains by the formula, one liar of five, honest parties of other subjects, few parties."""

import itertools
import math

import numpy as np
import pytest

from helpers.poisons import copied_topics, mixed_topics, random_topics, scaled
from tertulia.errors import QuorumError
from tertulia.methods.consensus.messages import Counts, no_tag
from tertulia.methods.consensus.robust import find_supported, gains

BETA = 0.01
K, V = 4, 60
POISONS = {
    "random": random_topics(7),
    "scaled": scaled(100),
    "copied": copied_topics,
    "mixed": mixed_topics(7),
}


def counts_of(seed, tokens, subjects):
    """A party's counts of planted topics, which it has in the shares of its subjects."""
    topics = np.random.default_rng(0).dirichlet(np.full(V, 0.1), size=K)
    rng = np.random.default_rng(seed)
    sizes = rng.multinomial(tokens, np.array(subjects) / sum(subjects))
    return np.array([rng.multinomial(n, topic) for n, topic in zip(sizes, topics, strict=True)], dtype=np.int32)


ALIKE = [counts_of(seed, 300 * (seed + 1), [1, 1, 1, 1]) for seed in range(5)]
UNLIKE = [counts_of(seed, 400, [9 if k == seed % K else 1 for k in range(K)]) for seed in range(5)]


def tables(parties):
    return [[counts] for counts in parties]


def literal_gain(parties, i, j):
    """Token by token: what party j's own are worth to a model of all others, with party i and without it."""

    def worth(others):
        total = sum(parties[p] for p in others).astype(float)
        phi = (total + BETA) / (total + BETA).sum(axis=1, keepdims=True)
        return sum(parties[j][k, w] * math.log(phi[k, w]) for k in range(K) for w in range(V))

    everybody = [p for p in range(len(parties)) if p != j]
    return (worth(everybody) - worth([p for p in everybody if p != i])) / parties[j].sum()


def test_gains_are_those_of_the_formula():
    found = gains(UNLIKE, BETA)
    for i, j in itertools.product(range(5), range(5)):
        assert found[i, j] == (0 if i == j else pytest.approx(literal_gain(UNLIKE, i, j), rel=1e-9))


@pytest.mark.parametrize("parties", [ALIKE, UNLIKE], ids=["alike", "unlike"])
def test_honest_parties_all_count(parties):
    assert find_supported(tables(parties), BETA) == [0, 1, 2, 3, 4]


def test_a_party_with_words_and_a_topic_of_its_own_counts():
    wide = [np.pad(counts, ((0, 1), (0, 20))) for counts in UNLIKE]
    wide[3] = np.zeros_like(wide[3])
    wide[3][K, V:] = 40
    assert find_supported(tables(wide), BETA) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("liar", range(5))
@pytest.mark.parametrize("parties", [ALIKE, UNLIKE], ids=["alike", "unlike"])
def test_one_liar_of_five_is_left_out_and_nobody_else(parties, liar, poison):
    sent = list(parties)
    sent[liar] = POISONS[poison](Counts(parties[liar], np.zeros((0, V), np.int32), no_tag())).counts
    assert find_supported(tables(sent), BETA) == [party for party in range(5) if party != liar]


def test_it_does_not_matter_who_comes_first():
    sent = [*UNLIKE[:4], random_topics(7)(Counts(UNLIKE[4], np.zeros((0, V), np.int32), no_tag())).counts]
    for order in itertools.permutations(range(5)):
        kept = find_supported(tables([sent[party] for party in order]), BETA)
        assert sorted(order[place] for place in kept) == [0, 1, 2, 3]


def test_each_table_has_to_serve_the_others():
    sent = [[counts, counts] for counts in ALIKE]
    sent[2] = [ALIKE[2], POISONS["random"](Counts(ALIKE[2], np.zeros((0, V), np.int32), no_tag())).counts]
    assert find_supported(sent, BETA) == [0, 1, 3, 4]


@pytest.mark.parametrize("n", [4, 5, 8])
def test_most_parties_stay_whatever_they_send(n):
    sent = [
        random_topics(seed)(Counts(counts_of(seed, 500, [1] * K), np.zeros((0, V), np.int32), no_tag()))
        for seed in range(n)
    ]
    assert len(find_supported(tables([reply.counts for reply in sent]), BETA)) >= n // 2 + 1


def test_the_first_liars_go_until_most_are_left():
    sent = [scaled(10**seed)(Counts(UNLIKE[seed], np.zeros((0, V), np.int32), no_tag())).counts for seed in range(5)]
    assert find_supported(tables(sent), BETA) == [0, 1, 2]


def test_who_sends_nothing_does_nobody_harm():
    assert find_supported(tables([*ALIKE[:4], np.zeros_like(ALIKE[4])]), BETA) == [0, 1, 2, 3, 4]


def test_three_parties_are_too_few():
    with pytest.raises(QuorumError, match="`robust` needs 4"):
        find_supported(tables(ALIKE[:3]), BETA)
