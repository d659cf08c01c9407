"""Comparison of parties: what is found, over time too, and errors."""

import numpy as np
import polars as pl
import pytest

import tertulia as tt
from helpers.compared import SHARED, YEARS, K, dated, model, parties, texts
from tertulia.applications import compare
from tertulia.errors import ConfigError, InputError, PartyFailure
from tertulia.privacy.mechanisms.noisy_tables import STEP


def test_planted_shared_and_private_topics_are_found():
    found = compare.parties(model(), parties())
    assert found.names == ("a", "b", "c")
    assert set(found.shared()["topic"]) == {0, 1, 2}
    assert dict(found.private().select("topic", "most in").iter_rows()) == {3: "a", 4: "b", 5: "c"}
    assert found.effective_parties()[:2] == pytest.approx([3, 3], abs=0.1)
    assert found.effective_parties()[3:] == pytest.approx([1, 1, 1], abs=0.15)
    for row, topics in zip(found.prevalence, SHARED.values(), strict=True):
        assert row == pytest.approx([1 / len(topics) if k in topics else 0 for k in range(K)], abs=0.02)
    for measured in ("jensen-shannon", "hellinger"):
        alike = found.similarity(measured).drop("party").to_numpy()
        assert alike == pytest.approx(alike.T)
        assert np.diag(alike) == pytest.approx([1, 1, 1])
        assert alike[0, 1] > alike[0, 2] + 0.1  # a and b share one topic more


def test_what_is_released_is_the_sum_of_topic_shares_rounded_down_to_the_grid():
    shared, given = model(), parties(20)
    found = compare.parties(shared, given)
    for row, own in zip(found.released, given.values(), strict=True):
        theta = shared.transform(own)
        exact = np.floor(theta / np.maximum(theta.sum(axis=1, keepdims=True) * (1 + 2.0**-40), 1) * 2**20).sum(axis=0)
        np.testing.assert_array_equal(row[0], exact * STEP)
        np.testing.assert_allclose(row[0], theta.sum(axis=0), atol=len(own) * STEP * 2)
    tokens = compare.parties(shared, given, weigh="tokens")
    np.testing.assert_allclose(tokens.released[0, 0], 30 * found.released[0, 0], atol=1e-2)


def test_sums_over_groups_are_the_sums_of_the_parties():
    given = {**parties(), "d": texts([5], 10)}
    each = compare.parties(model(), given)
    both = compare.parties(model(), given, groups={"first": ["a", "c"], "second": ["b", "d"]})
    assert both.names == ("first", "second")
    assert both.members == {"first": ("a", "c"), "second": ("b", "d")}
    np.testing.assert_array_equal(both.released, each.released[[0, 1]] + each.released[[2, 3]])


def test_documents_without_a_known_word_are_not_counted():
    known = {"a": texts([0], 5), "b": texts([1], 5)}
    with_others = {name: [*own, "entirely unheard", ""] for name, own in known.items()}
    found, others = compare.parties(model(), known), compare.parties(model(), with_others)
    np.testing.assert_array_equal(found.released, others.released)


def test_a_model_from_a_federated_run_and_a_corpus_will_do():
    given = {name: tt.Corpus.from_texts(own) for name, own in parties(30).items()}
    trained = tt.Consensus(topics=3, rounds=1, start_sweeps=2, sweeps=1).fit(given, heldout=0.0)
    found = compare.parties(trained, given)
    np.testing.assert_allclose(found.totals, 30, atol=0.01)
    other = tt.Corpus.from_texts(["harbour"], options=tt.TextOptions(lowercase=False))
    with pytest.raises(ConfigError, match="party 'z' were cut into words in another way"):
        compare.parties(trained, {"z": other})


def test_a_neural_model_infers_by_its_encoder():
    given = parties(12)
    neural = tt.ProdLDA(topics=2, hidden=(4,), epochs=1, vocabulary={"min_documents": 1}).fit(
        [text for own in given.values() for text in own]
    )
    found = compare.parties(neural, given, epsilon=8.0, delta=1e-2)
    clear = compare.parties(neural, given)
    for row, own in zip(clear.released, given.values(), strict=True):
        np.testing.assert_allclose(row[0], neural.transform(own).sum(axis=0), atol=1e-3)
    assert np.abs(found.released - clear.released).max() < 6 * found.sigma


# --- over time ----------------------------------------------------------------------------------------------------


def test_tables_over_time_count_each_document_in_its_period():
    given = {
        "a": dated([0], ["2024-01-31", "2024-12-01", "2025-06-01", "2023-12-31", None, "soon"]),
        "b": dated([1], ["2026-01-01T09:00", "2026-05-05"], seed=1),
    }
    found = compare.parties(model(), given, **YEARS)
    assert found.periods == ("2024", "2025", "2026")
    np.testing.assert_allclose(found.released.sum(axis=2), [[2, 1, 0], [0, 0, 2]], atol=1e-4)
    rows = found.over_time().filter(pl.col("topic") == 0)
    assert rows.filter(pl.col("party") == "a")["share"].to_list() == pytest.approx([0.97, 0.97, None], abs=0.03)
    assert found.prevalence[0, 0] == pytest.approx(0.97, abs=0.03)


