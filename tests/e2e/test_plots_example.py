"""The example of docs/plots.md runs as it is printed. The page itself is run by `test_snippets.py`."""

import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tertulia.corpus import demo_corpus

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _closed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    yield
    plt.close("all")


def small_parties():
    random = np.random.default_rng(0)
    words = [[f"word{subject}{letter}" for letter in "abcdefgh"] for subject in range(4)]
    words[0][:3] = "samples", "normal", "distribution"
    return {party: [" ".join(random.choice(words[d % 4], 20)) for d in range(40)] for party in ("stdlib", "numpy")}


def test_the_example_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo_corpus, "demo_parties", small_parties)
    monkeypatch.setattr(sys, "argv", ["plots.py", str(tmp_path / "pictures")])
    runpy.run_path(str(ROOT / "examples" / "plots.py"), run_name="__main__")
    written = capsys.readouterr().out.split()
    assert len(written) == 7
    assert all(Path(name).read_bytes().startswith(b"\x89PNG") for name in written)
