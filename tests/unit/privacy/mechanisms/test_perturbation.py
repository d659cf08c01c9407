"""FedLDA's mechanisms as exact laws: what RRP promises and does not keep, what its rivals do."""

import math

import numpy as np
import pytest

from helpers.fedlda_laws import delta_at, law, smallest_epsilon
from tertulia.errors import ConfigError, Unreleased
from tertulia.kernels.reports.channel import Channel
from tertulia.privacy.accounting import cost
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.mechanisms.perturbation import (
    HYBRID_GRID,
    Perturbation,
    finding_text,
    heads,
    hybrid_answers,
    real_finding,
    redraw_probability,
)
from tertulia.privacy.mechanisms.token_reports import UserReports
from tertulia.privacy.mechanisms.user_tuples import UserTuples, pure_event
from tertulia.privacy.releases import Release

PHI = np.array([[0.5, 0.25, 0.12, 0.07, 0.04, 0.02], [0.12, 0.25, 0.5, 0.07, 0.04, 0.02]])
HALVES = np.array([0.5, 0.5])
SUBSTITUTE = Adjacency.SUBSTITUTE


def guaranteed(mechanism, times=1, delta=0.0):
    facts = {"party": "north", "round": 1, "step": "m:s", "verb": "sum", "message_hash": "", "x": np.zeros(1, int)}
    releases = [Release.of(mechanism, id=str(i), **facts) for i in range(times)]
    assert Release.from_json(releases[0].to_json()) == releases[0]
    return cost(releases, Unit.USER, SUBSTITUTE, delta)


@pytest.mark.parametrize(("epsilon", "claimed_delta", "true"), [(7.5, 0.2, 0.951), (5.0, 0.2, 0.622)])
def test_theorem_1_is_false(epsilon, claimed_delta, true):
    """Two words lie in no topic's head: a report of one of them is certainly true."""
    rrp = Perturbation("rrp", epsilon)
    reported = law(rrp, PHI, HALVES)
    assert rrp.claim().delta == pytest.approx(claimed_delta)
    assert delta_at(reported, epsilon) == pytest.approx(true, abs=5e-4)
    assert delta_at(reported, epsilon) > claimed_delta
    assert smallest_epsilon(reported) == (math.inf, pytest.approx(true, abs=5e-4))  # no epsilon can do with less
    finding = real_finding(rrp, PHI, HALVES)
    assert finding.delta == pytest.approx(delta_at(reported, epsilon))
    assert (finding.outside, finding.epsilon) == (2, math.inf)


def test_theorem_1_is_false_even_where_no_word_is_deserted_by_all():
    """A user who hardly has the one topic in whose head a word lies."""
    phi = np.array([[0.6, 0.35, 0.05], [0.05, 0.35, 0.6]])
    theta = np.array([0.999, 0.001])
    rrp = Perturbation("rrp", 7.5)
    reported = law(rrp, phi, theta)
    epsilon, never = smallest_epsilon(reported)
    assert heads(phi, 0.1).any(axis=0).all()
    assert never == 0
    assert epsilon > 10 > rrp.epsilon
    assert delta_at(reported, 7.5) > 0.2
    finding = real_finding(rrp, phi, theta)
    assert finding.epsilon == pytest.approx(epsilon)
    assert finding.delta == pytest.approx(delta_at(reported, 7.5))


@pytest.mark.parametrize("kind", ["none", "rrp", "krr", "tkrr"])
def test_laws_are_distributions(kind):
    reported = law(Perturbation(kind, 3.0), PHI, HALVES)
    assert np.allclose(reported.sum(axis=1), 1)
    assert reported.min() >= 0


@pytest.mark.parametrize("kind", ["krr", "tkrr"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 7.5])
def test_randomised_response_keeps_its_epsilon(kind, epsilon):
    reported = law(Perturbation(kind, epsilon), PHI, HALVES)
    found, never = smallest_epsilon(reported[:, reported.any(axis=0)])
    assert (found, never) == (pytest.approx(epsilon), 0)
    assert reported.any(axis=0).sum() == (6 if kind == "krr" else 4)


