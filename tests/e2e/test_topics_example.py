"""The example of what to do with topics runs, and shows what it says."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "topics.py"


def test_the_example_runs(capsys):
    names = runpy.run_path(str(EXAMPLE))
    out = capsys.readouterr().out
    assert all(names["model"].names)
    assert f"{names['model'].names[0]}: " in out
    assert names["smaller"].n_topics == 3
    assert names["smaller"].names[0] == "the two together"
    assert "the two together" in out
    assert "[{'of': 4, 'groups': [[0, 1]]}]" in out
    assert {"planets", "gardens"} <= set(names["model"].by_label(names["notes"])["label"])
    assert names["found"].why in out
