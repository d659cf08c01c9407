"""One run, one counting: `check`, `privacy`, `disclosures`, the report and the live page say the same of what left."""

import html
import json
import re
from collections import Counter

import pytest

from helpers.texts import STEMS, mixed
from tertulia.privacy.mechanisms.things import plain_words
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import hosts_of, open_party
from tertulia.runs.release_counts import plan_and_fact_or_none
from tertulia.view.console import size
from tertulia.view.tables import grouped
from tertulia.view.verdicts import summary_of
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
    assert re.search(r"topic-word counts +4 times", lines)

    dots = LedgerMonitor(host.directory, run.id).releases("north")
    leaving = {what: row for what, row in said.items() if row["arrays"]}
    assert Counter(dot["what"] for dot in dots) == {what: row["releases"] for what, row in leaving.items()}
    for what, row in leaving.items():
        assert sum(dot["bytes"] for dot in dots if dot["what"] == what) == row["bytes"]


def test_bytes_are_those_that_travelled(project):
    run, _ = project
    commit, _ = run.journal().last()
    for host in hosts_of(run):
        up = sum(facts["bytes"][host.config.id][1] for facts in commit.history)
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
