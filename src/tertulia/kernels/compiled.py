"""The decorators of all kernels: machine code that releases the GIL, compiled on first use and cached on disk.

numba renews a cached kernel when its own file changes, but not when a file changes whose code was inlined into it. So
the name of a cache file also carries a digest of all the sources here: stale code is never loaded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import DTypeLike

from tertulia.arrays import Array
from tertulia.kernels.progress import announce

_F = TypeVar("_F", bound=Callable[..., Any])
_SOURCES = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
_DIGEST = hashlib.blake2b(_SOURCES, digest_size=6).hexdigest()
announce()


def kernel(function: _F) -> _F:
    """Compile a function on its first call."""
    return _compiled(function, nogil=True)


def loose_kernel(function: _F) -> _F:
    """The same, but sums may be taken in any order: they then run in vector registers, and their last bits may vary."""
    return _compiled(function, nogil=True, fastmath={"reassoc", "contract"}, error_model="numpy")


def frozen(x: Any, dtype: DTypeLike) -> Array:
    """A contiguous read-only view of `x`: memory maps and plain arrays then share one compiled version."""
    view = np.ascontiguousarray(np.asarray(x), dtype=dtype).view()
    view.flags.writeable = False
    return view


def _compiled(function: _F, **options: Any) -> _F:
    name = function.__qualname__
    function.__qualname__ = f"{name}-{_DIGEST}"  # numba takes the cache file's name from here
    try:
        compiled: _F = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable place beside the source nor in the user's cache: compile once a process
        compiled = numba.njit(**options)(function)
    finally:
        function.__qualname__ = name
    return compiled
