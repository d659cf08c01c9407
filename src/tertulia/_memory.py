"""How this process keeps its memory."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_KEPT = 64 << 20  # bytes
_LIMITS = (  # of a container and what is taken of it, under either version of control groups
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
_LARGEST = 32 << 20  # the most that glibc takes


@cache
def keep_blocks() -> None:
    """Keep some freed memory for the next message.

    A message of a megabyte is copied a dozen times on its way. By default the C library gives every such block back and
    gets it again, page by page, each filled with zeros: a tenth of a round. Where it is not glibc, nothing changes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(_TRIM_THRESHOLD, _KEPT)
    mallopt(_MMAP_THRESHOLD, _LARGEST)


def available_bytes() -> int | None:
    """How much memory there is to take, as far as the system says; in a container, within its limit."""
    found = [_free(), _left_in_container()]
    return min((bytes_ for bytes_ in found if bytes_ is not None), default=None)


def _free() -> int | None:
    try:  # what the kernel can free at once counts, too
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
    for most, now in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            return int((group / most).read_text()) - int((group / now).read_text())
        except (OSError, ValueError):  # there is none, or it says "max"
            continue
    return None
