"""docs/plots.md runs as it is printed."""

import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import tertulia as tt
from helpers import drawn

ROOT = Path(__file__).parents[2]
(BLOCK,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "plots.md").read_text(), re.S)


@pytest.fixture(autouse=True)
def _closed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    yield
    plt.close("all")


def test_the_block_runs():
    parties = {name: ["rain sun rain river", "bank money bank coin"] * 8 for name in ("north", "south")}
    model = tt.FTM(topics=4, rounds=2, sweeps=5, vocabulary={"min_documents": 1, "max_share": 1}).fit(
        parties, directory="run", heldout=0.1
    )
    Path("scenarios.json").write_text(json.dumps({"scenarios": drawn.SCENARIOS}))
    rows = [{**row, "text": "rain river bank"} for row in drawn.documents()]
    exec(BLOCK, {"model": model, "other": tt.LDA(topics=3, sweeps=5).fit(parties["north"]), "documents": rows})
    assert Path("words.png").read_bytes().startswith(b"\x89PNG")
    assert len(plt.get_fignums()) == 13  # a figure for each call, and one for two
    named = set(re.findall(r"model\.plot\.(\w+)", BLOCK))
    assert named == {name for name in dir(model.plot) if not name.startswith("_")} - {"model"}
