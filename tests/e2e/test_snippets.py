"""Every block of Python on every page runs, every command is understood, every TOML is read.

README's Python is run by `test_readme.py`, which compares what it prints as well.
"""

import importlib
import os
import re
import shutil
import tomllib
from pathlib import Path

import click
import matplotlib.pyplot as plt
import pytest

from e2e.test_plan import CASES
from helpers import snippets
from helpers.snippets import PAGES, ROOT, blocks
from tertulia.methods.common.shared_words import CHOSEN
from tertulia.methods.gfedntm import early_stopping, method
from tertulia.methods.registry import METHODS
from tertulia.models.neural import training
from tertulia.runs.settings import RunSettings, settings_from

PLOTS = ROOT / "docs" / "plots.md"
BLOCKS = [block for page in PAGES for block in blocks(page)]
PYTHON = [block for block in BLOCKS if block.language == "python" and block.page.name != "README.md"]


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.fixture
def _folder(monkeypatch, tmp_path):
    """An empty folder, from which modules are imported, too; plots that no screen shows; short trainings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("TERTULIA_CACHE", str(tmp_path / "cache"))
    for module in (early_stopping, method, training):
        monkeypatch.setattr(module, "MOST_EPOCHS", 2)
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.mark.filterwarnings("ignore::UserWarning")  # few documents and many topics: all advice is right
@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("page", sorted({block.page for block in PYTHON} - {PLOTS}), ids=name_of)
def test_python_runs(page):
    snippets.run(page, snippets.world())


@pytest.mark.usefixtures("_folder")
def test_plots_page_draws_every_plot():
    names = snippets.run(PLOTS, snippets.world())
    assert Path("words.png").read_bytes().startswith(b"\x89PNG")
    assert len(plt.get_fignums()) == 13  # a figure for each call, and one for two
    drawn = set(re.findall(r"model\.plot\.(\w+)", PLOTS.read_text()))
    assert drawn == {name for name in dir(names["model"].plot) if not name.startswith("_")} - {"model"}


def test_what_is_not_run_is_excused():
    """Few, and each with a reason."""
    excused = {str(block): block.excuse for block in BLOCKS if block.excuse is not None}
    assert len(excused) == 0
    assert all(len(reason) > 20 for reason in excused.values())


@pytest.mark.parametrize("page", [page for page in PAGES if snippets.commands(page)], ids=name_of)
def test_commands_are_understood(page):
    for typed in snippets.commands(page):
        snippets.understand(typed, whole=True)


@pytest.mark.parametrize("page", [page for page in PAGES if snippets.mentions(page)], ids=name_of)
def test_commands_that_sentences_name_are_understood(page):
    for named in snippets.mentions(page):
        snippets.understand(named, whole=False)


@pytest.mark.parametrize(
    "typed", ["fly runs/example", "topics", "topics --colour runs/example", "ledger burn parties/a"]
)
def test_commands_that_do_not_exist_are_noticed(typed):
    with pytest.raises((AssertionError, click.UsageError)):
        snippets.understand(typed, whole=True)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "toml"], ids=str)
def test_toml_is_read(block):
    settings = tomllib.loads(block.code)
    if "name" in settings.get("method", {}) and {"data", "parties"} & set(settings):
        settings_from(settings, ROOT)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.is_run], ids=str)
def test_commands_that_shall_run_do(block, tertulia, monkeypatch, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for typed in snippets.typed_in(block):
        code, _, err = tertulia(*snippets.arguments_of(typed))
        assert code == 0, f"tertulia {typed}: {err}"


def test_the_table_of_what_leaves_is_whole():
    """Every thing that a plan names in any case stands in the method's column, and nothing else."""
    columns = ["consensus", "ftm", "fedlda", "pctd", "gfedntm", "alone"]
    said = {name: set() for name in columns}
    for what, cells in rows_of("concepts.md", "| what leaves |"):
        for name, cell in zip(columns, cells, strict=True):
            if cell:
                said[name].add(what)
    assert said == {name: announced(name) for name in columns}


@pytest.mark.parametrize("mode", ["clear", "paper", "sound"])
def test_the_table_of_ftm_and_consensus_is_whole(mode):
    """In each mode it has all that FTM's and Consensus' plans name, in clear or not, and nothing else."""
    rows = rows_of("ftm.md", "| what | `clear` | `paper` | `sound` |")
    said = {what: cells[("clear", "paper", "sound").index(mode)] for what, cells in rows}
    sent = {what for what, cell in said.items() if cell and not cell.strip("*").startswith("not sent")}
    assert sent == announced("ftm", mode) | (announced("consensus", mode) if mode != "paper" else set())


def rows_of(page, head):
    """Each thing that a table of what leaves names, without what is said about it, and its cells."""
    table = (ROOT / "docs" / page).read_text().partition(f"\n{head}")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        what, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        yield re.split(", unless|, rows|: tokens| \\(", what)[0], cells


def announced(name, mode=None):
    """What a method's plans name, in all cases that `test_plan` runs (of one mode); reports stay at the party.

    How words are agreed on is the same for all methods, and stands in docs/words.md.
    """
    cases = [case for case in CASES.values() if case["name"] == name and mode in (None, case.get("mode", "clear"))]
    shared = [{**case, "vocabulary": {}} for case in cases if case.get("mode") == "paper"]  # with a list that is agreed
    methods = [RunSettings(method=case).method for case in cases + shared]
    plan = importlib.import_module(METHODS[name].module).plan
    return {row.mechanism.what for method in methods for row in plan(method) if row.verb != "reports"} - {CHOSEN}
