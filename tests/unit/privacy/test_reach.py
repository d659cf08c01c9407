"""One user at several parties: exact costs over all members, and what a ledger records of the assumption."""

import json
import math
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from helpers.attacks_noise import STRICT, ask, corpus_of, count, party, report
from helpers.mechanisms import Concentrated
from helpers.shared_counts import DELTA, epsilon_of_shift
from tertulia.federation.plan import Plan
from tertulia.federation.secure.lists import honest_survivors
from tertulia.kernels.reports.channel import Channel
from tertulia.privacy.accounting import cost
from tertulia.privacy.adjacency import Bounds
from tertulia.privacy.assumptions import AT_ONE_PARTY
from tertulia.privacy.mechanisms import Adjacency, Clear, DiscreteLaplace, Public, Unit
from tertulia.privacy.mechanisms.gaussian import sigma_for
from tertulia.privacy.mechanisms.shared_gaussian import SharedGaussian
from tertulia.privacy.mechanisms.token_reports import TokenReports
from tertulia.privacy.reach import AS_HERE, NOT_RECORDED, Reach, spread_of
from tertulia.privacy.releases import Release
from tertulia.privacy.sampled import sampled_event

SIGMA, MEMBERS = 16.0, ("north", "south", "east")
EVERYWHERE, SINGLY = Reach(everywhere=True), Reach(singly=True)
TWO = "max_tokens_per_document = 2\nmax_documents_per_user = 1\n"


def gaussian(noise_multiplier):
    return {"type": "GaussianDpEvent", "noise_multiplier": noise_multiplier}


GAUSSIAN = gaussian(SIGMA)


def release(mechanism, user_at, *, masked=True):
    return Release.of(
        mechanism, id="a", party="north", round=1, step="m:s", verb="sum", message_hash="", x=np.zeros(4),
        masked=masked, user_at=user_at,
    )  # fmt: skip


def shared(user_at, shares, *, masked=True, unit=Unit.USER):
    mechanism = SharedGaussian("sums", sensitivity=1.0, sigma=SIGMA, bits=12, shares=shares, unit=unit)
    return release(mechanism, user_at, masked=masked)


def epsilon(releases, reach=EVERYWHERE, unit=Unit.USER, bounds=None):
    return cost(releases, unit, Adjacency.ADD_REMOVE, DELTA, bounds, reach=reach).epsilon


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(("members", "shares"), [(2, 1), (3, 2), (5, 1), (10, 4)])
def test_gaussian_noise_over_all_members_costs_what_the_closed_form_says(members, shares, masked):
    one = shared(members, shares, masked=masked)
    assert epsilon([one]) == pytest.approx(epsilon_of_shift(math.sqrt(members * shares), SIGMA), rel=2e-3)
    rounds = [one, replace(one, id="b"), replace(one, id="c")]
    assert epsilon(rounds) == pytest.approx(epsilon_of_shift(math.sqrt(3 * members * shares), SIGMA), rel=2e-3)
    here = 1.0 if masked else math.sqrt(shares)
    assert epsilon([one], Reach()) == pytest.approx(epsilon_of_shift(here, SIGMA), rel=2e-3)


@pytest.mark.parametrize(("members", "shares"), [(3, 2), (4, 2), (5, 3), (10, 4), (50, 18)])
def test_no_total_shows_more_than_all_single_replies_do(members, shares):
    """Over h honest parties, a user at m of them: a shift of m, and noise of deviation sigma sqrt(h / shares)."""
    worst = max(m / math.sqrt(h / shares) for h in range(shares, members + 1) for m in range(1, h + 1))
    spread = spread_of(shared(members, shares), GAUSSIAN, EVERYWHERE)
    assert (spread.event, math.sqrt(spread.copies)) == (GAUSSIAN, pytest.approx(worst))


def test_documents_of_one_user_at_a_party_multiply_with_the_members():
    one = shared(3, 1, unit=Unit.DOCUMENT)
    found = epsilon([one], bounds=Bounds(documents_per_user=2))
    assert found == pytest.approx(epsilon_of_shift(2 * math.sqrt(3), SIGMA), rel=2e-3)


def test_pure_noise_adds_up():
    laplace = release(DiscreteLaplace("counts", 1, 0.5, unit=Unit.USER), 4)
    found = cost([laplace], Unit.USER, Adjacency.ADD_REMOVE, 0.0, reach=EVERYWHERE)
    assert (found.epsilon, AS_HERE in found.assumptions) == (2.0, True)
    reports = TokenReports("reports of tokens", channel=Channel("krr", 1.0, 50))
    found = cost([release(reports, 3)], Unit.USER, Adjacency.SUBSTITUTE, 0.0, Bounds(7, 2), reach=EVERYWHERE)
    assert found.epsilon == pytest.approx(3 * 7 * 2)


def test_a_share_of_noise_on_a_sample_is_less_noise_on_that_sample():
    event, one = sampled_event(0.1, SIGMA), shared(3, 2)
    assert spread_of(one, event, Reach()) == (event, 1, "")
    assert spread_of(one, event, SINGLY) == (sampled_event(0.1, SIGMA / math.sqrt(2)), 1, "")
    assert spread_of(one, event, EVERYWHERE) == (sampled_event(0.1, SIGMA / math.sqrt(2)), 3, "")


