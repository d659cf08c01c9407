"""The decorators of all kernels: machine code that releases the GIL, compiled on first use and cached on disk.

numba renews a cached kernel when its own file changes, but not when a file changes whose code was inlined into it. So
the name of a cache file also carries a digest of all sources that hold kernels, in every folder below `kernels` and in
`metrics`: stale code is never loaded. While kernels compile for the first time, one line on stderr says what users wait
for.
"""

# mypy: disable-error-code="no-untyped-call"
# numba carries no types.

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import event
from numpy.typing import DTypeLike

from tertulia._arrays import Array

_F = TypeVar("_F", bound=Callable[..., Any])
_PACKAGE = Path(__file__).parents[2]
FILES = sorted(path for room in ("kernels", "metrics") for path in (_PACKAGE / room).rglob("*.py"))
_PATIENCE = 0.5  # seconds; what is sooner done needs no explanation
_WAIT = "tertulia: compiling kernels (about 8 s for LDA, up to a minute for a federation); later runs find them on disk"
_DIGEST = hashlib.blake2b(b"".join(path.read_bytes() for path in FILES), digest_size=6).hexdigest()


def kernel(function: _F) -> _F:
    """Compile a function on its first call."""
    return _compile(function, nogil=True)


def loose_kernel(function: _F) -> _F:
    """The same, but sums may be taken in any order: they then run in vector registers, and their last bits may vary."""
    return _compile(function, nogil=True, fastmath={"reassoc", "contract"}, error_model="numpy")


def freeze(x: Any, dtype: DTypeLike) -> Array:
    """A contiguous read-only view of `x`: memory maps and plain arrays then share one compiled version."""
    view = np.ascontiguousarray(np.asarray(x), dtype=dtype).view()
    view.flags.writeable = False
    return view


def _compile(function: _F, **options: Any) -> _F:
    name = function.__qualname__
    function.__qualname__ = f"{name}-{_DIGEST}"  # numba takes the cache file's name from here
    try:
        compiled: _F = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable place beside the source nor in the user's cache: compile once per process
        compiled = numba.njit(**options)(function)
    finally:
        function.__qualname__ = name
    return compiled


class Notice(event.Listener):
    """Listens to numba's compiler, which loading from the cache does not wake; speaks once per process."""

    def __init__(self) -> None:
        self.depth = 0  # a kernel may call others that are compiled on the way
        self.timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        """Set the clock, if it is the first of our kernels."""
        if self.timer is None and event.data["dispatcher"].py_func.__module__.startswith("tertulia."):
            self.timer = threading.Timer(_PATIENCE, self._say)
            self.timer.daemon = True
            self.timer.start()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Stop the clock when the outermost kernel is ready in time."""
        self.depth -= 1
        if self.depth == 0 and self.timer is not None and self.timer.is_alive():
            self.timer.cancel()
            self.timer = None

    def _say(self) -> None:
        print(_WAIT, file=sys.stderr, flush=True)


event.register("numba:compile", Notice())
