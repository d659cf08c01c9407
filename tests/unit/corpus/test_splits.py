from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tertulia.corpus.splits import (
    Row,
    at_random,
    by_column,
    by_file,
    dirichlet,
    dirichlet_shares,
    in_shards,
    unit_interval,
)
from tertulia.errors import InputError


def rows(n, labels="abcd"):
    return [Row(f"id{i}", "text", label=labels[i % len(labels)]) for i in range(n)]


def test_the_hash_is_fixed_for_ever():
    assert unit_interval("heldout", 0, "a") == 0.5089210117256734
    assert unit_interval("party", 1, "ñ") == 0.9616729495756852


def test_the_hash_is_uniform():
    assert stats.kstest([unit_interval("party", 0, i) for i in range(4000)], "uniform").pvalue > 1e-3


def test_random_parties_have_their_sizes():
    assign = at_random({"a": 1, "b": 2, "c": 3}, seed=5)
    assert assign.parties == ("a", "b", "c")
    counts = Counter(map(assign, rows(6000)))
    assert stats.chisquare([counts[p] for p in "abc"], [1000, 2000, 3000]).pvalue > 1e-3
    assert Counter(map(at_random({"a": 1, "b": 2, "c": 3}, seed=6), rows(6000))) != counts


def test_shards_are_equal_and_keep_a_users_documents_together():
    assign = in_shards(12, seed=5)
    assert assign.parties[::11] == ("shard-01", "shard-12")
    counts = Counter(map(assign, rows(6000)))
    assert stats.chisquare([counts[p] for p in assign.parties], [500] * 12).pvalue > 1e-3
    assert Counter(map(in_shards(12, seed=6), rows(6000))) != counts
    users = [(f"u{i % 50}", assign(Row(f"id{i}", "text", user=f"u{i % 50}"))) for i in range(500)]
    assert len(set(users)) == 50
    assert len({shard for _, shard in users}) > 6


@given(st.lists(st.text(max_size=4), unique=True, max_size=30), st.integers(0, 5), st.randoms())
def test_a_row_keeps_its_party_whatever_else_there_is(ids, seed, random):
    rules = [at_random({"a": 1, "b": 3}, seed), dirichlet(["a", "b", "c"], 0.5, seed)]
    given = [Row(name, "some text", label=name[:1]) for name in ids]
    for rule, fresh in zip(
        rules, [at_random({"a": 1, "b": 3}, seed), dirichlet(["a", "b", "c"], 0.5, seed)], strict=True
    ):
        first = {row.id: rule(row) for row in given}
        shuffled = random.sample(given, len(given))
        assert {row.id: fresh(row) for row in shuffled[: len(given) // 2]}.items() <= first.items()


def test_dirichlet_shares_are_a_dirichlet_draw():
    n, a = 4, 0.7
    draws = [dirichlet_shares(n, a, f"key{i}") for i in range(1500)]
    assert all(abs(sum(draw) - 1) < 1e-12 and min(draw) >= 0 for draw in draws)
    for party in range(n):  # every marginal is Beta(a, (n - 1) a)
        assert stats.kstest([draw[party] for draw in draws], stats.beta(a, (n - 1) * a).cdf).pvalue > 1e-3


def test_concentration_sets_the_skew():
    def spread(concentration):
        assign = dirichlet(["p", "q", "r"], concentration, seed=1)
        counts = Counter((row.label, assign(row)) for row in rows(4000))
        return max(counts[label, party] for label in "abcd" for party in "pqr")

    assert spread(0.05) > 900
    assert spread(1000.0) < 420


def test_a_label_is_spread_by_its_shares():
    assign = dirichlet(["p", "q"], 1.0, seed=2)
    share = dirichlet_shares(2, 1.0, "2\x1fa")[0]
    counts = Counter(assign(row) for row in rows(4000, labels="a"))
    assert counts["p"] / 4000 == pytest.approx(share, abs=0.04)


def test_parties_by_column_and_file():
    row = Row("i", "t", source="ward-7", values={"clinic": "north"})
    assert by_column("clinic").columns == ("clinic",)
    assert by_column("clinic")(row) == "north"
    assert by_column("city")(row) == "none"
    assert by_file()(row) == "ward-7"


def test_impossible_splits_are_errors():
    with pytest.raises(InputError, match="sizes must all be above 0"):
        at_random({"a": 1, "b": 0})
    with pytest.raises(InputError, match="sizes must all be above 0"):
        at_random({})
    with pytest.raises(InputError, match="concentration above 0"):
        dirichlet(["a", "b"], 0.0)
