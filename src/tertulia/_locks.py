"""Who works on a directory: a lock that the kernel takes back when its holder ends, even by `kill -9`."""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from tertulia.errors import DirectoryInUse

NAME = "lock"  # the file's; it stays when the lock is given back


@contextmanager
def holding(directory: Path, wait: Callable[[str], None] | None = None, again: str | None = None) -> Iterator[None]:
    """Be the only one who works on a directory; else raise `DirectoryInUse`, or tell `wait` who does and wait.

    The error says by which command to go on `again`, once the other has ended; unless it is given, by resuming a run.
    """
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory / NAME, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not locked(descriptor):
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
        _write(descriptor, "")
    finally:
        os.close(descriptor)


@contextmanager
def taking_turns(directory: Path) -> Iterator[None]:
    """Wait until nobody else is at a directory, for something that takes but a moment."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_held(directory: Path) -> bool:
    """Whether somebody works on a directory now."""
    try:
        descriptor = os.open(directory / NAME, os.O_RDWR)
    except OSError:
        return False
    try:
        return not locked(descriptor)
    finally:
        os.close(descriptor)


def seems_held(directory: Path) -> bool:
    """The same by what the lock's file says, without touching the lock: for who looks often, and must not disturb.

    Of a holder on another machine its word is taken.
    """
    try:
        facts = json.loads((directory / NAME).read_bytes())
        if facts["host"] == platform.node():
            os.kill(int(facts["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return True


def locked(descriptor: int) -> bool:
    """Take the lock of an open file or folder, unless another holds it; closing it gives the lock back."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _holder(descriptor: int) -> str:
    try:
        facts = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {facts['pid']} on {facts['host']} since {facts['since']}"
    except (ValueError, KeyError, TypeError):  # it has only just begun
        return "another process"
