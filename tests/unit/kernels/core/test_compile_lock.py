"""The compile lock: one process compiles at a time, among those with the same cache folder."""

import logging
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

from tertulia._locks import is_held
from tertulia.kernels.core.compile_lock import CompileLock

PATIENCE = 90.0  # seconds
OURS = SimpleNamespace(py_func=SimpleNamespace(__module__="tertulia.kernels.lda"))


def happening(failed=False):
    return SimpleNamespace(data={"dispatcher": OURS}, is_failed=failed)


def test_a_second_compiler_waits_and_then_looks_again(tmp_path, caplog):
    first, second, found = CompileLock(tmp_path), CompileLock(tmp_path), []
    assert not first.take()  # the lock was free
    with caplog.at_level(logging.WARNING):
        waiting = threading.Thread(target=lambda: found.append(second.take()))
        waiting.start()
        until = threading.Event()
        while not caplog.records:
            assert not until.wait(0.02)
        assert waiting.is_alive()
        assert "another process compiles kernels" in caplog.text
        assert str(os.getpid()) in caplog.text
        first.give_back()
        waiting.join(PATIENCE)
    assert found == [True]  # it had to wait: the kernel may be on disk now
    second.give_back()
    assert not is_held(tmp_path)


def test_the_turn_ends_with_the_outermost_kernel(tmp_path):
    turns = CompileLock(tmp_path)
    turns.take()
    turns.on_start(happening())
    turns.on_start(happening())
    turns.on_end(happening())
    turns.give_back()
    assert is_held(tmp_path)
    turns.on_end(happening())
    turns.give_back()
    assert not is_held(tmp_path)


def test_a_kernel_that_does_not_compile_ends_the_turn(tmp_path):
    turns = CompileLock(tmp_path)
    turns.take()
    turns.on_start(happening())
    turns.on_end(happening(failed=True))
    assert not is_held(tmp_path)


def test_where_nothing_can_be_stored_nobody_waits_and_the_text_is_true(caplog, monkeypatch):
    monkeypatch.setattr("tertulia.kernels.core.compile_lock._PATIENCE", 0.0)
    turns = CompileLock(None)
    assert not turns.take()
    with caplog.at_level(logging.WARNING):
        turns.on_start(happening())
        turns._timer.join(PATIENCE)
    assert "every start compiles them again" in caplog.text
    assert "NUMBA_CACHE_DIR" in caplog.text


def test_warm_says_that_nothing_can_be_stored():
    nowhere = {"NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator"}
    command = [sys.executable, "-m", "tertulia", "warm"]
    done = subprocess.run(command, env=os.environ | nowhere, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: nothing can be stored")
    assert done.stderr.count("\n") == 1
