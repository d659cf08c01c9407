"""The decorators of all kernels: machine code that releases the GIL, compiled on first use and cached on disk.

numba renews a cached kernel when its own file changes, but not when the file of an inlined function changes. So the
name of a cache file carries a digest of all sources that hold kernels, in every folder below `kernels` and in
`metrics`: stale code is never loaded. While kernels compile for the first time, one line on stderr tells users, and
other processes wait for their turn.

numba uses a cache only where it can write. A read-only installation (an image, a folder of root's) was compiled
beforehand, so its kernels are loaded from beside the sources.
"""

# mypy: disable-error-code="no-untyped-call"
# numba carries no types.

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import caching, event
from numpy.typing import DTypeLike

from tertulia._arrays import Array
from tertulia.kernels.core.compile_lock import CompileLock

_F = TypeVar("_F", bound=Callable[..., Any])
_PACKAGE = Path(__file__).parents[2]
FILES = sorted(path for room in ("kernels", "metrics") for path in (_PACKAGE / room).rglob("*.py"))
_SOURCES = [numba.__version__.encode(), *(path.read_bytes() for path in FILES)]
_DIGEST = hashlib.blake2b(b"".join(_SOURCES), digest_size=6).hexdigest()
KERNELS: list[Any] = []  # of all modules that were imported so far


def kernel(function: _F) -> _F:
    """Compile a function on its first call."""
    return _compile(function, nogil=True)


def lean_kernel(function: _F) -> _F:
    """Compile a kernel that makes no arrays: no references are counted, and the first `LDA.fit` takes a tenth less."""
    return _compile(function, nogil=True, _nrt=False)


def inner_kernel(function: _F) -> _F:
    """Inline a kernel that only other kernels call; it is never compiled by itself.

    If it were compiled by itself, the first `LDA.fit` would take a fifth more (12.6 CPU seconds instead of 10.4). numba
    copies all variables for each branch of inlined code, so an inner kernel is short, and inlines little itself.
    """
    options: dict[str, Any] = {"inline": "always"}
    inlined: _F = numba.njit(**options)(function)
    return inlined


def loose_kernel(function: _F) -> _F:
    """Compile a kernel whose sums may run in any order: in vector registers, and their last bits may vary."""
    return _compile(function, nogil=True, fastmath={"reassoc", "contract"}, error_model="numpy")


def freeze(x: Any, dtype: DTypeLike) -> Array:
    """Return a contiguous read-only view of `x`: memory maps and plain arrays then share one compiled version."""
    view = np.ascontiguousarray(np.asarray(x), dtype=dtype).view()
    view.flags.writeable = False
    return view


def _compile(function: _F, **options: Any) -> _F:
    name = function.__qualname__
    function.__qualname__ = f"{name}-{_DIGEST}"  # numba takes the cache file's name from here
    try:
        options["no_cfunc_wrapper"] = True  # wrappers for C are a tenth of the time, and nothing calls them
        compiled: _F = numba.njit(**options)(function)
        KERNELS.append(compiled)
        with suppress(RuntimeError):  # nowhere to read from or to write to: compile once per process
            compiled._cache = _Cache(function)  # type: ignore[attr-defined]
    finally:
        function.__qualname__ = name
    return compiled


class _Installed(caching.InTreeCacheLocator):
    """The read-only place beside the sources, with kernels that were compiled when the package was installed."""

    def ensure_cache_path(self) -> None:
        """Raise `OSError` unless kernels are there."""
        if not _holds_kernels(Path(self.get_cache_path())):
            raise OSError


@cache
def _holds_kernels(folder: Path) -> bool:
    return any(folder.glob(f"*{_DIGEST}*.nbi"))


class _Places(caching.CompileResultCacheImpl):
    """The places of kernels: numba's own, and a read-only installation before the user's cache."""

    _usual = caching.CompileResultCacheImpl._locator_classes
    _after = _usual.index(caching.InTreeCacheLocator) + 1
    _locator_classes = [*_usual[:_after], _Installed, *_usual[_after:]]  # noqa: RUF012  numba's own is a list


class _Cache(caching.FunctionCache):
    """numba's cache of one kernel."""

    _impl_class = _Places

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel from disk; if it is missing, take the turn to compile, and look again."""
        found = super().load_overload(sig, target_context)
        if found is None and TURNS.take():
            found = super().load_overload(sig, target_context)
        if found is not None:
            TURNS.give_back()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled kernel; if that fails, only this process uses it."""
        with suppress(OSError):
            super().save_overload(sig, data)
        TURNS.give_back()


def is_stored(compiled: Any) -> bool:
    """Tell whether a kernel is on disk, for any types of arguments."""
    files = getattr(compiled._cache, "_cache_file", None)
    return files is not None and Path(files._index_path).is_file()


def folder_or_none() -> Path | None:
    """Return the folder where kernels of this file are cached; None if no folder can be written."""
    try:
        folder = Path(_Places(_compile).locator.get_cache_path())
    except RuntimeError:
        return None
    return folder if os.access(folder, os.W_OK) else None


TURNS = CompileLock(folder_or_none())
event.register("numba:compile", TURNS)
