"""Words that a spreadsheet computes, and pages whose name is a link to another file."""

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

import tertulia as tt
from helpers.runs import prepared
from helpers.texts import halves
from tertulia.cli.main import app
from tertulia.runs.driver import finish

HOSTILE = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "\t=1", "rain", "-7", "+3.5")


@pytest.fixture
def model(tmp_path):
    words = tt.Vocabulary(HOSTILE)
    topics = np.full((len(HOSTILE), len(HOSTILE)), 0.01) + np.eye(len(HOSTILE))
    made = tt.Topics(topics / topics.sum(axis=1, keepdims=True), words, weights=np.ones(len(HOSTILE)))
    made.rename({0: "=HYPERLINK(1)"}).save(tmp_path / "model")
    return tmp_path / "model"


def cells(path):
    with path.open(newline="") as file:
        return [cell for row in csv.reader(file) for cell in row]


def is_computed(cell):
    """Whether a spreadsheet takes it for a formula; a plain number is only itself."""
    try:
        float(cell)
    except ValueError:
        return cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    return False


def test_no_exported_cell_is_a_formula(model, tmp_path):
    out = tmp_path / "topics.csv"
    result = CliRunner().invoke(
        app, ["explore", str(model), "--export", str(out), "--output", str(tmp_path / "x.html")]
    )
    assert result.exit_code == 0, result.output
    found = cells(out)
    assert any(cell.startswith("'=cmd") for cell in found)
    assert not [cell for cell in found if is_computed(cell)]


def test_ids_and_headings_of_transformed_documents_are_none_either(model, tmp_path):
    notes, out = tmp_path / "notes.jsonl", tmp_path / "shares.csv"
    notes.write_text('{"id": "=1+1", "text": "rain rain"}\n{"id": "-12", "text": "rain"}\n')
    result = CliRunner().invoke(app, ["transform", str(model), str(notes), "--id", "id", "--output", str(out)])
    assert result.exit_code == 0, result.output
    found = cells(out)
    assert not [cell for cell in found if is_computed(cell)]
    assert {"'=1+1", "-12"} <= set(found)


@pytest.mark.parametrize("command", ["report", "explore"])
def test_a_page_is_not_written_through_a_link(command, tmp_path):
    run = prepared(
        tmp_path / "run", {"north": halves(1), "south": halves(2)}, {"name": "alone", "topics": 2, "sweeps": 2}
    )
    finish(run)
    target, page = tmp_path / "mine.txt", tmp_path / "page.html"
    target.write_text("mine")
    page.symlink_to(target)
    source = run.directory if command == "report" else next(run.directory.rglob("model.json")).parent
    result = CliRunner().invoke(app, [command, str(source), "--output", str(page)])
    assert result.exit_code != 0
    assert target.read_text() == "mine"
    page.unlink()
    result = CliRunner().invoke(app, [command, str(source), "--output", str(page)])
    assert result.exit_code == 0, result.output
    assert page.read_text().startswith("<!")
