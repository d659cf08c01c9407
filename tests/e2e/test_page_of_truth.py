"""Claimed and real epsilon of a document that is there or not, with secure sums and without, on all pages."""

import html
import json
import re

import pytest

from helpers import shared_counts
from helpers.shared_counts import DELTA, EPSILON, epsilon_of_shift
from helpers.texts import mixed
from tertulia.cli.outputs import OUTPUTS
from tertulia.corpus.builder import from_texts
from tertulia.privacy.assumptions import AT_ONE_PARTY
from tertulia.privacy.mechanisms.gaussian import sigma_for
from tertulia.runs.one_machine import begin, finish
from tertulia.runs.settings import RunSettings
from tertulia.view.dry_run import dry_run
from tertulia.view.pages.report import report
from tertulia.view.totals import DOCUMENTS_AT_ONE, USERS_ANYWHERE, USERS_AT_ONE
from tertulia.view.verdicts import LINES, WIDTH, level_of, summaries
from tertulia.view.watch.run import verdict_of_plan_or_none

MEMBERS = ("north", "south", "east")
SHARES = 2  # of three members one may be silent or collude
PRESENCE = "a document, there or not"
SIGMA = sigma_for(EPSILON, DELTA, rounds=1)


def settings_of(directory, policy=None, **federation):
    return RunSettings(
        directory=str(directory), heldout=0.0, federation=federation,
        method={"name": "custom", "module": shared_counts.__name__, "train": "train"},
        parties={party: {"policy": str(policy)} for party in MEMBERS} if policy else {},
    )  # fmt: skip


def begin_and_finish(settings, users=None):
    corpora = {party: from_texts(mixed(i, 30), users=users) for i, party in enumerate(MEMBERS)}
    run = begin(settings, corpora)
    finish(run)
    return run


@pytest.fixture(scope="module", params=[True, False], ids=["masked", "plain"])
def run(request, tmp_path_factory):
    settings = settings_of(tmp_path_factory.mktemp("truth") / "run", secure=request.param)
    return begin_and_finish(settings), request.param


def rows_of(printed):
    OUTPUTS["privacy"].model_validate(printed)
    return {row["of"]: row for row in printed["totals"] if row["party"] == "north"}


def test_the_numbers_of_totals_and_of_single_replies(run, tertulia):
    found, secure = run
    code, out, err = tertulia("privacy", found.directory, "--json")
    assert code == 0, err
    row = rows_of(json.loads(out))[PRESENCE]
    assert (row["claimed_epsilon"], row["claimed_in"], row["claimed_delta"]) == (EPSILON, "the plan", DELTA)
    assert row["real_epsilon"] == pytest.approx(EPSILON, rel=2e-3)
    singly = epsilon_of_shift(SHARES**0.5 if secure else 1.0, SIGMA)
    assert row["single_reply_epsilon"] == pytest.approx(singly, rel=2e-3)
    assert (row["adjacency"], row["level"], row["members"]) == ("add-remove", "good", 1)


def test_the_verdict_is_of_presence_and_green(run):
    found, secure = run
    page = summaries(found, DELTA)[0]
    assert page.verdict.startswith("PROTECTED. Whether a document is there or not can be denied (epsilon 3, delta")
    assert f"replaced by another: {epsilon_of_shift(2.0, SIGMA):.4g}" in page.verdict
    assert level_of(page.verdict) == "good"
    lines = page.lines(found.id)
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= WIDTH
    said = " ".join(" ".join(lines).split())
    single = f"single replies {PRESENCE}, has epsilon {epsilon_of_shift(SHARES**0.5, SIGMA):.4g}"
    assert (single in said) == secure


def test_the_officers_page_shows_both_in_colours(run):
    found, secure = run
    page = html.unescape(report(found.directory, "north"))
    (row,) = re.findall(r"<tr><td[^>]*>(?:<[^>]*>)*a document, there or not.*?</tr>", page)
    assert "epsilon 3 (the plan, delta 1e-06)" in row
    colours = re.findall(r'class="(good|weak|bad)">([\d.]+)<', row)
    assert [colour for colour, _ in colours] == ["good", "weak" if secure else "good"]
    assert ("parties share their noise" in page) == secure
    assert ("This party adds all of its noise itself" in page) != secure


def test_the_plan_has_the_same_verdict_before_anything_leaves(run):
    found, secure = run
    settings = RunSettings.model_validate({**found.config, "federation": {"secure": secure}})
    said = verdict_of_plan_or_none(settings, MEMBERS)
    assert said["level"] == "good"
    assert "Whether a document is there or not can be denied (epsilon 3" in said["text"]


@pytest.mark.parametrize("users", ["anywhere", "one_party"])
def test_a_user_at_several_parties_on_all_pages(users, tmp_path, tertulia):
    """Two documents of each user at a party: plan, ledger, summary and page have the same numbers."""
    (tmp_path / "policy.toml").write_text("max_documents_per_user = 2\n")
    settings = settings_of(tmp_path / "run", tmp_path / "policy.toml", secure=True, users=users)
    named = [f"user {i // 2}" for i in range(30)]
    run = begin_and_finish(settings, named)
    corpora = {party: from_texts(mixed(i, 30), users=named) for i, party in enumerate(MEMBERS)}
    planned = dry_run(settings, corpora)
    here, everywhere = "a user, there or not", "a user, there or not, at all 3 parties"
    assert planned["terms"]["federation.users"] == users
    sentence = USERS_ANYWHERE.format(3) if users == "anywhere" else USERS_AT_ONE
    assert {DOCUMENTS_AT_ONE, sentence} <= set(planned["remarks"])
    of_plan = {row["of"]: row for row in planned["totals"] if row["party"] == "north"}
    page = summaries(run, DELTA)[0]
    found = {row["of"]: row for row in page.totals}
    expected = {here: (2.0, 2 * SHARES**0.5)}
    if users == "anywhere":
        expected[everywhere] = (2 * (3 * SHARES) ** 0.5,) * 2
    assert [of for of in found if of.startswith("a user, there")] == list(expected)
    for of, shifts in expected.items():
        for name, shift in zip(("real epsilon", "single reply epsilon"), shifts, strict=True):
            assert float(found[of][name]) == pytest.approx(epsilon_of_shift(shift, SIGMA), rel=2e-3)
            assert of_plan[of][name] == found[of][name]
    lines = page.lines(run.id)
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= WIDTH
    said = " ".join(" ".join(lines).split())
    total = found.get(everywhere, found[here])["real epsilon"]
    assert f"{everywhere if users == 'anywhere' else here} epsilon {total}, delta" in said
    assert (f"a user at all 3 parties: {total}" in said) == (users == "anywhere")
    assert (AT_ONE_PARTY in said) == (users == "one_party")
    shown = html.unescape(report(run.directory, "north"))
    assert sentence.replace("A user", "A person").replace("a user", "a person").replace("no user", "no person") in shown
    assert ("a person, there or not, at all 3 parties" in shown) == (users == "anywhere")
    output = json.loads(tertulia("privacy", run.directory, "--json")[1])
    assert max(row["members"] for row in rows_of(output).values()) == (3 if users == "anywhere" else 1)