def test_the_papers_shares_of_perturbed_words_fix_its_constants():
    assert Perturbation("rrp", 7.5).eta(3309) == pytest.approx(0.0524, abs=1e-4)  # "5 % of the words"
    assert Perturbation("rrp", 5.0).eta(3309) == pytest.approx(0.4026, abs=1e-4)  # "40 %"
    assert Perturbation("rrp", 7.5, gamma=1.0).eta(3309) == pytest.approx(
        1 / (0.1 * (0.1 - 1 / 11) * math.exp(7.5) + 1)
    )


def test_tails_hold_delta_at_most_and_never_part_equals():
    assert heads(PHI, 0.1).tolist() == [[True] * 4 + [False] * 2] * 2
    assert heads(np.full((1, 7), 1 / 7), 0.1).all()
    assert heads(np.full((1, 10), 0.1), 0.5).all()  # a cut among ten equals would be by their numbers
    assert redraw_probability(Perturbation("rrp", 5.0), PHI, HALVES).tolist() == pytest.approx(
        [0.31, 0.25, 0.31, 0.07, 0, 0]
    )


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5, 6.0])
def test_the_hybrid_mechanism_keeps_its_epsilon_and_is_unbiased(epsilon):
    values, probability = hybrid_answers(epsilon)
    assert np.allclose(probability.sum(axis=1), 1)
    reported = probability[:, probability.max(axis=0) > 0]
    assert np.log(reported.max(axis=0) / reported.min(axis=0)).max() <= epsilon + 1e-9
    assert np.allclose(probability @ values * HYBRID_GRID, [-1, 0, 1], atol=2e-3)


def test_what_the_ledger_makes_of_tuples():
    rrp = UserTuples("tuples", how=Perturbation("rrp", 7.5), finding="theorem 1 fails for 2 of 6 words")
    assert guaranteed(rrp).epsilon == math.inf
    assert rrp.params()["finding"] == "theorem 1 fails for 2 of 6 words"
    assert "the topics of tuples are not perturbed" in rrp.assumptions
    assert guaranteed(UserTuples("tuples", how=Perturbation("krr", 7.5))).epsilon == math.inf
    hm = UserTuples("tuples", how=Perturbation("hm", 5.0))
    assert guaranteed(hm, times=20).epsilon == pytest.approx(100.0)  # a user pays in every round
    with pytest.raises(Unreleased, match="by user-tuples is no way out"):
        hm.apply(np.zeros(1), None)


def test_what_the_ledger_makes_of_reports():
    reports = UserReports("reports", channel=Channel("krr", 4.0, 2949), tokens=10)
    assert guaranteed(reports).epsilon == pytest.approx(40.0)
    assert guaranteed(reports, delta=1e-6).epsilon == pytest.approx(16.0, abs=0.1)  # most reports say nothing
    assert "a user reports 10 tokens at most" in reports.assumptions
    assert guaranteed(UserReports("reports", channel=Channel("subset", 2.0, 50), tokens=1)).epsilon == pytest.approx(2)


def test_an_event_of_a_given_epsilon():
    from tertulia.privacy.events import pure_epsilon

    assert pure_epsilon(pure_event(3.0), SUBSTITUTE) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"kind": "rr"}, "mechanism = 'rr'"),
        ({"kind": "rrp", "epsilon": 0.0}, "epsilon = 0.0"),
        ({"kind": "rrp", "epsilon": 5.0, "delta": 1.0}, "delta = 1.0"),
        ({"kind": "rrp", "epsilon": 5.0, "gamma": 0.5}, "gamma = 0.5"),
    ],
)
def test_wrong_parameters(wrong, says):
    with pytest.raises(ConfigError, match=says):
        Perturbation(**wrong)


def test_findings_say_what_holds_for_a_word():
    phi = np.array([[0.6, 0.35, 0.04, 0.01]])

    def says(kind, once):
        return finding_text(Perturbation(kind, 7.5), phi, np.ones(1), once)

    assert says("rrp", True).startswith("theorem 1 fails for 2 of 4 words, 2 are in no topic's head")
    assert "no epsilon at delta 0, delta 0.950 at the claimed epsilon" in says("rrp", True)
    assert "2 of 4 words are ever reported" in says("tkrr", True)
    assert says("krr", True) == "the word of one token alone, drawn once: epsilon 7.5"
    assert says("krr", False) == "the word of one tuple alone, drawn anew each time: epsilon 7.5"
    assert "in each round" in says("hm", False)
