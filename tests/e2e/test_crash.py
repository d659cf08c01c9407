"""`kill -9` at any moment, then `tertulia resume`: the end is bit for bit that of an uninterrupted run.

The method is noisy and stateful (`toys.train`), so that a step run twice, a state lost or noise drawn twice all show;
a few trials use FTM itself. Kills at random moments seldom hit the narrow windows, so as many are aimed.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers import toys  # noqa: F401 - its messages are in the commits that we read
from tertulia.corpus import Corpus
from tertulia.federation.codec import encode
from tertulia.federation.party.host import PartyHost
from tertulia.methods import FTMSettings, GFedNTMSettings
from tertulia.methods.ftm import method as ftm  # noqa: F401 - likewise
from tertulia.methods.gfedntm import method as gfedntm  # noqa: F401 - likewise
from tertulia.runs.config import RunSettings
from tertulia.runs.driver import begin
from tertulia.runs.layout import Run

ENGINES = ["local", "processes"]
POINTS = [
    "party.before_step",
    "party.before_save",
    "party.after_save",
    "party.before_reply",
    "server.before_ask",
    "server.after_ask",
    "server.before_commit",
    "server.after_commit",
]
TOY = {"name": "custom", "module": "helpers.toys", "config": {"rounds": 4}}
REAL = FTMSettings(topics=4, rounds=3, sweeps=5).model_dump()
NEURAL = GFedNTMSettings(  # parties hold back a part of every gradient, and three rounds in four are not on disk
    topics=3, hidden=(8, 6), rounds=7, checkpoint_every=4, paper={"keep": 0.1}, vocabulary={"max_share": 1.0}
).model_dump()


def prepare(directory: Path, engine: str, method: dict, worded) -> Path:
    """A run that has not started, with fixed noise keys so that its bits can be compared."""
    corpora = {name: Corpus.from_texts(worded(i, 12 + i)) for i, name in enumerate("abc")}
    settings = RunSettings(directory=str(directory), engine=engine, method=method, seed=3)
    run = begin(settings, corpora)
    for party in run.parties:
        path = run.party_directory(party) / "party.json"
        rules = json.loads(path.read_text())
        path.write_text(json.dumps({**rules, "noise_key": "42" * 32}))
    return directory


def resume(directory: Path, fault: str | None = None) -> subprocess.Popen:
    environment = {**os.environ, **({"TERTULIA_FAULT": fault} if fault else {})}
    command = [sys.executable, "-m", "tertulia", "resume", str(directory), "--json"]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def finish(directory: Path) -> None:
    process = resume(directory)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()


def outcome(directory: Path) -> dict:
    """Everything that must not depend on crashes: the server's state, the parties' states, ledgers and kept arrays."""
    run = Run.open(directory)
    commit, warnings = run.journal().last()
    assert not warnings
    found = {"server": encode(commit.state), "round": commit.round}
    for party in run.parties:
        host = PartyHost(run.party_directory(party))
        kept = {path.name: path.read_bytes() for path in (host.directory / "kept").glob("*")}
        found[party] = (encode(host.answers.state), host.ledger.digest(), kept)
    model = directory / "model" / "topics.safetensors"
    return {**found, "model": model.read_bytes() if model.exists() else None}


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """Copies of prepared runs, and what they end in when nothing goes wrong."""
    prepared: dict = {}

    def make(engine, name, method, worded, directory):
        if (engine, name) not in prepared:
            base = tmp_path_factory.mktemp(f"{engine}-{name}")
            template = prepare(base / "template", engine, method, worded)
            shutil.copytree(template, base / "reference")
            started = time.monotonic()
            finish(base / "reference")
            prepared[engine, name] = (template, outcome(base / "reference"), time.monotonic() - started)
        template, expected, seconds = prepared[engine, name]
        shutil.copytree(template, directory)
        return expected, seconds

    return make


@pytest.mark.parametrize("engine", ENGINES)
def test_kills_at_random_moments(engine, trial, worded, tmp_path):
    moments = random.Random(7)
    killed = 0
    for number in range(20):
        directory = tmp_path / str(number)
        expected, seconds = trial(engine, "toy", TOY, worded, directory)
        process = resume(directory)
        time.sleep(moments.uniform(0.3, 1.0) * seconds)
        if process.poll() is None:
            killed += 1
            if engine == "processes" and number % 2:
                kill_a_party(process.pid, moments)  # the engine starts the party again by itself
            else:
                os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=120)
        finish(directory)
        assert outcome(directory) == expected
    assert killed >= 10


def kill_a_party(server: int, moments: random.Random) -> None:
    children = subprocess.run(["pgrep", "-P", str(server)], capture_output=True, text=True).stdout.split()
    if children:
        os.kill(int(moments.choice(children)), signal.SIGKILL)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shift", [0, 1])
def test_kills_aimed_at_fault_points(engine, shift, trial, worded, tmp_path):
    aims = [(point, count) for count in (1, 3, 5) for point in POINTS][:20][shift::2]
    fired = 0
    for number, (point, count) in enumerate(aims):
        directory, marker = tmp_path / str(number), tmp_path / f"{number}.killed"
        expected, _ = trial(engine, "toy", TOY, worded, directory)
        process = resume(directory, f"{point}:{count}:{marker}")
        process.communicate(timeout=120)
        fired += marker.exists()
        finish(directory)
        assert outcome(directory) == expected, f"{point}:{count}"
    assert fired == len(aims)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("aim", ["party.after_save:3", "server.after_ask:4", "server.before_commit:3"])
def test_ftm_resumes_bit_for_bit(engine, aim, trial, worded, tmp_path):
    expected, _ = trial(engine, "ftm", REAL, worded, tmp_path / "run")
    process = resume(tmp_path / "run", f"{aim}:{tmp_path / 'killed'}")
    process.communicate(timeout=120)
    assert (tmp_path / "killed").exists()
    finish(tmp_path / "run")
    assert outcome(tmp_path / "run") == expected
    assert expected["model"] is not None


def test_gfedntm_resumes_bit_for_bit(trial, worded, tmp_path):
    expected, _ = trial("local", "gfedntm", NEURAL, worded, tmp_path / "run")
    process = resume(tmp_path / "run", f"server.after_ask:33:{tmp_path / 'killed'}")
    process.communicate(timeout=120)
    assert (tmp_path / "killed").exists()
    finish(tmp_path / "run")
    found = outcome(tmp_path / "run")
    assert {name: found[name] for name in ("server", "round", "model")} == {
        name: expected[name] for name in ("server", "round", "model")
    }
    for party in "abc":  # steps that charge nothing private may be computed, and so noted in the ledger, twice
        assert found[party][0] == expected[party][0]
    assert expected["model"] is not None


def test_a_damaged_commit_is_passed_over_without_loss(trial, worded, tmp_path):
    expected, _ = trial("local", "toy", TOY, worded, tmp_path / "run")
    resume(tmp_path / "run", f"server.after_commit:3:{tmp_path / 'killed'}").communicate(timeout=120)
    newest = sorted((tmp_path / "run" / "server").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-20])
    process = resume(tmp_path / "run")
    _, errors = process.communicate(timeout=120)
    assert b"truncated or damaged" in errors
    assert outcome(tmp_path / "run") == expected
