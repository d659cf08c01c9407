"""Locks on directories: one holder, named in the error; the kernel releases the lock when the holder is killed."""

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from tertulia._locks import brief_lock, directory_lock, is_held
from tertulia.errors import DirectoryInUse

HOLDER = """
import sys, time
from pathlib import Path
from tertulia._locks import directory_lock
with directory_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_gets_an_error_that_names_the_first(tmp_path):
    with directory_lock(tmp_path), pytest.raises(DirectoryInUse) as refused, directory_lock(tmp_path):
        pass
    said = str(refused.value)
    assert f"process {os.getpid()} on {platform.node()} since 20" in said
    assert f"tertulia resume {tmp_path}" in said
    with directory_lock(tmp_path):  # released, also after an error
        pass


def test_kill_9_gives_the_lock_back(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(DirectoryInUse, match=f"process {process.pid} on"), directory_lock(tmp_path):
        pass
    said = []
    os.kill(process.pid, signal.SIGKILL)
    with directory_lock(tmp_path, wait=said.append):
        pass
    assert not said or f"process {process.pid} on" in said[0]
    process.communicate()


FORKS = """
import os, sys, time
from pathlib import Path
from tertulia._locks import directory_lock
with directory_lock(Path(sys.argv[1])):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    print("held", flush=True)
    time.sleep(60)
"""


def forked():
    """A child that lives until a signal ends it."""
    end, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(end, 1)
        os._exit(0)
    os.close(end)
    return child, go


@pytest.mark.parametrize("lock", [partial(directory_lock, wait=lambda text: None), brief_lock])
def test_a_worker_that_was_forked_under_a_lock_does_not_keep_it(lock, tmp_path):
    with lock(tmp_path):
        child, go = forked()
    try:
        again = threading.Thread(target=lambda: lock(tmp_path).__enter__(), daemon=True)
        again.start()
        again.join(10)
        assert not again.is_alive()  # it waited for its own worker before
    finally:
        os.close(go)
        os.waitpid(child, 0)


def test_a_worker_does_not_keep_the_lock_of_a_parent_that_is_killed(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", FORKS, str(tmp_path)], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout.readline() == b"held\n"
        assert is_held(tmp_path)
        process.kill()
        process.wait()
        until = time.monotonic() + 20
        while is_held(tmp_path):  # the worker may not have started yet
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_a_child_that_leaves_the_block_gives_back_nothing_of_its_parent(tmp_path):
    child = None
    try:
        with directory_lock(tmp_path):
            before = (tmp_path / "lock").read_text()
            child = os.fork()
            if child:
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
                assert is_held(tmp_path)
                assert (tmp_path / "lock").read_text() == before
    finally:
        if child == 0:
            os._exit(0 if is_held(tmp_path) else 1)
    assert not is_held(tmp_path)
