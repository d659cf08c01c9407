"""Locks on directories: the kernel releases a lock when its holder ends, even by `kill -9`.

A lock of flock(2) belongs to an open file, which a forked child shares. A worker that is forked under a lock would
keep it for as long as it lives, and its parent would wait for itself. So a child closes its copies, and the parent
unlocks before it closes the file.

Windows locks the first byte of a file, and refuses to read it to all other handles. So that byte is a space, and what
a holder says of itself begins at the second one. Folders cannot be opened there: a file within them is locked instead.
"""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import lock_descriptor, unlock_descriptor

from tertulia.errors import DirectoryInUse

NAME = "lock"  # of the lock file, which stays after the lock is released
_INNER = "lock.brief"  # of the file that stands for a folder on Windows
_WINDOWS = os.name == "nt"
_PAUSE = 0.01  # seconds between attempts
_MOST = 4096  # bytes that a holder says of itself


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
            lock_descriptor(descriptor, poll_interval=_PAUSE)
        since = datetime.now().astimezone().isoformat(" ", "seconds")
        _write(descriptor, json.dumps({"pid": os.getpid(), "host": platform.node(), "since": since}))
        yield
        if descriptor in _open_here:  # else this is a forked child: the lock belongs to its parent
            _write(descriptor, "")


@contextmanager
def brief_lock(directory: Path) -> Iterator[None]:
    """Wait for the lock of a directory and hold it, for a short operation; the directory itself is locked."""
    with _opened(*_lockable(directory)) as descriptor:
        lock_descriptor(descriptor, poll_interval=_PAUSE)
        yield


def lock_folder_or_none(folder: Path) -> int | None:
    """Lock a folder until the returned descriptor is closed; None if it is locked already."""
    descriptor = os.open(*_lockable(folder), 0o600)
    if try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _lockable(folder: Path) -> tuple[Path, int]:
    """Return what is opened to lock a folder, and how."""
    return (folder / _INNER, os.O_RDWR | os.O_CREAT) if _WINDOWS else (folder, os.O_RDONLY)


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
        with (directory / NAME).open("rb", buffering=0) as file:
            facts = json.loads(_read(file.fileno()))
            if _WINDOWS:
                return _is_refused(file.fileno())
        if facts["host"] == platform.node():
            os.kill(int(facts["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return True


def try_lock(descriptor: int) -> bool:
    """Try to lock an open file or folder; return whether it worked. Closing the descriptor releases the lock."""
    return lock_descriptor(descriptor, blocking=False)


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
                with suppress(OSError):  # another one holds it: this one was refused
                    unlock_descriptor(descriptor)
                os.close(descriptor)


def _close_in_child() -> None:
    for descriptor in _open_here:
        os.close(descriptor)
    _open_here.clear()
    _changing.release()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(before=_changing.acquire, after_in_parent=_changing.release, after_in_child=_close_in_child)


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, f" {text}".encode())


def _read(descriptor: int) -> bytes:
    """Read what a holder says of itself, without the locked byte."""
    os.lseek(descriptor, 1, os.SEEK_SET)
    return os.read(descriptor, _MOST)


def _is_refused(descriptor: int) -> bool:
    """Return whether Windows refuses to read the locked byte: signal 0 would end a process there."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        os.read(descriptor, 1)
    except PermissionError:
        return True
    return False


def _holder(descriptor: int) -> str:
    try:
        facts = json.loads(_read(descriptor))
        return f"process {facts['pid']} on {facts['host']} since {facts['since']}"
    except (ValueError, KeyError, TypeError):  # the holder has not written its facts yet
        return "another process"
