"""`tertulia report` in a real browser: from a file, without a network, with scripts on and off, light and dark."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from helpers.browser import PHONE, WIDE
from helpers.hostile import IMAGE, LONG, NAMES, SCRIPT, STEERING
from helpers.runs import prepared
from helpers.sites import Sites
from helpers.texts import PUBLIC, halves
from tertulia.corpus import Corpus, Vocabulary
from tertulia.models import Topics
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.scenarios import keep_rows
from tertulia.runs.settings import RunSettings
from tertulia.view.pages.report import report
from tertulia.view.pages.sections import parties_section

METHOD = {"name": "consensus", "topics": 3, "rounds": 3, "sweeps": 2, "start_sweeps": 2}
MOST = 300_000  # bytes
LOOKS = [(PHONE, False), (PHONE, True), (WIDE, False), (WIDE, True)]
BUDGET = 'allow_clear = true\n[[budget]]\nunit = "token"\nadjacency = "substitute"\nepsilon = 20.0\n'


@pytest.fixture(scope="module")
def clear(tmp_path_factory):
    """A run without noise, with what scenarios found beside it."""
    directory = tmp_path_factory.mktemp("clear") / "run"
    finish(prepared(directory, {"north": halves(1), "south": halves(2)}, METHOD, heldout=0.2))
    rows = [("alone", 40.0, 12.0, 13.0), ("federated", 14.0, 11.0, 12.5), ("pooled", 13.5, 11.5, 12.0)]
    shared = {"method": "lda", "topics": 3}
    keep_rows(directory, [
        {"scenario": name, **shared, "perplexity": every, "parties": {"north": north, "south": south}}
        for name, every, north, south in rows
    ])  # fmt: skip
    return directory


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A run with noise, and a budget at each party."""
    base = tmp_path_factory.mktemp("sound")
    (base / "policy.toml").write_text(BUDGET)
    method = {**METHOD, "mode": "sound", "epsilon": 5.0, "vocabulary": PUBLIC, "evaluate": False}
    own = {name: {"policy": str(base / "policy.toml"), "home": str(base / name)} for name in ("north", "south")}
    texts = {"north": Corpus.from_texts(halves(1)), "south": Corpus.from_texts(halves(2))}
    finish(begin(RunSettings(directory=str(base / "run"), method=method, parties=own), texts))  # with keys of their own
    return base / "run"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Parties and words whose names are attacks."""
    directory = tmp_path_factory.mktemp("hostile") / "run"
    texts = {name: halves(i) for i, name in enumerate(NAMES)}
    finish(prepared(directory, texts, METHOD, heldout=0.2))
    model = Topics.load(directory / "model")
    words = (*NAMES, *model.vocabulary.words[len(NAMES) :])
    rows = np.ones_like(model.topic_word) / len(words)
    Topics(rows, Vocabulary(words), model.alpha, model.beta, model.weights, provenance=model.provenance).save(
        directory / "model"
    )
    return directory


def written(path, content):
    assert len(content.encode()) <= MOST
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_the_projects_page_in_all_looks(clear, browser, tmp_path, width, dark):
    opened = browser.open(written(tmp_path / "report.html", report(clear)), width=width, dark=dark)
    opened.check(f"report-project-{width}-{'dark' if dark else 'light'}")
    assert opened.page.locator("section.card").count() == 3
    assert opened.page.get_by_role("heading", name="What the federation is worth").is_visible()


def test_a_simulation_with_secure_sums_is_rerun_by_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a run in a relative folder has no name of a federation above it
    parties = {name: halves(i) for i, name in enumerate(("north", "south", "west"))}
    method = {**METHOD, "vocabulary": {"mode": "common"}, "evaluate": False}
    finish(prepared("run", parties, method, federation={"secure": True}))
    assert "tertulia run run.toml" in report(Path("run"))
    assert "tertulia start" not in report(Path("run"))


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_the_officers_page_in_all_looks(sound, browser, tmp_path, width, dark):
    opened = browser.open(written(tmp_path / "report.html", report(sound, "north")), width=width, dark=dark)
    opened.check(f"report-officer-{width}-{'dark' if dark else 'light'}")
    assert opened.page.locator(".verdict.weak strong").inner_text() == "PROTECTED, WEAKLY"


def test_everything_can_be_read_with_scripts_off(clear, sound, browser, tmp_path):
    project = browser.open(written(tmp_path / "project.html", report(clear)), scripts=False)
    project.check("report-scripts-off")
    assert project.page.locator("svg[role=img] > title").count() == project.page.locator("svg[role=img]").count() >= 2
    for summary in project.page.get_by_text("the same as a table").all():
        if summary.is_visible():
            summary.click()  # which needs no script
    assert project.page.get_by_text("all parties together").first.is_visible()
    assert "<script" not in project.page.content()
    officer = browser.open(tmp_path / "project.html", scripts=False)
    officer.page.goto(written(tmp_path / "officer.html", report(sound, "north")).as_uri())
    said = officer.page.locator("main").inner_text()
    for wanted in (
        "Did not leave", "Plan and ledger agree", "hash chain intact", "signature", "stays here"
    ):  # fmt: skip
        assert wanted in said, wanted
    for jargon in ("adjacency", "verb", "mechanism"):
        assert jargon not in said


def test_hostile_names_are_text(hostile, browser, tmp_path):
    for name, party in (("project", None), ("officer", SCRIPT), ("long", LONG)):
        content = report(hostile, party)
        assert not STEERING.search(content)
        opened = browser.open(written(tmp_path / f"{name}.html", content), width=PHONE)
        opened.check(f"report-hostile-{name}")
        assert opened.page.title() != "taken"
        assert opened.page.locator("img").count() == 0
        assert (SCRIPT if name != "long" else "zzz") in opened.page.locator("body").inner_text()
    assert IMAGE[:20] in browser.open(tmp_path / "project.html").page.locator("body").inner_text()


def test_it_prints_without_what_only_a_screen_needs(clear, browser, tmp_path):
    opened = browser.open(written(tmp_path / "report.html", report(clear)))
    opened.page.emulate_media(media="print")
    assert not opened.page.locator("nav.contents").is_visible()
    assert opened.page.locator("h1").is_visible()


def test_many_topics_are_not_too_much(clear, tmp_path):
    rng = np.random.default_rng(0)
    words = tuple(f"word{'abcdefghij'[i % 10]}{i}" for i in range(5000))
    large = Topics(rng.dirichlet(np.full(5000, 0.02), 300), Vocabulary(words), 0.1, 0.01, rng.random(300))
    large.save(tmp_path / "run" / "model")
    for name in ("run.json", "server", "parties"):
        (tmp_path / "run" / name).symlink_to(clear / name)
    content = report(tmp_path / "run")
    assert 100_000 < len(content.encode()) <= MOST


def test_plan_and_fact_are_compared(clear):
    content = re.sub("<[^>]*>", " ", report(clear, "north"))
    announced, happened = map(int, re.search(r"agree: (\d+) announced, (\d+) took place", content).groups())
    assert announced == happened > 5
    assert re.search(r"score of held-out documents\s+3 times", content)  # an answer of two numbers is one occasion


def test_a_party_reports_itself_and_a_server_nobody(tmp_path):
    sites = Sites(tmp_path, method="name = 'consensus'\ntopics = 2\nrounds = 1\nsweeps = 1\nstart_sweeps = 1\n").agree()
    sites.run()
    party = report(tmp_path / "north")
    assert "What left “north”" in party
    assert "tertulia forget" in party
    server = report(tmp_path / "oncology")
    assert "A topic model of 3 parties" in server
    assert "that party&#x27;s own ledger" in server
    assert "What was read" not in server  # which is the parties' own affair


def test_the_command_writes_a_file_and_says_what_is_wrong(clear, tmp_path, tertulia, monkeypatch):
    code, out, _ = tertulia("report", clear, "--party", "south", "-o", tmp_path / "south.html")
    assert code == 0
    assert str(tmp_path / "south.html") in out.replace("\n", "")
    assert "What left “south”" in (tmp_path / "south.html").read_text()
    monkeypatch.chdir(tmp_path)
    assert tertulia("report", clear, "--party", "south")[0] == 0
    assert "What left “south”" in (tmp_path / "report-south.html").read_text()
    code, _, err = tertulia("report", clear, "--party", "west")
    assert code == 1
    assert "no party 'west'" in err
    code, _, err = tertulia("report", tmp_path)
    assert code == 1
    assert "is not a run's directory" in err


def test_the_folder_of_scenarios_is_a_report_of_the_federated_run(clear, tmp_path):
    (tmp_path / "federated").symlink_to(clear)
    keep_rows(tmp_path, [{"scenario": "alone", "perplexity": 77.0, "parties": {"north": 88.0}}])
    content = report(tmp_path)
    assert "What the federation is worth" in content
    assert "88.0" in content
    assert "tertulia scenarios run.toml" in content


def test_rare_words_are_counted_on_the_page_and_listed_for_the_party_alone(tmp_path, tertulia):
    texts = {"north": [*halves(1), "harbour garden xylophone"], "south": halves(2)}
    finish(prepared(tmp_path / "run", texts, METHOD))
    page, rare = tmp_path / "north.html", tmp_path / "rare.txt"
    code, out, _ = tertulia("report", tmp_path / "run", "--party", "north", "-o", page, "--rare-words", rare)
    assert code == 0
    assert "do not pass it on" in out
    assert "xylophone\t1" in rare.read_text().splitlines()
    assert "xylophone" not in page.read_text()
    assert "1 in one only" in page.read_text()
    code, _, err = tertulia("report", tmp_path / "run", "-o", page, "--rare-words", rare)
    assert (code, "say by --party" in err) == (1, True)


def test_many_parties_are_not_too_much(clear, tmp_path):
    parties = {f"party{i}": 9.0 + i for i in range(300)}
    keep_rows(tmp_path, [{"scenario": name, "perplexity": 9.0, "parties": parties} for name in ("alone", "federated")])
    (tmp_path / "federated").symlink_to(clear)
    assert len(report(tmp_path).encode()) <= MOST
    model, rng = Topics.load(clear / "model"), np.random.default_rng(0)
    released = {party: rng.dirichlet(np.ones(len(model.vocabulary)), 40) for party in parties}
    section = parties_section(model, released, model.vocabulary.words)
    assert len(section.body) < MOST / 3
    assert "The first 30 of 300 parties are shown" in section.body


def test_broken_scenarios_are_left_out(clear, tmp_path):
    for name in ("run.json", "server", "parties", "model"):
        (tmp_path / name).symlink_to(clear / name)
    (tmp_path / "scenarios.json").write_text(json.dumps({"scenarios": [{"scenario": "alone", "perplexity": "x"}]}))
    assert "What the federation is worth" not in report(tmp_path)
