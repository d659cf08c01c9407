"""Benchmarks as the pages name them: commands that exist, and the rows of attacks that `door` reports."""

import importlib.util
import os
import re
import runpy
import sys
from pathlib import Path

import pytest

from benchmarks.door.attacks import DOCUMENTED, LAST, outcomes, rows_of, statuses
from benchmarks.engines.crash import trials
from tertulia.federation.engines.base import APART, ENGINES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")]
JUNIT = """<testsuites><testsuite>
<testcase classname="tests.attacks.test_row01_first" name="test_a"/>
<testcase classname="tests.attacks.test_row02_04_two" name="test_a"/>
<testcase classname="tests.attacks.test_row02_04_two" name="test_b"><failure/></testcase>
<testcase classname="tests.attacks.test_row05_cannot_run_here" name="test_a"><skipped/></testcase>
<testcase classname="tests.attacks.test_row06_half.TestIn" name="test_a"><skipped/></testcase>
<testcase classname="tests.attacks.test_row06_half.TestIn" name="test_b"/>
<testcase classname="" name="tests.attacks.test_row07_broken_import"><error/></testcase>
</testsuite></testsuites>"""
FILES = [
    "test_row01_first.py", "test_row02_04_two.py", "test_row05_cannot_run_here.py", "test_row06_half.py",
    "test_row07_broken_import.py", "test_row08_never_ran.py", "test_row60_new.py", "test_fuzzing.py",
]  # fmt: skip


def named_modules():
    for page in PAGES:
        for module in re.findall(r"python -m (benchmarks[\w.]*)", page.read_text(encoding="utf-8")):
            if module.rstrip(".") != "benchmarks" and not module.endswith(".NAME"):
                yield module.rstrip("."), page.relative_to(ROOT)
    for module in re.findall(r"^\| `([\w.]+)[^`]*` \|", (ROOT / "benchmarks/README.md").read_text(), re.MULTILINE):
        if module != "python" and not module.endswith((".parquet", ".npz")):
            yield f"benchmarks.{module}", Path("benchmarks/README.md")


@pytest.mark.parametrize("module", sorted({module for module, _ in named_modules()}))
def test_every_benchmark_that_a_page_names_can_be_started(module):
    spec = importlib.util.find_spec(module)
    assert spec is not None
    if spec.submodule_search_locations:
        assert importlib.util.find_spec(f"{module}.__main__") is not None


def started(module):
    """How `--help` of a benchmark ends: 0, a sentence, or the name of a module that is missing."""
    try:
        runpy.run_module(module, run_name="__main__")
    except SystemExit as end:
        return end.code or 0
    except ModuleNotFoundError as error:
        return f"This benchmark needs {str(error.name).partition('.')[0]}: pip install"
    return "no end"


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")  # of `runpy`
@pytest.mark.parametrize("module", sorted({module for module, _ in named_modules()}))
def test_every_benchmark_that_a_page_names_has_a_quick_run(module, monkeypatch, capsys):
    """Everything that a command imports at its start exists; only an optional package may be missing."""
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))  # restored at the end
    code = started(module)
    if code != 0:
        missing = re.match(r"This benchmark needs (\w+): pip install", str(code))
        assert missing is not None, code
        assert missing[1] not in ("benchmarks", "helpers", "tertulia"), code
        assert importlib.util.find_spec(missing[1]) is None, code
        pytest.skip(str(code))
    assert "--quick" in capsys.readouterr().out


def test_a_quick_run_kills_each_engine_ten_times():
    assert {engine: trials(engine, quick=True) for engine in (*ENGINES, *APART)} == dict.fromkeys(
        (*ENGINES, *APART), 10
    )


def test_rows_are_read_from_names_of_files():
    assert rows_of("test_row07_08_lost_halves.py") == [7, 8]
    assert rows_of("tests.attacks.test_row19_endless_frame.TestFrames") == [19]
    assert rows_of("test_fuzzing.py") == []


def test_each_row_has_a_status_and_rows_without_a_test_are_missing(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(JUNIT)
    found = statuses(outcomes(report), FILES)
    ran = {"1": "held", "2": "open", "4": "open", "5": "skipped", "6": "held", "7": "open", "8": "open", "60": "open"}
    assert {row: found[row] for row in ran} == ran
    assert {found[str(row)] for row in DOCUMENTED} == {"documented"}
    others = {found[str(row)] for row in range(9, LAST + 1) if row not in DOCUMENTED}
    assert others == {"missing"}
    assert set(found) == {str(row) for row in range(1, LAST + 2)}


def test_a_failing_test_of_a_documented_row_is_reported():
    row = min(DOCUMENTED)
    assert statuses({row: {"passed", "failed"}}, [f"test_row{row}_x.py"])[str(row)] == "open"
