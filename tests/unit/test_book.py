"""The book of figures: panels that are whole, cells that survive kills, verdicts, staleness, and pages that hold it."""

import json
import re
import sys
from importlib.util import find_spec

import pytest

from benchmarks.book import applications, cells, page, pictures, quotes, registry, results
from benchmarks.book.__main__ import judged, run, write_pages
from benchmarks.book.chapters import fedlda, pctd
from benchmarks.book.measures import sampler
from benchmarks.book.panels import Check, Entry, Found, Panel, Size

PANELS = registry.panels()
CALLS = []


def count(seed, base=0.0, **arguments):
    """A measure: two scores, and a curve."""
    CALLS.append((seed, base))
    return {"perplexity": base + seed, "npmi": 0.5, **{f"round@{i}": base + seed - i for i in (1, 2, 10)}}


def panel(**changes):
    given = {
        "name": "toy-1", "paper": "PC-TD", "number": "figure 1", "title": "a toy", "claim": "it falls.",
        "measure": f"{__name__}:count",
        "entries": (
            Entry("low", {"base": 10.0}, score="round"), Entry("high", {"base": 20.0}, score="round"),
            Entry("high at the end", {"base": 20.0}, "end"),
        ),
        "full": Size((0, 1, 2), {}), "quick": Size((0, 1), {}, ("low",)), "control": "none",
        "checks": (Check("low falls", lambda f: f("low") < f("low", "1")),), "minutes": 1.0,
    }  # fmt: skip
    return Panel(**(given | changes))


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "KEPT", tmp_path / "cells")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or sys.modules[count.__module__])
    CALLS.clear()
    return tmp_path


def test_panels_are_whole():
    names = [panel.name for panel in PANELS]
    assert len(set(names)) == len(names)
    assert sum(bool(panel.number) for panel in PANELS) >= 35
    for one in PANELS:
        module, _, _ = one.measure.partition(":")
        assert find_spec(module) is not None
        assert one.paper in page.PAPERS
        assert one.checks
        assert one.claim[-1] in ".?)"
        lines = {entry.line for entry in one.entries}
        assert {*one.quick.lines, *one.full.lines, *one.printed} <= lines, one.name
        assert list(one.calls(one.quick)), f"{one.name} has no quick size"
        assert not any("/" in entry.line + entry.x for entry in one.entries), "a mark could not name it"


def test_calls_are_shared_within_a_panel_and_seeds_are_kept_apart(folders):
    result = results.run(panel())
    assert sorted(CALLS) == sorted([(s, b) for b in (10.0, 20.0) for s in (0, 1, 2)] + [(0, 10.0), (1, 10.0)])
    assert result["numbers"]["low"] == {"1": [9.0, 10.0, 11.0], "2": [8.0, 9.0, 10.0], "10": [0.0, 1.0, 2.0]}
    assert result["numbers"]["high at the end"] == {"end": [20.0, 21.0, 22.0]}
    assert list(result["quick"]["numbers"]) == ["low"]
    assert results.verdict(panel(), results.load_or_none("toy-1"), {}).state == "holds"


def test_a_run_that_was_killed_continues_and_bad_cells_are_named_and_measured_again(folders, capsys):
    results.run(panel())
    before = list(CALLS)
    results.run(panel())
    assert before == CALLS  # nothing is measured twice
    files = sorted(cells.KEPT.glob("*.json"))
    files[0].write_text(files[0].read_text()[:40])
    other = json.loads(files[1].read_text())
    files[1].write_text(json.dumps({**other, "configuration": {"measure": "another"}}))
    results.run(panel())
    assert len(CALLS) == len(before) + 2
    said = capsys.readouterr().err
    assert f"{files[0].name} in {cells.KEPT} is half-written" in said
    assert f"{files[1].name} in {cells.KEPT} holds the result of another configuration" in said
    assert not list(cells.KEPT.glob("*.draft"))


