"""Comparison of parties: releases, their privacy cost, policies that refuse them, and results."""

import dataclasses

import numpy as np
import polars as pl
import pytest

import tertulia as tt
from helpers.compared import SHARED, K, model, parties, texts
from tertulia.applications import compare
from tertulia.applications.comparison import to_shares
from tertulia.errors import ConfigError, FormatError, InputError, PartyFailure, PolicyRefusal, QuorumError
from tertulia.federation.codec import decode, encode
from tertulia.federation.types import step_name
from tertulia.methods.prevalence import method
from tertulia.methods.prevalence.method import measure
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.mechanisms.gaussian import epsilon_of
from tertulia.privacy.mechanisms.noisy_tables import STEP
from tertulia.runs.directory import Run

YEARS = {"by": "year", "since": "2024", "until": "2026"}


def dated(topics, dates, seed=0):
    return pl.DataFrame({"text": texts(topics, len(dates), seed), "date": dates})


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


# --- with secure sums ---------------------------------------------------------------------------------------------

SIX = {name: texts([i % K, (i + 1) % K], 12, seed=i) for i, name in enumerate("abcdef")}
GROUPS = {"first": ["a", "c", "e"], "second": ["b", "d", "f"]}


def test_masked_sums_over_groups_are_the_plain_ones(tmp_path):
    plain = compare.parties(model(), SIX, groups=GROUPS)
    policy = tmp_path / "policy.toml"
    policy.write_text("allow_single = false\nrequire_secure = true")
    own = {name: {"policy": str(policy)} for name in SIX}  # which plain sums would not satisfy
    masked = compare.parties(model(), SIX, groups=GROUPS, secure=True, party_settings=own, directory=tmp_path / "run")
    np.testing.assert_array_equal(masked.released, plain.released)
    assert masked.members == plain.members == {name: tuple(members) for name, members in GROUPS.items()}
    run = Run.open(tmp_path / "run")
    for party in run.parties:
        (release,) = Ledger(run.party_directory(party) / "ledger.sqlite").releases()
        assert (release.verb, release.masked) == ("sum", True)


