"""Comparison of parties under secure sums, policies and noise: releases, their privacy cost, and refusals."""

import dataclasses

import numpy as np
import pytest

from helpers.compared import YEARS, K, dated, model, parties, texts
from tertulia.applications import compare
from tertulia.applications.comparison import to_shares
from tertulia.errors import ConfigError, FormatError, InputError, PolicyRefusal, QuorumError
from tertulia.federation.codec import decode, encode
from tertulia.federation.types import step_name
from tertulia.methods.prevalence import method
from tertulia.methods.prevalence.method import measure
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.mechanisms.gaussian import epsilon_of
from tertulia.runs.directory import Run

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