def test_half_written_and_foreign_results_do_not_count(folders, capsys):
    results.run(panel())
    file = results.RESULTS / "toy-1.json"
    changed = panel(full=Size((0, 1), {}))
    judgement = results.verdict(changed, results.load_or_none("toy-1"), {})
    assert (judgement.state, judgement.stale) == ("not_run", "the stored result has another configuration")
    whole = json.loads(file.read_text())
    bad = ({"panel": "toy-1"}, [1, 2], whole | {"numbers": {"low": [1.0]}}, whole | {"numbers": {"low": {"1": ["x"]}}})
    for text in (file.read_text()[:100], "", *map(json.dumps, bad)):
        file.write_text(text)
        assert results.load_or_none("toy-1") is None
        assert "toy-1.json is half-written" in capsys.readouterr().err
    lacking = whole | {"numbers": {"high": whole["numbers"]["high"]}}
    assert results.verdict(panel(), lacking, {}) == ("not_run", [], "the stored result lacks 'low'")


def test_half_written_comparisons_do_not_count(folders, capsys):
    results.store_checked({"toy-1": {"stale": "differs"}})
    assert results.checked() == {"toy-1": {"stale": "differs"}}
    for text in ('{"toy-1": {"stal', "[1]", '{"toy-1": {}}'):
        (results.RESULTS / "checked.json").write_text(text)
        assert results.checked() == {}
        assert "checked.json is half-written" in capsys.readouterr().err


def test_pages_are_written_though_one_quotes_a_result_that_is_lost(folders, monkeypatch, tmp_path, capsys):
    lost, kept = tmp_path / "lost.md", tmp_path / "kept.md"
    lost.write_text("<!-- book:gone/low/1 -->7<!-- /book -->")
    kept.write_text("<!-- book:applications/spam -->old<!-- /book -->")
    monkeypatch.setattr(quotes, "pages", lambda: [lost, kept])
    monkeypatch.setattr(quotes, "GENERATED", tmp_path / "reproduction.md")
    monkeypatch.setattr(quotes, "_found", lambda name: None)
    assert write_pages() == ["reproduction.md", "kept.md"]
    assert "lost.md keeps its numbers: book:gone/low/1 names no number" in capsys.readouterr().err
    assert lost.read_text().endswith("-->7<!-- /book -->")


def test_a_result_is_stale_when_its_quick_numbers_change(folders, monkeypatch):
    stored = results.run(panel())
    assert results.compare(panel(), stored)["stale"] == ""
    cells.forget(results.AGAIN)
    later = {"round@1": 10.5, "round@2": 9.5}
    monkeypatch.setitem(globals(), "count", lambda seed, base=0.0: later)
    found = results.compare(panel(), stored)
    assert found["stale"].startswith("3 quick numbers differ: low, 1: 9.5 then, 10.5 now")
    assert results.verdict(panel(), stored, {"toy-1": found}).stale
    results.store_checked({"toy-1": found, "toy-2": found})
    results.run(panel())
    assert list(results.checked()) == ["toy-2"]  # the new result has not been compared


def test_numbers_with_noise_of_random_keys_are_compared_by_their_spread(folders, monkeypatch):
    stored = results.run(panel())
    assert stored["quick"].pop("repeatable") is True
    assert results.compare(panel(), stored)["exact"]
    cells.forget(results.AGAIN)
    near = {f"round@{i}": 10.6 - i for i in (1, 2, 10)}  # within the spread of two seeds, 1
    monkeypatch.setitem(globals(), "count", lambda seed, base=0.0: near)
    found = results.compare(panel(), stored)
    assert (found["stale"], found["exact"]) == ("", False)
    assert results.compare(panel(), stored, {"exact": True})["stale"].startswith("3 quick numbers differ")
    stored["quick"]["repeatable"] = True
    assert results.compare(panel(), stored)["stale"].startswith("3 quick numbers differ")


