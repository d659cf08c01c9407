"""A foreign run directory names a module that lies in it: `resume` there must not run it."""

import json
import subprocess
import sys

import pytest

from tertulia.corpus import Corpus
from tertulia.errors import ConfigError
from tertulia.federation.codec import decode, encode
from tertulia.federation.engines import processes
from tertulia.federation.messages import BEFORE_ALL, Ask, Question
from tertulia.federation.types import Nothing
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

EVIL = "from pathlib import Path\nPath('{trace}').touch()\nSTEPS = ()\ndef train(fed, config, state): return None\n"


@pytest.fixture
def foreign(worded, tmp_path):
    run = begin(
        RunSettings(directory=str(tmp_path / "run"), method={"name": "alone"}), {"a": Corpus.from_texts(worded(0, 5))}
    )
    (run.directory / "evil_method.py").write_text(EVIL.format(trace=tmp_path / "trace"))
    for path in (run.directory / "run.json", run.party_directory("a") / "party.json"):
        facts = json.loads(path.read_text())
        if "config" in facts:
            facts["config"]["method"] = {"name": "custom", "module": "evil_method"}
        else:
            facts["methods"] = ["evil_method"]
        path.write_text(json.dumps(facts))
    return run.directory


def test_resume_in_the_directory(foreign, tmp_path):
    command = [sys.executable, "-m", "tertulia", "resume", "."]
    done = subprocess.run(command, cwd=foreign, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "name it yourself" in done.stderr
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_a_party_that_is_laid_out_to_import_it(engine, foreign, tmp_path, monkeypatch):
    monkeypatch.chdir(foreign)
    monkeypatch.syspath_prepend(foreign)  # as `python -m` does
    run = Run.open(foreign)
    transport = run.transport(engine, 1)
    body = encode(Ask("each", "evil_method:train", Nothing()))
    frame = Question(run.id, (0, 0), BEFORE_ALL, 0, True, body).to_bytes()
    answer = decode(transport.ask({"a": frame}, 60)["a"])
    transport.close()
    assert answer.kind == "failed"
    assert not (tmp_path / "trace").exists()


def test_party_processes_do_not_look_for_modules_in_the_working_directory(foreign, tmp_path, monkeypatch):
    (foreign / "json.py").write_text(EVIL.format(trace=tmp_path / "trace"))
    monkeypatch.chdir(foreign)
    transport = processes.ProcessTransport({"a": foreign / "parties" / "a"})
    transport.ask({"a": b"any"}, 60)
    transport.close()
    assert not (tmp_path / "trace").exists()


def test_who_names_the_module_can_go_on_unless_it_has_changed(worded, tmp_path, monkeypatch):
    (tmp_path / "own_method_of_test.py").write_text(
        "STEPS = ()\ndef train(fed, config, state): return fed.commit(None) or 'done'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    method = {"name": "custom", "module": "own_method_of_test"}
    settings = RunSettings(directory=str(tmp_path / "run"), method=method)
    run = begin(settings, {"a": Corpus.from_texts(worded(0, 5))})
    assert finish(run) == "done"
    with pytest.raises(ConfigError, match="name it yourself"):
        finish(Run.open(run.directory))
    assert finish(Run.open(run.directory, ["own_method_of_test"])) == "done"
    with (tmp_path / "own_method_of_test.py").open("a") as file:
        file.write("print('more')\n")
    with pytest.raises(ConfigError, match="has changed"):
        Run.open(run.directory, ["own_method_of_test"])
    assert run.directory.exists()