def test_masked_sums_with_noise_and_periods():
    given = {name: dated([i % K], ["2024-05-01", "2025-06-01"] * 5, seed=i) for i, name in enumerate("abcdef")}
    found = compare.parties(model(), given, groups=GROUPS, secure=True, epsilon=20.0, **YEARS)
    assert found.released.shape == (2, 3, K)
    assert found.released[:, :2].sum(axis=(1, 2)) == pytest.approx([30, 30], abs=12)
    assert found.epsilon == pytest.approx(20.0, rel=1e-3)


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ({}, r"secure = true: tables of single parties stay hidden. Give groups of three parties or more"),
        ({"pair": ["a", "b"]}, r"totals over at least 3 parties, and a group, or the parties .* has 2 \(a, b\)"),
        ({"most": ["a", "b", "c", "d"]}, r"has 2 \(e, f\): make groups larger"),  # the total less the group is theirs
        ({"strange": ["a", "b", "nobody"]}, r"of members only"),
    ],
)
def test_groups_that_secure_sums_cannot_have(groups, why, tmp_path):
    with pytest.raises(ConfigError, match=why):
        compare.parties(model(), SIX, groups=groups, secure=True, directory=tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_group_that_becomes_too_small_stops_the_comparison(tmp_path):
    """Without secure sums the group would go on without the party."""
    policy = tmp_path / "policy.toml"
    policy.write_text("allow_clear = false\nallow_masked = false")
    own = {"a": {"policy": str(policy)}}
    with (
        pytest.warns(UserWarning, match="party 'a' did not answer"),
        pytest.raises(QuorumError, match="2 of 6 members answered measure in round 0, and a masked sum needs 3"),
    ):
        compare.parties(model(), SIX, groups=GROUPS, secure=True, party_settings=own)


# --- plan, charges, policies --------------------------------------------------------------------------------------


def test_the_plan_names_it_and_what_it_costs():
    (clear,) = compare.plan(model()).to_dicts()
    assert (clear["what"], clear["mechanism"], clear["real epsilon"]) == ("topic prevalence", "clear", np.inf)
    (noisy,) = compare.plan(model(), epsilon=2.0, **YEARS, groups={"g": ["a", "b"]}).to_dicts()
    assert (noisy["mechanism"], noisy["numbers"], noisy["unit"]) == ("discrete-gaussian", f"3x{K}", "document")
    assert noisy["real epsilon"] == pytest.approx(2.0, rel=1e-3)
    assert "sum" in noisy["seen"]
    (masked,) = compare.plan(model(), secure=True, groups={"g": ["a", "b", "c"]}).to_dicts()
    assert masked["seen"] == "only as a sum over a group, of three parties or more; its parts are masked"
    with pytest.raises(ConfigError, match="stay hidden"):
        compare.plan(model(), secure=True)


@pytest.mark.parametrize("settings", [{}, {"epsilon": 1.0}, {"epsilon": 1.0, "groups": {"g": ["a", "b", "c"]}}])
def test_all_that_leaves_was_planned(tmp_path, settings):
    compare.parties(model(), parties(), directory=tmp_path / "run", **settings)
    run = Run.open(tmp_path / "run")
    (planned,) = method.plan(run.config["method"]["config"])
    for party in run.parties:
        (release,) = Ledger(run.party_directory(party) / "ledger.sqlite").releases()
        assert (release.step, release.verb) == (step_name(planned.step), planned.verb)
        assert (release.what, release.name) == (planned.mechanism.what, planned.mechanism.name)
        assert release.event == planned.mechanism.charge()


@pytest.mark.parametrize(("adjacency", "shift"), [("add-remove", 1.0), ("substitute", 2**0.5)])
def test_the_ledger_charges_exact_gaussian_epsilon(tmp_path, adjacency, shift):
    found = compare.parties(
        model(), parties(), directory=tmp_path / "run", epsilon=1.0, delta=1e-5, adjacency=adjacency
    )
    ledger = Ledger(Run.open(tmp_path / "run").party_directory("a") / "ledger.sqlite")
    cost = ledger.cost(Unit.DOCUMENT, Adjacency(adjacency), 1e-5).epsilon
    assert cost == pytest.approx(epsilon_of(shift / found.sigma, 1e-5), abs=1e-6)
    assert 0.999 < cost <= 1.0  # never above the requested epsilon, so that a budget of 1 allows it
    assert found.epsilon == pytest.approx(cost, abs=1e-6)
    assert ledger.cost(Unit.DOCUMENT, Adjacency(adjacency), 1e-7).epsilon > 1.0


def test_a_budget_is_spent_by_comparisons(tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text('[[budget]]\nunit = "document"\nepsilon = 1.4\n')
    own = {"a": {"policy": str(policy), "home": str(tmp_path / "home")}}
    found = compare.parties(model(), parties(), epsilon=1.0, party_settings=own)
    assert found.names == ("a", "b", "c")
    with pytest.raises(PolicyRefusal, match=r"rule 'budget.document.add-remove': the whole run at party 'a'"):
        compare.parties(model(), parties(), epsilon=1.0, party_settings=own)


@pytest.mark.parametrize(
    ("rules", "settings", "rule"),
    [
        ("allow_clear = false", {}, "allow_clear"),
        ('allow_clear = ["topic sizes"]', {}, "allow_clear"),
        ("allow_single = false", {"epsilon": 1.0}, "allow_single"),
    ],
)
def test_a_policy_that_forbids_it_refuses_it(tmp_path, rules, settings, rule):
    policy = tmp_path / "policy.toml"
    policy.write_text(rules)
    given = parties()
    with pytest.warns(UserWarning, match=rf"party 'b' did not answer: refused by rule '{rule}'"):
        found = compare.parties(model(), given, party_settings={"b": {"policy": str(policy)}}, **settings)
    assert found.names == ("a", "c")
    with (
        pytest.warns(UserWarning, match="did not answer"),
        pytest.raises(QuorumError, match="refused by rule"),
    ):
        compare.parties(model(), given, party_settings={name: {"policy": str(policy)} for name in given}, **settings)


def test_a_party_whose_single_replies_stay_takes_no_part_in_a_group_either(tmp_path):
    """Sums are made on the server's machine, from single replies."""
    policy = tmp_path / "policy.toml"
    policy.write_text("allow_single = false")
    own = {"a": {"policy": str(policy)}}
    with pytest.warns(UserWarning, match="refused by rule 'allow_single'"):
        found = compare.parties(model(), parties(), groups={"g": ["a", "b", "c"]}, party_settings=own)
    assert found.members == {"g": ("b", "c")}


def test_a_group_of_which_one_party_alone_answered_is_not_used(tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("allow_clear = false")
    given = {**parties(), "d": texts([5], 10)}
    own = {"d": {"policy": str(policy)}}
    with pytest.warns(UserWarning, match="party 'd' did not answer"):
        found = compare.parties(model(), given, groups={"g": ["a", "b"], "h": ["c", "d"]}, party_settings=own)
    assert found.names == ("g",)


@pytest.mark.parametrize("settings", [{}, {"epsilon": 4.0}, {"epsilon": 1.0, "delta": 0.1}])
def test_a_partys_own_epsilon_is_kept(settings):
    own = {"a": {"epsilon": 2.0}}
    with pytest.warns(UserWarning, match="refused by rule 'the party's own epsilon'"):
        assert compare.parties(model(), parties(), party_settings=own, **settings).names == ("b", "c")
    assert compare.parties(model(), parties(), party_settings=own, epsilon=1.9).names == ("a", "b", "c")


# --- noise --------------------------------------------------------------------------------------------------------


class _Party:
    """A party in a step, whose `release` only records its arguments."""

    min_documents_per_cell = 1

    def __init__(self, corpus):
        self.corpus, self.asked = corpus, []

    def documents(self, vocabulary):
        return self.corpus.encode(vocabulary)

    def setting(self, name, default):
        return default

    def notice(self, text):
        self.asked.append(text)

    def release(self, x, mechanism):
        self.asked.append(mechanism)
        return x


def ask(**changes):
    settings = method.PrevalenceSettings(model=".", epsilon=1.0)
    return dataclasses.replace(method.task_of(settings, model()), **changes)


def test_no_document_moves_the_table_by_more_than_one_whatever_the_model():
    """The server chooses the model: shares that do not sum to 1 would exceed the charged sensitivity."""
    shares = np.array([[3.0, 4.0], [np.nan, 2.0], [-1.0, 0.5], [np.inf, 0.2], [0.3, 0.7 + 1e-15]])
    moved = np.floor(method._clip(shares) * 2**20)
    assert (moved >= 0).all()
    assert (np.linalg.norm(moved, axis=1) <= 2**20).all()
    assert (moved.sum(axis=1) <= 2**20).all()


def test_a_document_more_moves_the_table_by_at_most_one():
    corpus = model().encode([*texts([0, 3], 20), "", "unheard", "wordaa wordbe wordby wordba"])
    places = np.arange(corpus.n_documents) % 3
    whole, _ = method.tabulate(model(), corpus, places, 3)
    for d in range(corpus.n_documents):
        others = np.arange(corpus.n_documents) != d
        without, _ = method.tabulate(model(), corpus.select(others), places[others], 3)
        assert np.linalg.norm(whole - without) <= 2**20
        assert (whole - without).any() == (corpus.lengths[d] > 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"topic_word": np.ones((2, 3)) / 3},
        {"topic_word": np.full((K, 60), np.nan)},
        {"alpha": np.zeros(K)},
        {"alpha": np.ones(K + 1)},
    ],
)
def test_a_model_that_is_none_is_refused_before_documents_are_touched(changes):
    party = _Party(None)
    with pytest.raises(InputError):
        measure(party, None, ask(**changes))
    assert not party.asked


def test_noise_on_counts_of_tokens_is_refused_by_the_party():
    """A party checks the settings again, because the server may send wrong ones."""
    sound = encode(ask().table)
    forged = sound.replace(b'\\"weigh\\":\\"documents\\"', b'\\"weigh\\":\\"tokens\\"   ')
    assert decode(sound).weigh == "documents"
    assert forged != sound
    with pytest.raises(FormatError, match="epsilon goes with weigh = 'documents'"):
        decode(forged)
    with pytest.raises(ConfigError, match="epsilon goes with weigh = 'documents'"):
        compare.parties(model(), parties(), weigh="tokens", epsilon=1.0)


def test_noise_has_the_deviation_that_is_charged():
    """The squared errors of 2,400 released numbers follow chi-square, within 5 deviations, as keys are random."""
    given = {f"p{i}": dated([0, 3], ["2025-01-01"] * 6, seed=i) for i in range(4)}
    century = {"by": "year", "since": "1927", "until": "2026"}
    clear, noisy = (compare.parties(model(), given, **century, **more) for more in ({}, {"epsilon": 1.0}))
    differences = (noisy.released - clear.released) / noisy.sigma
    n = differences.size
    assert n == 4 * 100 * K
    assert (differences**2).sum() == pytest.approx(n, abs=5 * np.sqrt(2 * n))
    assert abs(differences.sum()) < 5 * np.sqrt(n)
    assert len(np.unique(differences)) > n - 5


def test_margins_know_of_few_documents_and_of_noise():
    released = np.array([[[50.0, 50.0]], [[5.0, 5.0]], [[90.0, 110.0]]])
    members = {"a": ("a",), "b": ("b",), "g": ("c", "d")}
    found = compare.Comparison(tuple(members), members, ("all",), released, [["x"], ["y"]], sigma=4.0)
    expected = [0.25 / 100 + 16 / 100**2, 0.25 / 10 + 16 / 10**2, 0.45 * 0.55 / 200 + 2 * 16 / 200**2]
    np.testing.assert_allclose(found.margins, np.sqrt(expected)[:, None] * [[1, 1]])
    assert np.isnan(dataclasses.replace(found, weigh="tokens").margins).all()


def test_negative_numbers_become_the_nearest_shares():
    noisy = np.array([[4.0, 3.0, -1.0], [-2.0, -1.0, 1.0], [6.0, 2.0, 0.0]])
    np.testing.assert_allclose(to_shares(noisy), [[3.5 / 6, 2.5 / 6, 0], [np.nan] * 3, [0.75, 0.25, 0]])


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