@pytest.mark.parametrize(
    ("new", "same", "differs"),
    [
        ([10.0, 11.0], True, 0),
        ([10.0, 11.01], True, 1),
        ([10.3, 11.3], False, 0),
        ([12.0, 12.0], False, 1),
        ([10.0], True, 1),
    ],
)
def test_rounding_counts_on_one_machine_and_the_spread_over_seeds_on_another(new, same, differs):
    before = {"low": {"1": [10.0, 11.0]}}
    assert len(results.differences(before, {"low": {"1": new}}, same)) == differs


def test_a_missing_corpus_is_named_with_its_source_and_the_others_run(folders, monkeypatch, capsys):
    monkeypatch.setenv("TERTULIA_DATA", str(folders))
    needs = panel(name="toy-2", corpora=("reuters21578.parquet",))
    assert run((needs, panel()), again=False, minutes=None) == ["toy-2"]
    assert "reuters21578.parquet is not in" in (said := capsys.readouterr().err)
    assert "Reuters-21578, documents with a body" in said
    assert (results.RESULTS / "toy-1.json").exists()


def test_an_unknown_name_lists_near_ones():
    with pytest.raises(SystemExit, match=r"fedlda-5x: there is no such panel; near ones: .*fedlda-5"):
        registry.choose(["fedlda-5x"])
    with pytest.raises(SystemExit, match="--list"):
        registry.choose(["@@@@"])


def test_panels_name_the_corpora_of_their_calls():
    files = {**fedlda.FILES, "imdb": "imdb50k.parquet", "groups": "newsgroups20.parquet"}
    files |= {name: file for name, (file, _) in pctd.CORPORA.items()}
    for one in PANELS:
        for arguments, _ in (*one.calls(one.full), *one.calls(one.quick)):
            names = [arguments.get("data"), arguments.get("corpus"), *arguments.get("where", ())[:1]]
            assert {files[name] for name in names if name in files} <= set(one.corpora), one.name


def test_every_corpus_that_a_panel_needs_has_a_source():
    for name in {corpus for one in PANELS for corpus in one.corpora}:
        assert "not described" not in results.source_of(name), name


def test_the_page_is_what_the_committed_results_give():
    stored, verdicts = judged()
    expected = page.page(PANELS, stored, verdicts)
    assert quotes.GENERATED.read_text() == expected, "run python -m benchmarks.book --pages"


def test_pictures_show_the_committed_numbers_and_are_small():
    stored, _ = judged()
    for name, result in stored.items():
        file = pictures.FOLDER / f"{name}.svg"
        panel = next(panel for panel in PANELS if panel.name == name)
        expected = pictures.mark(panel, result["numbers"])
        assert pictures.mark_of(file) == expected, f"{name}: python -m benchmarks.book --pages"
        assert file.stat().st_size <= pictures.MOST_BYTES


def test_pictures_are_drawn_alike_twice(folders, monkeypatch):
    monkeypatch.setattr(pictures, "FOLDER", folders)
    numbers = results.run(panel())["numbers"]
    first = pictures.draw(panel(), numbers).read_bytes()
    (folders / "toy-1.svg").unlink()
    assert pictures.draw(panel(), numbers).read_bytes() == first
    assert pictures.mark(panel(), numbers).encode() in first


def test_points_of_unequal_size_have_axes_of_their_own():
    found = Found({"ours": {"ppl": [900.0], "npmi": [0.1], "s": [1100.0]}, "theirs": {"ppl": [950.0], "npmi": [-0.2]}})
    assert pictures._scales(found) == [["ppl", "s"], ["npmi"]]
    assert pictures._scales(Found({"a": {"x": [0.0]}, "b": {"y": [0.0]}})) == [["x", "y"]]


@pytest.mark.parametrize("file", quotes.pages(), ids=lambda file: file.name)
def test_pages_hold_the_books_numbers(file):
    assert quotes.wrong(file) == [], "run python -m benchmarks.book --pages"


