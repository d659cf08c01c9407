"""The method in CONTRIBUTING.md runs as it is printed, on both engines."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import tertulia as tt
from tertulia.runs.directory import Run
from tertulia.view.tables import disclosure_rows, privacy_rows

ROOT = Path(__file__).parents[2]
BLOCK = re.search(r"runs this very block -->\n```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)


def test_it_has_fifteen_lines_and_one_sum():
    assert BLOCK is not None
    body = [line for line in BLOCK[1].splitlines() if not line.startswith(("import", "from", "@"))]
    assert len(body) <= 15
    assert BLOCK[1].count("fed.sum") == 1


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_it_runs(engine, tmp_path, monkeypatch):
    (tmp_path / "word_counts.py").write_text(BLOCK[1])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    sys.modules.pop("word_counts", None)
    import word_counts

    parties = {"north": ["river bank river"] * 40, "south": ["bank money"] * 50}
    counts = tt.federate(
        word_counts.train, parties, config={"words": ["river", "bank"]}, engine=engine, directory=tmp_path / "run",
        heldout=0.0,
    )  # fmt: skip
    assert np.all(np.abs(counts - [80, 90]) < 20)
    run = Run.open(tmp_path / "run")
    assert {row["what"] for row in disclosure_rows(run)} == {"word counts"}
    assert {row["real epsilon"] for row in privacy_rows(run, 1e-6)} == {"1"}
