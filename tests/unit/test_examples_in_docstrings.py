"""What docstrings show is what happens."""

import doctest
import importlib
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
SHOWING = sorted(path for path in SOURCE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SHOWING, ids=lambda path: str(path.relative_to(SOURCE / "tertulia")))
def test_examples_in_docstrings_run(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    assert not doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed
