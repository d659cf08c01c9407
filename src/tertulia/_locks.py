"""Locks on directories: the kernel releases a lock when its holder ends, even by `kill -9`.

A lock of flock(2) belongs to an open file, which a forked child shares. A worker that is forked under a lock would
keep it for as long as it lives, and its parent would wait for itself. So a child closes its copies, and the parent
unlocks before it closes the file.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from tertulia.errors import DirectoryInUse

NAME = "lock"  # of the lock file, which stays after the lock is released


@contextmanager
def directory_lock(
    directory: Path, wait: Callable[[str], None] | None = None, again: str | None = None
) -> Iterator[None]:
    """Hold the lock of a directory; if another process has it, raise `DirectoryInUse`, or call `wait` and wait.

    `wait` gets a text that names the holder. `again` is the command that the error proposes; the default resumes a run.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with _opened(directory / NAME, os.O_RDWR | os.O_CREAT) as descriptor:
        if not try_lock(descriptor):
            holder = _holder(descriptor)
            if wait is None:
                raise DirectoryInUse(
                    f"{directory} is in use by {holder}: wait until it has ended, or end it and run "
                    f"`{again or f'tertulia resume {directory}'}`"
                )
            wait(f"{directory} is in use by {holder}: waiting until it has ended")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        since = datetime.now().astimezone().isoformat(" ", "seconds")
        _write(descriptor, json.dumps({"pid": os.getpid(), "host": platform.node(), "since": since}))
        yield
        if descriptor in _open_here:  # else this is a forked child: the lock belongs to its parent
            _write(descriptor, "")


@contextmanager
def brief_lock(directory: Path) -> Iterator[None]:
    """Wait for the lock of a directory and hold it, for a short operation; the directory itself is locked."""
    with _opened(directory, os.O_RDONLY) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def is_held(directory: Path) -> bool:
    """Return whether a process holds the lock of a directory now."""
    try:
        with _opened(directory / NAME, os.O_RDWR) as descriptor:
            return not try_lock(descriptor)
    except OSError:
        return False


def seems_held(directory: Path) -> bool:
    """Return what the lock file says, without taking the lock: for callers that poll and must not disturb.

    A holder on another machine is believed.
    """
    try:
        facts = json.loads((directory / NAME).read_bytes())
        if facts["host"] == platform.node():
            os.kill(int(facts["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return True


def try_lock(descriptor: int) -> bool:
    """Try to lock an open file or folder; return whether it worked. Closing the descriptor releases the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_open_here: set[int] = set()  # descriptors of this process that may hold a lock
_changing = threading.Lock()  # so that a fork never sees an open descriptor outside the set, or a closed one in it


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """Open a file or folder for locking; unlock and close it at the end."""
    with _changing:
        descriptor = os.open(path, flags, 0o600)
        _open_here.add(descriptor)
    try:
        yield descriptor
    finally:
        with _changing:
            if descriptor in _open_here:
                _open_here.discard(descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                os.close(descriptor)


def _close_in_child() -> None:
    for descriptor in _open_here:
        os.close(descriptor)
    _open_here.clear()
    _changing.release()


os.register_at_fork(before=_changing.acquire, after_in_parent=_changing.release, after_in_child=_close_in_child)


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _holder(descriptor: int) -> str:
    try:
        facts = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {facts['pid']} on {facts['host']} since {facts['since']}"
    except (ValueError, KeyError, TypeError):  # the holder has not written its facts yet
        return "another process"
