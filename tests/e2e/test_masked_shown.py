"""Masked releases, and notes among members, can be told apart from those that the server reads: on every page."""

import io
import json
import re
import shutil

import pytest
from rich.console import Console

from helpers.sites import Sites
from helpers.texts import STEMS, halves
from tertulia.cli.outputs import OUTPUTS
from tertulia.corpus import Corpus
from tertulia.federation.codec import decode
from tertulia.federation.messages import DISCLOSURES, Inquiry
from tertulia.privacy.policy import Policy
from tertulia.privacy.policy_lines import lines_needed
from tertulia.runs.budgets import announced, planned_releases
from tertulia.runs.driver import finish, settings_of
from tertulia.runs.one_machine import begin, hosts_of
from tertulia.runs.release_counts import plan_and_fact_or_none
from tertulia.runs.settings import RunSettings
from tertulia.view import console
from tertulia.view.dry_run import CHANGED_LISTS, dry_run
from tertulia.view.pages.live import page_of
from tertulia.view.pages.report import report
from tertulia.view.plots.canvas import GREY, ORANGE, VERMILION
from tertulia.view.plots.privacy import things_of
from tertulia.view.tables import readers, thing_rows
from tertulia.view.watch import monitor
from tertulia.view.watch.terminal import WIDTH, view

