"""One run, one counting: `check`, `privacy`, `disclosures`, the report and the live page say the same of what left."""

import html
import json
import re
from collections import Counter

import matplotlib.pyplot as plt
import pytest

from helpers.drawn import labels
from helpers.texts import STEMS, mixed
from tertulia.federation.party.answer_log import TRAVELLED
from tertulia.privacy.mechanisms.things import plain_words
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import hosts_of, open_party
from tertulia.runs.release_counts import plan_and_fact_or_none
from tertulia.view import console
from tertulia.view.console import size
from tertulia.view.plots.privacy import draw_privacy, things_of
from tertulia.view.tables import NOT_RECORDED, grouped
from tertulia.view.verdicts import often, summary_of
from tertulia.view.watch.releases import LedgerMonitor

MODES = {
    "clear": '[method.vocabulary]\nmode = "union"\nmin_documents = 1\nmax_share = 1.0\n',
    "sound": f'mode = "sound"\nepsilon = 4.0\n[method.vocabulary]\nmode = "public"\nwords = {json.dumps(STEMS)}\n',
}


@pytest.fixture(params=MODES)
def project(request, tmp_path, tertulia):
    for i, name in enumerate(("north", "south")):
        rows = [json.dumps({"id": f"{name}{i}", "text": text}) + "\n" for i, text in enumerate(mixed(i, 30))]
        (tmp_path / f"{name}.jsonl").write_text("".join(rows))
    parties = "".join(f'[parties.{name}]\npath = "{name}.jsonl"\nid = "id"\n' for name in ("north", "south"))
    (tmp_path / "run.toml").write_text(
        f'directory = "run"\nheldout = 0.2\n[method]\nname = "consensus"\ntopics = 2\nrounds = 4\nsweeps = 1\n'
        f"start_sweeps = 1\nevaluate = true\n{MODES[request.param]}{parties}"
    )
    code, said, why = tertulia("check", tmp_path / "run.toml", "--json")
    assert code == 0, why
    assert tertulia("run", tmp_path / "run.toml")[0] == 0
    return Run.open(tmp_path / "run"), json.loads(said)


def test_all_pages_count_alike(project, tertulia, tmp_path):
    run, checked = project
    host = open_party(run, "north")
    announced: Counter = Counter()
    for row in checked["disclosed"]:
        if row["party"] == "north":
            announced[row["what"]] += row["times"]
    privacy = json.loads(tertulia("privacy", run.directory, "--json")[1])
    said = {row["what"]: row for row in privacy["privacy"] if row["party"] == "north"}
    assert {what: row["releases"] for what, row in said.items()} == announced

    disclosed = {row["what"]: row for row in grouped(hosts_of(run)) if row["party"] == "north"}
    assert {what: row["times"] for what, row in disclosed.items()} == announced
    assert {what: row["bytes"] for what, row in disclosed.items()} == {w: row["bytes"] for w, row in said.items()}
    rows = json.loads(tertulia("disclosures", run.directory, "--json")[1])["disclosures"]
    arrays = Counter(row["what"] for row in rows if row["party"] == "north" and row["shape"] is not None)
    assert {what: row["arrays"] for what, row in said.items() if row["arrays"]} == arrays
    for what, row in disclosed.items():
        own = [one for one in rows if (one["party"], one["what"]) == ("north", what)]
        assert sum(one["bytes"] for one in own) == row["bytes"]
        assert sum(one["bytes_before_packing"] for one in own) == row["before packing"]
    assert arrays["topic-word counts"] == 2 * announced["topic-word counts"] == 8

    assert {one.what: (one.announced, one.took_place) for one in plan_and_fact_or_none(host)} == {
        what: (times, times) for what, times in announced.items()
    }
    tertulia("report", run.directory, "--party", "north", "-o", tmp_path / "north.html")
    page = re.sub(r"<[^>]+>", "|", html.unescape((tmp_path / "north.html").read_text()))
    for what, row in said.items():
        often = "once" if row["releases"] == 1 else f"{row['releases']} times"
        shown = re.search(re.escape(plain_words(what)) + r"\|+" + often + r"\|+([^|(]+)", page)
        assert shown is not None, what
        assert shown[1].strip() == (size(row["bytes"]) if row["arrays"] else "stays here")
    lines = "\n".join(summary_of(host, 1e-6).lines(run.id))
    counted = "expected counts by topic +6" if "expected counts by topic" in said else "topic-word counts +4"
    assert re.search(f"{counted} times", lines)  # of many kinds of things the summary has the first

    dots = LedgerMonitor(host.directory, run.id).releases("north")
    leaving = {what: row for what, row in said.items() if row["arrays"]}
    assert Counter(dot["what"] for dot in dots) == {what: row["releases"] for what, row in leaving.items()}
    for what, row in leaving.items():
        assert sum(dot["bytes"] for dot in dots if dot["what"] == what) == row["bytes"]


