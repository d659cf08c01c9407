"""Results of the applications benchmark: computed once, reused if committed, and equal to those in the docs."""

import json
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="the extra `bench` is not installed")

from benchmarks.applications import cells
from benchmarks.applications.classification import interval
from benchmarks.applications.tables import tables

ROOT = Path(__file__).parents[3]
COMMITTED = sorted((ROOT / "benchmarks" / "results" / "applications").glob("*.json"))
OURS = [file for file in COMMITTED if file.stem.startswith(("classification", "spam", "sentiment"))]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "KEPT", tmp_path / "out")
    monkeypatch.setattr(cells, "COMMITTED", tmp_path / "results")
    monkeypatch.setattr(cells, "_used", {})
    cells._committed.cache_clear()
    yield tmp_path
    cells._committed.cache_clear()


def fail():
    raise AssertionError("this cell is known")


def test_a_cell_is_computed_once(folders):
    assert cells.cell("spam", {"seed": 0, "K": 5}, lambda: {"auc": 0.8}) == {"auc": 0.8}
    assert cells.cell("spam", {"K": 5, "seed": 0}, fail) == {"auc": 0.8}
    assert cells.cell("spam", {"K": 5, "seed": 1}, lambda: {"auc": 0.7}) == {"auc": 0.7}
    assert cells.cell("sentiment", {"K": 5, "seed": 0}, lambda: {"auc": 0.6}) == {"auc": 0.6}


def test_a_run_that_was_stopped_leaves_no_half_cell(folders):
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cells.cell("spam", {"seed": 0}, stop)
    assert cells.cell("spam", {"seed": 0}, lambda: {"auc": 0.8}) == {"auc": 0.8}
    assert [file.suffix for file in (folders / "out").iterdir()] == [".json"]


def test_a_fresh_machine_goes_on_from_what_is_committed(folders, monkeypatch):
    cells.cell("spam", {"seed": 0}, lambda: {"auc": 0.8})
    cells.keep("spam", {"seeds": [0]}, {"none": 0.8}, publish=True)
    monkeypatch.setattr(cells, "KEPT", folders / "other machine")
    cells._committed.cache_clear()
    assert cells.cell("spam", {"seed": 0}, fail) == {"auc": 0.8}
    assert cells.cell("spam", {"seed": 1}, lambda: {"auc": 0.7}) == {"auc": 0.7}
    assert len(list((folders / "other machine").iterdir())) == 1


def test_a_run_may_compute_nothing(folders, monkeypatch):
    cells.cell("spam", {"seed": 0}, lambda: {"auc": 0.8})
    monkeypatch.setattr(cells, "_computes", True)  # restored after the test
    cells.compute_nothing()
    assert cells.cell("spam", {"seed": 0}, fail) == {"auc": 0.8}
    with pytest.raises(cells.NotKept, match="spam: seed 1"):
        cells.cell("spam", {"seed": 1}, fail)


def test_intervals_are_students():
    assert interval([0.8, 0.9]) == [0.85, 0.2147, 1.4853]  # 12.7062 times 0.05
    assert interval([0.8]) == [0.8, 0.8, 0.8]


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.stem)
def test_committed_results_carry_the_hashes_of_their_configurations(file):
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert kept["hash"] == cells.digest(kept["configuration"])
    assert kept["configuration"]["part"] == file.stem
    assert len(kept["cells"]) > 0
    assert all(name == cells.digest(cell["configuration"]) for name, cell in kept["cells"].items())


def test_the_page_has_the_tables_of_the_committed_results():
    results = {file.stem: json.loads(file.read_text(encoding="utf-8"))["result"] for file in OURS}
    whole = dict(results.get("classification", {}))
    if apart := results.get("classification-by-subject"):
        whole["classification_by_subject"] = apart["classification"]
    whole |= {task: results[task] for task in ("spam", "sentiment") if task in results}
    page = (ROOT / "docs" / "classification.md").read_text(encoding="utf-8")
    rows = [line for line in tables(whole).splitlines() if line.startswith("| ")]
    assert [row for row in rows if row not in page] == []
