"""Two `resume`s in one directory: the second is refused by name, and the first is not disturbed.

`tests/e2e/test_two_at_once.py` does the same with whole processes, and waits for the first to end.
"""

import os
import signal
import subprocess
import sys

import pytest

from tertulia._locks import directory_lock
from tertulia.corpus import Corpus
from tertulia.errors import DirectoryInUse
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

HOLD = """
import sys, time
from pathlib import Path
from tertulia._locks import directory_lock
with directory_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_second_is_refused_until_the_first_has_died(worded, tmp_path):
    method = {"name": "custom", "module": "helpers.toys", "config": {"rounds": 1}}
    run = begin(RunSettings(directory=str(tmp_path / "run"), method=method), {"a": Corpus.from_texts(worded(0, 5))})
    command = [sys.executable, "-c", HOLD, str(run.directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as first:
        try:
            assert first.stdout.readline() == b"held\n"
            again = Run.open(run.directory, ["helpers.toys"])
            with pytest.raises(DirectoryInUse, match=f"process {first.pid} "):
                finish(again)
            assert not list((run.directory / "server").glob("*"))  # nothing was begun
        finally:
            os.kill(first.pid, signal.SIGKILL)
    assert finish(again).round == 1


def test_the_lock_is_the_directorys(tmp_path):
    with directory_lock(tmp_path), pytest.raises(DirectoryInUse), directory_lock(tmp_path):
        pass
