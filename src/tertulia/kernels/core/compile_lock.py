"""A lock around the compiler: one process compiles at a time, and users read why they wait.

Processes that start together need the same kernels. If each compiled them, all would be slower than one. So the process
that compiles holds the lock of the cache folder. The others wait, and then load the kernels from disk.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core import event

from tertulia._locks import directory_lock

_log = logging.getLogger("tertulia.kernels")
_PATIENCE = 0.5  # seconds; shorter waits need no explanation
_WAIT = "tertulia: compiling kernels, about 6 s for LDA or Consensus, up to half a minute for methods with noise; "
_KEPT = "later runs find them on disk (`tertulia warm` compiles all of them ahead)"
_LOST = (
    "nothing can be stored here, so that every start compiles them again: set NUMBA_CACHE_DIR to a folder that can be "
    "written, or let who owns the installation run `tertulia warm`"
)


class CompileLock(event.Listener):
    """A lock that all processes with the same cache folder share; it also logs what users wait for.

    It listens to numba's compile events; loading a kernel from disk raises none. It logs once per process, by
    `logging`, which writes to stderr by default.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder  # None: nothing can be stored, so a lock would help nobody
        self.depth = 0  # nested compilations: a kernel may call others
        self._timer: threading.Timer | None = None
        self._turn = ExitStack()
        self._held = self._explained = self._collects = False

    def take(self) -> bool:
        """Take the lock; return whether it had to wait, for then the kernel may be on disk now."""
        if self._held or self.folder is None:
            return False
        waited: list[str] = []

        def wait(reason: str) -> None:
            waited.append(reason)
            if not self._explained:
                _log.warning("tertulia: another process compiles kernels; %s", reason)
            self._explained = True

        with suppress(OSError):  # without a lock, compile all the same
            self._turn.enter_context(directory_lock(self.folder, wait))
            self._held = True
        return bool(waited)

    def give_back(self) -> None:
        """Release the lock, unless an outer kernel is still being compiled."""
        if self.depth == 0 and self._held:
            self._held = False
            with suppress(OSError):
                self._turn.close()

    def on_start(self, event: Any) -> None:
        """Start the timer of the log line at the first of our kernels."""
        if self._timer is None and event.data["dispatcher"].py_func.__module__.startswith("tertulia."):
            text = _WAIT + (_LOST if self.folder is None else _KEPT)
            self._timer = threading.Timer(_PATIENCE, _log.warning, [text])
            self._timer.daemon = True
            self._timer.start()
        if self.depth == 0:
            self._collects = gc.isenabled()
            gc.disable()  # saves a tenth of the time: a compiler makes many objects, but few cycles
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Stop the timer when the outermost kernel is ready in time."""
        self.depth -= 1
        if self.depth == 0 and self._collects:
            gc.enable()
        if self.depth == 0 and self._timer is not None and self._timer.is_alive():
            self._timer.cancel()
            self._timer = None
        if event.is_failed:
            self.give_back()


class _Ready(event.Listener):
    """A listener that calls a function after each kernel of ours."""

    def __init__(self, ready: Callable[[], None]) -> None:
        self._ready = ready

    def on_start(self, event: Any) -> None:
        """Do nothing: no kernel is ready yet."""

    def on_end(self, event: Any) -> None:
        """Call the function."""
        if event.data["dispatcher"].py_func.__module__.startswith("tertulia."):
            self._ready()


@contextmanager
def notify_compiled(ready: Callable[[], None]) -> Iterator[None]:
    """Call `ready` after each kernel that is compiled within the block."""
    with event.install_listener("numba:compile", _Ready(ready)):
        yield