def test_nothing_is_guessed():
    unknown = cost([shared(None, 1)], Unit.USER, Adjacency.ADD_REMOVE, DELTA, reach=EVERYWHERE)
    assert unknown.epsilon == math.inf
    assert any(NOT_RECORDED in one for one in unknown.assumptions)
    clear = cost([release(Clear("counts"), 3)], Unit.USER, Adjacency.ADD_REMOVE, DELTA, reach=EVERYWHERE)
    assert clear.epsilon == math.inf
    other = release(Concentrated("moments", rho=0.02, unit=Unit.USER), 3)
    assert spread_of(replace(other, params={"shares": 2}), other.event, EVERYWHERE).copies == 6
    laplace = release(DiscreteLaplace("counts", 1, 0.5, unit=Unit.USER), 3)
    assert epsilon([replace(laplace, params={"shares": 2})]) == math.inf


def test_at_one_party_as_declared_nothing_adds_up_and_users_totals_say_so():
    one = shared(1, 2)
    assert AT_ONE_PARTY in one.assumptions
    found = cost([one], Unit.USER, Adjacency.ADD_REMOVE, DELTA, reach=EVERYWHERE)
    assert found.epsilon == epsilon([one], Reach())
    assert AT_ONE_PARTY in found.assumptions
    assert AS_HERE not in found.assumptions
    documents = cost([one], Unit.DOCUMENT, Adjacency.ADD_REMOVE, DELTA)
    assert AT_ONE_PARTY not in documents.assumptions  # it says nothing about documents


@pytest.mark.parametrize("mechanism", [Clear("counts"), Public("number of documents")], ids=["clear", "public"])
def test_what_costs_nothing_or_everything_assumes_nothing_of_users(mechanism):
    assert AT_ONE_PARTY not in release(mechanism, 1).assumptions
    assert "user_at" not in json.loads(release(mechanism, 3).to_json())


# --- what a party's ledger holds -----------------------------------------------------------------------------------


def host_of(directory, members=MEMBERS, users="anywhere", run="run"):
    """A party of a run with a plan; in each run it has the same document."""
    plan = Plan("m", {}, None, tuple(members), (), terms={"federation.users": users})
    corpus = corpus_of(["ache burn"], ["a"], ["ann"])
    return party(directory / run, corpus, policy=STRICT + TWO, run=run, plan=asdict(plan))


def spent(host, reach=EVERYWHERE):
    return host.ledger.cost(Unit.USER, Adjacency.SUBSTITUTE, 0.0, bounds=host.policy.bounds, reach=reach)


@pytest.mark.parametrize(("users", "at"), [("anywhere", 3), ("one_party", 1)])
def test_each_charge_records_what_was_assumed(tmp_path, users, at):
    host = host_of(tmp_path, users=users)
    assert ask(host, count).kind == "ok"
    (row,) = [json.loads(row.entry.body) for row in host.ledger.entries() if row.entry.id.startswith("run/")]
    assert row["user_at"] == at
    assert (AT_ONE_PARTY in row["assumptions"]) == (at == 1)
    (again,) = host.ledger.releases()
    assert again.user_at == at
    assert Release.from_json(again.to_json()).user_at == at


def test_reports_of_an_earlier_run_count_for_the_members_of_a_later_one(tmp_path):
    """Two reports of epsilon 1, over one member as declared, then three, then five; nothing is reported again."""
    expected = {"first": ("one_party", MEMBERS, 2.0), "second": ("anywhere", MEMBERS, 6.0)}
    expected |= {"third": ("anywhere", "abcde", 10.0), "fourth": ("one_party", MEMBERS, 10.0)}
    for name, (users, members, total) in expected.items():
        host = host_of(tmp_path, members, users, run=name)
        entries = len(host.ledger.entries())
        assert ask(host, report).kind == "ok"
        assert spent(host).epsilon == pytest.approx(total), name
        assert spent(host, Reach()).epsilon == pytest.approx(2.0)
        assert (AT_ONE_PARTY in spent(host).assumptions) == (name == "first")
        grown = len(host.ledger.entries()) - entries
        assert grown == {"first": 3, "second": 2, "third": 2, "fourth": 1}[name]  # what is derived is an entry, too
    again = host_of(tmp_path, MEMBERS, run="fifth")
    assert spent(again).epsilon == pytest.approx(10.0)  # as it is on disk
    assert spent(again, Reach()).epsilon == pytest.approx(2.0)


def test_the_page_states_these_numbers():
    page = (Path(__file__).parents[3] / "docs" / "privacy.md").read_text()
    rows = re.findall(r"^\| (\d+) \| 3 \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.M)
    assert [int(n) for n, *_ in rows] == [3, 5, 10]
    for n, *stated in rows:
        sigma, shares = sigma_for(3.0, DELTA, rounds=1), honest_survivors(int(n))
        found = [
            epsilon([replace(shared(int(n), s), event=gaussian(sigma))], reach)
            for s, reach in ((shares, SINGLY), (1, EVERYWHERE), (shares, EVERYWHERE))
        ]
        assert [f"{one:.1f}" for one in found] == stated
