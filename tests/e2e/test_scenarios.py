"""`tertulia scenarios`: one command, three ways of training, for sampled and for neural models."""

import json
import sys

import pytest

from tertulia.cli import main
from tertulia.config import load
from tertulia.scenarios import method_in

METHODS = {
    "ftm": "name = 'ftm'\ntopics = 4\nrounds = 2\nsweeps = 10",
    "fedlda": "name = 'fedlda'\ntopics = 4\nrounds = 4\nsampler = 'mh'",
    "pctd": "name = 'pctd'\ntopics = 4\nrounds = 5",
    "gfedntm": "name = 'gfedntm'\ntopics = 3\nhidden = [8, 6]\nepochs = 3\nbatch_size = 16",
}


def write(directory, method, worded):
    for number, name in enumerate(("north", "south")):
        rows = [{"text": f"{text} n{i}x"} for i, text in enumerate(worded(number, 30))]
        (directory / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    parties = "".join(f"[parties.{name}]\npath = '{name}.jsonl'\n" for name in ("north", "south"))
    words = "[method.vocabulary]\nmax_share = 1.0\n"
    config = f"directory = 'runs'\nheldout = 0.2\n[method]\n{METHODS.get(method, method)}\n{words}{parties}"
    (directory / "run.toml").write_text(config)
    return directory / "run.toml"


def scenarios(path, monkeypatch, *options):
    monkeypatch.setattr(sys, "argv", ["tertulia", "scenarios", str(path), *options])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.parametrize("method", ["ftm", "gfedntm"])
def test_three_models_are_compared(method, worded, tmp_path, monkeypatch, capsys):
    assert not scenarios(write(tmp_path, method, worded), monkeypatch, "--json")
    rows = json.loads(capsys.readouterr().out)["scenarios"]
    assert [row["scenario"] for row in rows] == ["federated", "centralised", "alone"]
    assert [row["models"] for row in rows] == [1, 1, 2]
    assert all(1 < row["perplexity"] < 100 for row in rows)  # there are some 70 words
    assert all((tmp_path / "runs" / row["scenario"] / "model").is_dir() for row in rows)
    # A party alone has not seen the other's words.
    assert rows[2]["perplexity"] > max(rows[0]["perplexity"], rows[1]["perplexity"])


@pytest.mark.parametrize("method", ["fedlda", "pctd"])
@pytest.mark.parametrize("scenario", ["centralised", "alone"])
def test_every_method_has_baselines(method, scenario, worded, tmp_path):
    settings = load(write(tmp_path, method, worded))
    baseline = settings.changed({"method": method_in(settings, scenario)}).method
    assert (baseline.name, baseline.topics, baseline.sweeps) == (scenario, 4, settings.method.rounds)


def test_a_baseline_has_no_baselines(worded, tmp_path, monkeypatch, capsys):
    assert scenarios(write(tmp_path, "name = 'alone'", worded), monkeypatch)
    assert "give the federated method" in capsys.readouterr().err