def test_a_quote_that_differs_or_names_nothing_is_found(folders, monkeypatch, tmp_path):
    monkeypatch.setattr(quotes, "_found", lambda name: Found({"low": {"1": [861.2, 845.0]}}) if name == "toy" else None)
    text = "ours is <!-- book:toy/low/1/range -->9<!-- /book -->, <!-- book:toy/low/1 -->853<!-- /book --> in short"
    file = tmp_path / "page.md"
    file.write_text(text)
    assert quotes.wrong(file) == ["page.md: toy/low/1/range is 853 (845 to 861), not 9"]
    file.write_text(quotes.fill(text))
    assert quotes.wrong(file) == []
    assert quotes.quote("toy/low/1/sd/1") == "853.1 ± 11.5"
    assert quotes.quote("toy/low/1/over/low") == "0.0 %"
    for key in ("toy/high/1", "other/low/1", "toy/low/1/median", "toy/low/1/over/high", "toy/low", "other", "toy"):
        with pytest.raises(quotes.QuoteError):
            quotes.quote(key)


def test_a_difference_of_nothing_has_no_sign(monkeypatch):
    near = Found({"low": {"1": [9999.9]}, "high": {"1": [10000.0]}, "far": {"1": [9000.0]}})
    monkeypatch.setattr(quotes, "_found", lambda name: near)
    assert [quotes.quote(f"toy/{line}/1/over/high") for line in ("low", "far")] == ["0.0 %", "-10.0 %"]


def test_a_whole_table_and_a_verdict_are_quoted(monkeypatch):
    monkeypatch.setattr(quotes, "panels", lambda: (panel(name="toy"),))
    monkeypatch.setattr(quotes, "_found", lambda name: Found({"low": {"1": [9.0, 10.0], "2": [8.0, 8.0]}}))
    assert quotes.quote("toy") == "\n\n|  | 1 | 2 |\n|---|---|---|\n| low | 9.5 (9.0 to 10.0) | 8.00 |\n\n"
    assert quotes.quote("toy/verdict") == "holds"
    monkeypatch.setattr(quotes, "_found", lambda name: Found({"low": {"1": [8.0], "2": [9.0]}}))
    assert quotes.quote("toy/verdict") == "0 of 1 sentences hold"


def test_tables_of_applications_are_made_of_their_committed_results():
    stored = json.loads((applications.FOLDER / "spam.json").read_text())["result"]
    made = quotes.quote("applications/spam")
    assert f" {stored['none']['auc']:.3f} ± "[2:] in made
    assert made.count("\n| ") == len(stored) + 1
    mean, low, high = (100 * x for x in applications._stored("speech")["wer"]["moonshine"]["federated_lda"])
    assert f"{mean:.2f} [{low:.2f}, {high:.2f}]" in quotes.quote("applications/speech")


@pytest.mark.parametrize("page", ["ftm", "fedlda", "pctd", "gfedntm"])
def test_rows_of_paper_and_ours_quote_the_book_or_link_to_its_figures(page):
    text = (quotes.ROOT / "docs" / f"{page}.md").read_text()
    section = re.split(r"^## What the papers? says?, and what we see$", text, flags=re.M)[1].split("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 3
    for row in rows:
        bare = quotes.MARK.sub("", row)
        assert not re.search(r"\d\.\d{2}|\b\d{3,}\b", bare) or bare != row or "](" in row, f"{page}: {row}"


def test_sentences_can_be_computed_from_the_numbers(folders):
    stored = results.run(panel(computed=(lambda f: f"Low ends at {f('low'):.0f}.",)))
    shown = panel(computed=(lambda f: f"Low ends at {f('low'):.0f}.",))
    text = page.page((shown,), {"toy-1": stored}, {"toy-1": results.verdict(shown, stored, {})})
    assert "\nLow ends at 1.\n" in text


def test_a_published_curve_is_read_and_another_is_refused():
    found = sampler.race(2, "published", "enron", 1000, 240)
    assert 1000 < found["ppl"] < 2000
    assert found["seconds"] > 60
    with pytest.raises(KeyError, match="enron-77-tomotopy-1000-2 is not among the curves"):
        sampler.race(2, "published", "enron", 77, 240)