@pytest.mark.parametrize(
    ("by", "labels"),
    [("month", ("2025-11", "2025-12", "2026-01")), ("quarter", ("2025-Q4", "2026-Q1")), ("year", ("2025", "2026"))],
)
def test_periods(by, labels):
    dates = ["2025-11-01", "2025-12-31", "2026-01-01"]
    found = compare.parties(model(), {"a": dated([0], dates)}, by=by, since="2025-11", until="2026-01-15")
    assert found.periods == labels
    assert found.released.sum() == pytest.approx(3, abs=1e-3)


def test_trends_are_those_that_were_planted():
    dates = [f"{year}-01-01" for year in (2024, 2025, 2026) for _ in range(20)]
    share = {2024: 5, 2025: 10, 2026: 15}  # of topic 0 in each year; the others are of topic 1
    topics = [0 if i % 20 < share[int(date[:4])] else 1 for i, date in enumerate(dates)]
    frame = pl.DataFrame({"text": [texts([k], 1, i)[0] for i, k in enumerate(topics)], "date": dates})
    found = compare.parties(model(), {"a": frame, "b": dated([2], dates[:25])}, **YEARS)
    slopes = {(r["party"], r["topic"]): r["slope"] for r in found.trends().to_dicts()}
    assert slopes["a", 0] == pytest.approx(0.25, abs=0.02)
    assert slopes["a", 1] == pytest.approx(-0.25, abs=0.02)
    assert not any(party == "b" for party, _ in slopes)  # two periods only


def test_small_cells_are_emptied_as_the_party_wants(tmp_path):
    dates = ["2024-01-01"] * 3 + ["2025-01-01"] * 5 + ["2026-01-01"] * 9
    given = {"a": dated([0], dates), "b": dated([0], dates, 1), "c": dated([0], ["2024-05-05"])}
    policy = tmp_path / "policy.toml"
    policy.write_text("min_documents_per_cell = 6")
    own = {"b": {"policy": str(policy)}}
    found = compare.parties(model(), given, **YEARS, min_documents_per_cell=4, party_settings=own)
    np.testing.assert_allclose(found.released.sum(axis=2), [[0, 5, 9], [0, 0, 9], [0, 0, 0]], atol=1e-3)
    assert np.isnan(found.prevalence[2]).all()
    assert found.similarity()["c"].is_nan().all()
    assert found.over_time().filter(pl.col("party") == "c")["share"].null_count() == 3 * K
    assert found.order()[-1] == 2
    assert found.table()["effective parties"].is_not_nan().all()


def test_with_noise_it_is_the_noisy_count_that_decides():
    dates = ["2024-01-01"] * 2 + ["2026-01-01"] * 400
    found = compare.parties(model(), {"a": dated([0], dates)}, **YEARS, epsilon=8.0, min_documents_per_cell=100)
    assert (found.released[0, :2] == 0).all()
    assert found.released[0, 2].sum() == pytest.approx(400, abs=20)


# --- errors -------------------------------------------------------------------------------------------------------


def test_a_party_without_dates_is_named():
    given = {"a": dated([0], ["2025-01-01"]), "b": texts([1], 3)}
    with pytest.raises(PartyFailure, match="party 'b': InputError: documents have no dates: read them with a column"):
        compare.parties(model(), given, **YEARS)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"by": "year"}, "needs `since` and `until`"),
        ({"by": "week", "since": "2025", "until": "2026"}, "by = 'week'"),
        ({"by": "month", "since": "2025", "until": "2026"}, "since = '2025': write a date"),
        ({"by": "month", "since": "2026-05", "until": "2026-01"}, "`until` must follow `since`"),
        ({"groups": {"g": ["a"]}}, "group 'g' has fewer than two parties"),
        ({"groups": {"g": ["a", "b"], "h": ["a", "c"]}}, "party 'a' is in two groups"),
        ({"groups": {"g": ["a", "z"]}}, "'z' is in a group, but no party"),
        ({"epsilon": -1.0}, "epsilon = -1.0"),
        ({"epsilon": 200.0}, "choose another epsilon"),
        ({"epsilom": 1.0}, "unknown key 'epsilom'"),
    ],
)
def test_settings_that_cannot_be_are_explained(settings, text):
    with pytest.raises(ConfigError, match=text.replace("(", r"\(")):
        compare.parties(model(), parties(3), **settings)


def test_other_bad_input(tmp_path):
    found = compare.parties(model(), parties(6), directory=tmp_path / "run")
    with pytest.raises(ConfigError, match="holds a run already"):
        compare.parties(model(), parties(6), directory=tmp_path / "run")
    with pytest.raises(InputError, match="no periods"):
        found.over_time()
    with pytest.raises(InputError, match="use 'jensen-shannon' or 'hellinger'"):
        found.similarity("cosine")
    with pytest.raises(InputError, match="private = 2"):
        found.table(private=2)
    with pytest.raises(InputError, match="no parties"):
        compare.parties(model(), {})
    with pytest.raises(InputError, match="a party is called 'words'"):
        compare.parties(model(), {"words": texts([0], 2), "b": texts([0], 2)})
