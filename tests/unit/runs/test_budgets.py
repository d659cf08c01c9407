"""Announced releases, caps and budgets: checked before a run, and nothing is charged."""

import pytest

from tertulia.corpus import Corpus
from tertulia.errors import PolicyRefusal
from tertulia.privacy.home import open_home
from tertulia.privacy.policy import Policy
from tertulia.runs.budgets import announced, check_budgets, check_caps, forecast, left_of, open_ledger, planned_releases
from tertulia.runs.settings import RunSettings

WORDS = ("fever", "cough", "pain", "rest")
BUDGET = '[[budget]]\nunit = "token"\nadjacency = "substitute"\nepsilon = {}\ndelta = 0.0\n'
DOCUMENTS = Corpus.from_texts(["fever and cough", "pain rest fever"])


def private(home=None, epsilon=2.0):
    method = {"name": "consensus", "mode": "sound", "epsilon": epsilon, "topics": 2, "rounds": 2,
              "vocabulary": {"mode": "public", "words": WORDS}}  # fmt: skip
    return RunSettings(method=method, heldout=0.0, parties={"north": {"path": "x.txt", "home": home}})


def reported_epsilon(settings):
    (reports,) = [one for one in announced(settings, "north") if one.verb == "reports"]
    return reports.mechanism.channel.epsilon


def test_a_partys_own_epsilon_only_lowers_the_methods():
    assert reported_epsilon(private(epsilon=2.0)) == 2.0
    for own, expected in ((0.5, 0.5), (9.0, 2.0)):
        settings = private(epsilon=2.0)
        parties = {"north": settings.parties["north"].replace(epsilon=own)}
        assert reported_epsilon(settings.replace(parties=parties)) == expected


def test_everything_planned_is_one_release_each():
    planned = announced(private(), "north")
    releases = planned_releases(planned, "north")
    assert [release.what for release in releases] == [one.mechanism.what for one in planned if one.times]
    assert {release.party for release in releases} == {"north"}


@pytest.mark.parametrize("rule", ["max_topics = 1", "max_words = 3", "max_cells = 7"])
def test_caps_name_their_rule(rule):
    with pytest.raises(PolicyRefusal, match=f"{rule.split()[0]}.*the policy allows {rule.split()[-1]}"):
        check_caps(private().method, Policy.parse(rule))


def test_settings_at_the_caps_are_allowed():
    check_caps(private().method, Policy.parse("max_topics = 2\nmax_words = 4\nmax_cells = 8"))


def test_a_budget_without_room_is_refused_before_anything_is_charged(tmp_path):
    home = tmp_path / "home"
    open_home(home).ledger.close()
    settings, before = private(str(home)), (home / "ledger.sqlite").read_bytes()
    check_budgets(settings, "north", Policy.parse(BUDGET.format(2.0)), lambda: DOCUMENTS)
    with pytest.raises(PolicyRefusal, match=r"the whole run at party 'north' would bring epsilon to 2 .*beyond 1\.9"):
        check_budgets(settings, "north", Policy.parse(BUDGET.format(1.9)), lambda: DOCUMENTS)
    assert (home / "ledger.sqlite").read_bytes() == before
    assert open_ledger(str(home)).releases() == []


def test_without_budgets_no_document_is_read():
    check_budgets(private(), "north", None, pytest.fail)
    check_budgets(private(), "north", Policy.parse(""), pytest.fail)


def test_a_forecast_shows_what_is_spent_before_and_after(tmp_path):
    (one,) = forecast(private(str(tmp_path)), "north", Policy.parse(BUDGET.format(8.0)), DOCUMENTS)
    assert (one.spent, one.after) == (0.0, pytest.approx(2.0))
    assert one.remarks == ("reports of tokens: 2 of 2 documents are new or edited",)


def test_all_of_a_budget_is_left_where_nothing_was_charged(tmp_path):
    assert left_of(Policy.parse(BUDGET.format(8.0)), tmp_path) == {("token", "substitute"): 8.0}
    assert left_of(Policy.parse(""), tmp_path) == {}
    assert list(tmp_path.iterdir()) == []