MASKED, MEMBERS = "masked: only the total over at least 3 parties", "members only: the server passes it on, and cannot"
TOTALS = {
    "indicators of words", "document counts of agreed words", "number of documents", "expected topic-word counts",
    "held-out log likelihood",
}  # fmt: skip
PARTIES = {name: halves(seed, 24) for seed, name in enumerate(("north", "south", "east"))}
METHOD = {
    "name": "pctd", "topics": 2, "rounds": 2, "vocabulary": {"mode": "listed", "words": STEMS, "max_share": 1.0}
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run with secure sums."""
    place, terms = tmp_path_factory.mktemp("masked") / "run", {"secure": True}
    settings = RunSettings(directory=str(place), method=METHOD, federation=terms, heldout=0.2)
    found = begin(settings, {party: Corpus.from_texts(texts) for party, texts in PARTIES.items()})
    finish(found)
    return found


def test_disclosures_say_who_reads_what(run, tertulia):
    code, out, err = tertulia("disclosures", run.directory, "--json")
    assert code == 0, err
    rows = json.loads(out)["disclosures"]
    OUTPUTS["disclosures"].model_validate({"disclosures": rows})
    assert {row["what"] for row in rows if row["masked"]} == TOTALS
    assert {row["seen"] for row in rows if row["masked"]} == {MASKED}
    others = {row["what"]: row["seen"] for row in rows if not row["masked"]}
    assert others["names of agreed words"] == "singly by the server"
    assert others["tags of words"].startswith(MEMBERS)
    said = readers(rows)
    assert any(one.startswith(f"seen {MASKED}: indicators of words") for one in said)
    code, out, err = tertulia("disclosures", run.directory, "--all")
    assert (code, "masked:" in out, "True" in out) == (0, True, False), err


def test_the_summary_has_masked_things_apart(run, tertulia):
    code, out, err = tertulia("privacy", run.directory)
    assert code == 0, err
    assert re.search(r"indicators of words +once +\S+ \w+ +masked: totals only\n", out)
    assert re.search(r"tags of words +once +\S+ B +members only\n", out)
    assert re.search(r"names of agreed words +once +\S+ B +in clear\n", out)
    assert "only words that several members have" in out
    code, out, err = tertulia("privacy", run.directory, "--json")
    rows = json.loads(out)["privacy"]
    assert {row["what"] for row in rows if row["masked"]} == TOTALS
    counts = next(row for row in rows if row["what"] == "expected topic-word counts")
    assert counts["remarks"] == [MASKED, "expected topic-word counts left masked, without noise"]
    code, out, err = tertulia("privacy", run.directory, "--all")
    assert (code, "masked:" in out, "True" in out) == (0, True, False), err


def test_the_officers_page_names_readers(run):
    text = re.sub(r"<[^>]+>", " ", report(run.directory, "north"))
    text = " ".join(text.split())
    assert "masked, without noise nobody: it is masked, and the server learns only the total over at least 3" in text
    assert "for members only the other members; the server passes it on, and cannot read it" in text
    assert "Plan and ledger agree" in text


def test_the_plan_of_a_run_with_secure_sums_is_compared_with_its_ledger(run):
    compared = plan_and_fact_or_none(hosts_of(run)[0])
    assert {one.what for one in compared} == {*TOTALS, "tags of words", "names of agreed words"}
    assert all(one.announced == one.took_place for one in compared)


def test_the_live_page_and_the_terminal_too(run, tmp_path):
    now = monitor(run.directory)()
    levels = {one["what"]: one["level"] for one in now["releases"]}
    assert {what for what, level in levels.items() if level == "masked"} == TOTALS - {"number of documents"}
    assert levels["tags of words"] == "members"
    assert levels["names of agreed words"] == "clear"
    assert levels["number of documents"] == "free"
    assert "masked: totals only" in page_of(json.dumps(now))  # in its script
    terminal = Console(file=io.StringIO(), width=WIDTH)
    terminal.print(view(now))
    assert "masked: totals only" in terminal.file.getvalue()
    server = tmp_path / "server"
    shutil.copytree(run.directory, server, ignore=shutil.ignore_patterns("parties"))
    assert {one["level"] for one in monitor(server)()["releases"]} == {"masked"}


def test_the_plot_has_a_colour_for_them(run):
    things = {thing.what: thing.colour for host in hosts_of(run) for thing in things_of(thing_rows(host, 1e-6))}
    assert things["expected topic-word counts"] == things["tags of words"] == ORANGE
    assert things["names of agreed words"] == VERMILION
    assert things["number of documents"] == GREY


def test_the_server_does_not_learn_the_sizes_of_notes(run):
    host = hosts_of(run)[0]
    rows = decode(host.answer(Inquiry(run.id, DISCLOSURES).to_bytes())).reply
    notes = [row for row in rows if row["verb"] == "relay"]
    assert notes
    assert all((row["shape"], row["bytes"], row["masked"]) == (None, 0, False) for row in notes)
    sums = [row for row in rows if row["verb"] == "sum"]
    assert sums
    assert all(row["shape"] is not None and row["bytes"] and row["masked"] for row in sums)


# --- before a run -----------------------------------------------------------------------------------------------------


def test_a_dry_run_says_it_before(run):
    found = dry_run(settings_of(run), {host.config.id: host.corpus for host in hosts_of(run)})
    rows = [row for row in found["disclosed"] if row["party"] == "north"]
    assert {row["what"] for row in rows if row["masked"]} == TOTALS
    assert {row["seen"] for row in rows if row["masked"]} == {MASKED}
    assert next(row["seen"] for row in rows if row["what"] == "tags of words").startswith(MEMBERS)
    (said,) = found["remarks"]  # sums have no weights
    assert said.startswith("Secure sums: the server, alone or together with one member, learns totals over at least 3")


def test_a_policy_that_allows_no_single_reply_allows_masked_ones():
    method = {"name": "pctd", "mode": "paper", "vocabulary": {"mode": "private", "epsilon": 3.0}}
    strict = Policy(allow_single=False, allow_clear=True)
    needed = {}
    for secure in (False, True):
        settings = RunSettings(method=method, federation={"secure": secure})
        planned = announced(settings, "north", strict)
        sums = [one for one in planned_releases(planned, "north") if one.verb == "sum"]
        needed[secure] = lines_needed(strict, sums)
    assert needed == {False: {"allow_single": True}, True: {}}


@pytest.mark.parametrize(("method", "secure", "says"), [("gfedntm", True, 1), ("gfedntm", False, 0), ("pctd", True, 0)])
def test_check_says_what_changed_lists_tell_where_replies_have_weights(method, secure, says, tmp_path, tertulia):
    mode = "common" if secure else "union"
    parties = [f'[parties.{name}]\npath = "{name}.jsonl"' for name in PARTIES]
    for name, texts in PARTIES.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    settings = f'[method]\nname = "{method}"\ntopics = 2\nvocabulary = {{ mode = "{mode}" }}\n'
    terms = f"[federation]\nsecure = {str(secure).lower()}\n"
    (tmp_path / "run.toml").write_text("\n".join([settings, terms, *parties]))
    code, out, err = tertulia("check", tmp_path / "run.toml")
    assert code == 0, err
    assert " ".join(out.split()).count(CHANGED_LISTS) == says
    code, out, err = tertulia("check", tmp_path / "run.toml", "--json")
    facts = json.loads(out)
    OUTPUTS["check"].model_validate(facts)
    assert facts["remarks"][1:] == [CHANGED_LISTS] * says


def test_approve_says_it_too(tmp_path, capsys):
    method = 'name = "gfedntm"\ntopics = 2\nvocabulary = { mode = "common" }\n'
    sites = Sites(tmp_path, method=method, secure=True)
    sites.join(*sites.server.file.members)
    seen = sites.consider("north")
    roster = seen.proposal.roster
    console.print_dry_run(dry_run(seen.settings, {seen.name: seen.corpus}, roster))  # as `tertulia approve` does
    shown = " ".join(capsys.readouterr().out.split())
    assert CHANGED_LISTS in shown
    assert "totals over at least 3 of the 3 parties" in shown  # and not of the one whose documents are read
    assert "federation.users │ anywhere" in shown