def notes_of(directory):
    """The label and the note of each bar of the plot of what left."""
    axes = draw_privacy(None, directory)
    drawn = dict(zip(labels(axes.yaxis), (text.get_text() for text in axes.texts), strict=True))
    plt.close("all")
    return drawn


def test_the_plot_counts_and_writes_epsilon_as_the_pages_do(project):
    run, _ = project
    notes = notes_of(run.directory)
    found = {(row["party"], row["what"]): row for row in grouped(hosts_of(run))}
    for what, note in notes.items():
        row = found["north", what]
        times = {found[party, what]["times"] for party in run.parties}
        assert len(times) == 1
        assert f", {often(row['times'])} each" in note
        sent = sum(found[party, what]["bytes"] for party in run.parties)
        assert note.startswith(size(sent) if sent else "stays at the parties")
        assert len(re.findall("epsilon", note)) == len(re.findall(r"epsilon [\d.]+ at delta [\de.-]+ of a word", note))
    assert "4 times each" in notes["topic-word counts"]


def test_bytes_that_were_not_recorded_are_at_most_those_before_packing(project, tertulia, monkeypatch):
    run, _ = project
    monkeypatch.setattr(console.output, "width", 400)
    (run.party_directory("south") / TRAVELLED).unlink()  # as of a run that is not durable
    rows = {(row["party"], row["what"]): row for row in grouped(hosts_of(run))}
    north, south = (rows[party, "topic-word counts"] for party in ("north", "south"))
    assert south["bytes"] == NOT_RECORDED
    for command in ("privacy", "disclosures"):
        said = json.loads(tertulia(command, run.directory, "--json")[1])[command]
        own = [row for row in said if (row["party"], row["what"]) == ("south", "topic-word counts")]
        assert {row["bytes"] for row in own} == {None}
        assert sum(row["bytes_before_packing"] for row in own) == south["before packing"]
        code, out, err = tertulia(command, run.directory, "--all")
        assert (code, NOT_RECORDED in out) == (0, True), err
    most = north["bytes"] + south["before packing"]
    assert notes_of(run.directory)["topic-word counts"].startswith(f"up to {size(most)}, 4 times each")


def test_parties_that_answered_less_often_are_a_range():
    rows = [
        {"party": party, "what": "counts", "verb": "sum", "bytes": 10, "before packing": 20, "mechanism": "clear",
         "masked": False, "unit": "token", "releases": times, "real epsilon": "infinite (non-private)", "delta": 1e-6}
        for party, times in (("north", 8), ("south", 5))
    ]  # fmt: skip
    assert [thing.note for thing in things_of(rows)] == ["20 B, 5 to 8 times each, no bound"]
    assert [thing.note for thing in things_of(rows[:1])] == ["10 B, 8 times, no bound"]


def test_bytes_are_those_that_travelled(project):
    run, _ = project
    commit, _ = run.journal().last()
    for host in hosts_of(run):
        asked = [facts["bytes"] for facts in commit.history if facts["bytes"]]  # public words need no question
        up = sum(sent[host.config.id][1] for sent in asked)
        rows = [row for row in grouped([host]) if row["what"] != "reports of tokens"]
        assert sum(row["bytes"] for row in rows) == up
        assert 0 < up < sum(row["before packing"] for row in rows) + 5000


def test_no_epsilon_stands_without_its_delta_and_check_speaks_of_what_will_be(project, tertulia, tmp_path):
    run, _ = project
    pure = "\n".join(summary_of(open_party(run, "north"), 0.0).lines(run.id))
    for page in (tertulia("privacy", run.directory)[1], pure):
        for line in re.findall(r"epsilon \d[\d.]*(?:e[+-]?\d+)?(.{0,9})", page.replace("\n", " ")):
            assert line.startswith((", delta", ",  delta")), page
    config = tmp_path / "run.toml"
    config.write_text(config.read_text().replace('directory = "run"', 'directory = "next"'))
    said = " ".join(tertulia("check", config)[1].split())
    assert " left in the clear" not in said
    assert "delta" in said
