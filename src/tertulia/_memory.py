"""Memory of this process: which freed blocks it keeps, and how much is available."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_KEPT = 64 << 20  # bytes
_LIMITS = (  # limit and usage of a container, under either version of control groups
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
_LARGEST = 32 << 20  # the largest value that glibc accepts


@cache
def keep_blocks() -> None:
    """Keep some freed memory for the next message.

    A message of a megabyte is copied a dozen times on its way. By default glibc returns each such block to the system
    and requests it again, page by page, filled with zeros, which takes a tenth of a round. Other C libraries are left
    alone.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(_TRIM_THRESHOLD, _KEPT)
    mallopt(_MMAP_THRESHOLD, _LARGEST)


def available_bytes() -> int | None:
    """Return the memory that can be allocated, within the limit of a container; None if the system does not say."""
    found = [_free(), _left_in_container()]
    return min((bytes_ for bytes_ in found if bytes_ is not None), default=None)


def _free() -> int | None:
    try:  # includes caches that the kernel can drop
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _left_in_container() -> int | None:
    group = Path("/sys/fs/cgroup")
    for most, now in _LIMITS:
        try:
            return int((group / most).read_text()) - int((group / now).read_text())
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return None
