"""Two who drive one run: the second is refused by name, the first goes on; and a party waits for its orphan."""

import os
import subprocess
import sys
import threading
import time

import pytest

from helpers import toys
from helpers.marks import slow
from tertulia._locks import directory_lock
from tertulia.corpus import Corpus
from tertulia.errors import DirectoryInUse
from tertulia.federation.server.handle import Handle
from tertulia.federation.types import Nothing
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

SECONDS = 60


def prepared(directory, worded, engine="local", **config):
    corpora = {name: Corpus.from_texts(worded(i, 12 + i)) for i, name in enumerate("ab")}
    method = {"name": "custom", "module": "helpers.toys", "train": "train_held", "config": {"rounds": 2, **config}}
    return begin(RunSettings(directory=str(directory), engine=engine, method=method), corpora)


def appeared(path):
    for _ in range(SECONDS * 50):
        if path.exists():
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} never came")


@pytest.mark.parametrize("engine", ["local", slow("processes")])
def test_a_second_resume_names_the_first_and_leaves_it_alone(engine, worded, tmp_path):
    ready, barrier = tmp_path / "ready", tmp_path / "barrier"
    run = prepared(tmp_path / "run", worded, engine, ready=str(ready), barrier=str(barrier))
    command = [sys.executable, "-m", "tertulia", "resume", str(run.directory), "--json", "--method", "helpers.toys"]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    appeared(ready)
    second = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert second.returncode == 1
    assert f"is in use by process {first.pid} on" in second.stderr
    assert "Traceback" not in second.stderr
    with pytest.raises(DirectoryInUse, match=f"process {first.pid} "):  # the API says the same
        finish(Run.open(run.directory, ["helpers.toys"]))
    barrier.touch()
    _, errors = first.communicate(timeout=SECONDS)
    assert first.returncode == 0, errors.decode()
    assert finish(Run.open(run.directory, ["helpers.toys"])).round == 2


def test_a_run_cannot_begin_where_another_begins(worded, tmp_path):
    with directory_lock(tmp_path / "run"), pytest.raises(DirectoryInUse, match=f"process {os.getpid()} "):
        prepared(tmp_path / "run", worded)
    assert not (tmp_path / "run" / "run.json").exists()
    prepared(tmp_path / "run", worded)


def test_two_runs_may_share_their_parties_homes(worded, tmp_path):
    corpora = {name: Corpus.from_texts(worded(i, 12 + i)) for i, name in enumerate("ab")}
    method = {"name": "custom", "module": "helpers.toys", "config": {"rounds": 2}}
    own = {name: {"home": str(tmp_path / name)} for name in corpora}
    runs = [
        begin(RunSettings(directory=str(tmp_path / where), method=method, parties=own), corpora) for where in ("x", "y")
    ]
    threads = [threading.Thread(target=finish, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert all(finish(run).round == 2 for run in runs)


def test_a_party_waits_for_a_process_that_still_works_in_its_directory(worded, tmp_path, capfd):
    run = prepared(tmp_path / "run", worded)
    answers, said = {}, ""
    with directory_lock(run.party_directory("a")):
        transport = run.transport("processes", 1)
        handle = Handle(run.id, transport, run.journal())
        asking = threading.Thread(target=lambda: answers.update(handle.each(toys.count_free, Nothing())))
        asking.start()
        for _ in range(SECONDS * 50):
            said += capfd.readouterr().err
            if "is in use by" in said:
                break
            time.sleep(0.02)
        assert not answers
    asking.join(SECONDS)
    transport.close()
    assert set(answers) == {"a", "b"}
    assert f"{run.party_directory('a')} is in use by process {os.getpid()} on" in said
