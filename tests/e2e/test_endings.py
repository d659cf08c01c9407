"""How commands end: exit codes, one line for an error, a quiet end by signals, and the way to go on."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from helpers.commands import Typist

CONFIG = """
directory = "runs/two"
engine = "{engine}"
[method]
name = "consensus"
topics = 2
rounds = {rounds}
start_sweeps = 2
sweeps = 1
[parties.north]
path = "north.jsonl"
policy = "policy.toml"
[parties.south]
path = "south.jsonl"
policy = "policy.toml"
"""
PATIENCE = 120.0  # seconds, on a machine that has much else to do


@pytest.fixture
def project(tmp_path, worded):
    def make(engine="local", rounds=2, policy="allow_clear = true\n"):
        for i, name in enumerate(("north", "south")):
            rows = [json.dumps({"text": text}) for text in worded(i, 20)]
            (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
        (tmp_path / "policy.toml").write_text(policy)
        (tmp_path / "run.toml").write_text(CONFIG.format(engine=engine, rounds=rounds))
        return tmp_path

    return make


@pytest.fixture(scope="module")
def typist(tmp_path_factory):
    typist = Typist(tmp_path_factory.mktemp("typed"))
    yield typist
    typist.close()


def wait_for(typed, text):
    until = time.monotonic() + PATIENCE
    while text not in typed.err:
        assert time.monotonic() < until, typed.err
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("engine", "how", "code"),
    [("local", signal.SIGINT, 130), ("local", signal.SIGTERM, 143), ("processes", signal.SIGINT, 130)],
)
def test_a_run_that_is_stopped_says_how_to_go_on(typist, project, engine, how, code):
    base = project(engine, rounds=100_000)
    typed = typist.type("run", "run.toml", cwd=base)
    wait_for(typed, "two: round 2")
    typed.send_signal(how)
    assert typed.wait() == code
    last = typed.err.strip().splitlines()[-1]
    assert last.startswith("stopped after round ")
    assert last.endswith("; go on: `tertulia resume runs/two`")
    assert "Traceback" not in typed.err
    assert typed.out == ""


def test_output_that_nobody_reads_is_no_error(tertulia, project):
    base = project()
    assert tertulia("run", base / "run.toml")[0] == 0
    for json_too in ([], ["--json"]):
        unread, pipe = os.pipe()
        os.close(unread)
        command = [sys.executable, "-m", "tertulia", "topics", str(base / "runs" / "two"), *json_too]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
        os.close(pipe)
        assert (done.returncode, done.stderr) == (141, "")


def test_a_log_has_a_line_for_each_round(tertulia, project):
    code, _, err = tertulia("run", project(rounds=3) / "run.toml")
    assert code == 0
    assert [line.split(",")[0] for line in err.splitlines()] == [f"two: round {n}" for n in range(1, 6)]


def test_quiet_prints_results_and_errors_only(tertulia, project):
    base = project()
    code, out, err = tertulia("-q", "run", base / "run.toml")
    assert (code, err) == (0, "")
    assert "2 topics" in out
    code, out, err = tertulia("-q", "run", base / "run.toml")
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    code, _, err = tertulia("-q", "-v", "run", base / "run.toml")
    assert code == 2
    assert "contradict" in err


def test_verbose_shows_where_an_error_is(tertulia, tmp_path):
    code, _, err = tertulia("-v", "topics", tmp_path)
    assert code == 1
    assert "Traceback" in err
    assert err.strip().splitlines()[-1].startswith("error: ")
    assert "Traceback" not in tertulia("topics", tmp_path)[2]


def test_a_run_that_failed_at_its_start_can_be_mended(tertulia, project):
    base = project(policy="allow_clear = false\n")
    code, _, err = tertulia("run", base / "run.toml")
    assert code == 1, err
    (base / "policy.toml").write_text("allow_clear = true\n")
    code, _, err = tertulia("run", base / "run.toml")
    assert code == 0, err
    assert "begins again" in err
    assert (base / "runs" / "two" / "model").exists()


def test_a_run_with_rounds_restarts_only_if_asked_and_is_kept(tertulia, project):
    base = project()
    assert tertulia("run", base / "run.toml")[0] == 0
    run = base / "runs" / "two"
    first = json.loads((run / "run.json").read_text())["id"]
    code, _, err = tertulia("run", base / "run.toml")
    assert code == 1
    assert "--fresh" in err
    assert f"tertulia resume {run}" in err
    code, _, err = tertulia("run", base / "run.toml", "--fresh")
    assert code == 0
    assert str(base / "runs" / "two.1") in err
    assert json.loads((base / "runs" / "two.1" / "run.json").read_text())["id"] == first
    assert (base / "runs" / "two.1" / "parties" / "north" / "ledger.sqlite").exists()
    assert json.loads((run / "run.json").read_text())["id"] != first


@pytest.mark.parametrize(
    ("place", "text"), [("n" * 300, "is too long a name for this file system"), ("north.jsonl/run", "no folder")]
)
def test_errors_of_the_system_are_one_line(tertulia, project, place, text):
    base = project()
    code, out, err = tertulia("run", base / "run.toml", "--directory", base / place)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert text in err


def test_a_command_that_is_typed_wrongly_ends_with_2(tertulia):
    assert tertulia("topics")[0] == 2
    assert tertulia("topics", "x", "--colour")[0] == 2
