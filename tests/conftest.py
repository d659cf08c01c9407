"""Shared by all tests: party processes must find the tests' own methods, and nothing may read a fixed data folder."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("tertulia", deadline=None)  # how long an example takes says more of the machine
settings.load_profile("tertulia")
_HERE = str(Path(__file__).parent)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_HERE, os.environ.get("PYTHONPATH")]))
os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch's threads wait for each other, and tests share cores
os.environ.setdefault("COLUMNS", "140")  # wide tables in any terminal


@pytest.fixture(scope="session")
def worded():
    """Texts of a party: `worded(0, 30)` are 30 documents about party 0's words and a few that all share."""

    def make(party: int, n: int) -> list[str]:
        own = [f"{stem}{'abcdef'[party]}" for stem in ("harbour", "garden", "engine", "violin")]
        common = ["winter", "letter", "bridge", "market"]
        return [
            " ".join([own[i % 4], own[(i + 1) % 4], common[i % 4], own[i % 4], common[(i * 3) % 4]] * 3)
            for i in range(n)
        ]

    return make


@pytest.fixture
def tertulia(monkeypatch, capsys):
    """The command line: `tertulia("topics", run)` gives exit code, stdout and stderr."""
    from tertulia.cli.main import main

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tertulia", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as leaving:
            code = leaving.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def module_browser():
    """A browser for a module of tests (see `helpers.browser`)."""
    from helpers.browser import launch_browser

    with launch_browser() as browser:
        yield browser


@pytest.fixture
def browser(module_browser):
    """`browser.open(path)` opens a page without a network; its pages are closed after the test."""
    yield module_browser
    module_browser.close_pages()
