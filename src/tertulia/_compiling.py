"""While kernels compile: one process at a time, and whoever waits hears for what.

Processes that begin together need the same kernels; if each compiled them, all would be slower than one. So whoever
compiles holds the lock of the folder where kernels are kept. Who comes later waits, and then finds them on disk.
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

from tertulia._locks import holding

_log = logging.getLogger("tertulia.kernels")
_PATIENCE = 0.5  # seconds; what is sooner done needs no explanation
_WAIT = "tertulia: compiling kernels, about 6 s for LDA or Consensus, up to half a minute for methods with noise; "
_KEPT = "later runs find them on disk (`tertulia warm` compiles all of them ahead)"
_LOST = (
    "nothing can be stored here, so that every start compiles them again: set NUMBA_CACHE_DIR to a folder that can be "
    "written, or let who owns the installation run `tertulia warm`"
)


class Turns(event.Listener):
    """One compiler at a time, among all processes that keep kernels in the same folder; says what users wait for.

    It listens to numba's compiler, which loading from the disk does not wake, and speaks once per process, by
    `logging`, which writes to stderr unless it is set up otherwise.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder  # None: nothing can be stored, so that nobody's work helps another
        self.depth = 0  # a kernel may call others that are compiled on the way
        self._timer: threading.Timer | None = None
        self._turn = ExitStack()
        self._held = self._explained = self._collects = False

    def take(self) -> bool:
        """Wait for this process's turn; whether it had to, so that what was missing may now be there."""
        if self._held or self.folder is None:
            return False
        waited: list[str] = []

        def wait(reason: str) -> None:
            waited.append(reason)
            if not self._explained:
                _log.warning("tertulia: another process compiles kernels; %s", reason)
            self._explained = True

        with suppress(OSError):  # a lock that cannot be had keeps nobody from compiling
            self._turn.enter_context(holding(self.folder, wait))
            self._held = True
        return bool(waited)

    def give_back(self) -> None:
        """Let others compile, unless a kernel is still under way that called for this one."""
        if self.depth == 0 and self._held:
            self._held = False
            with suppress(OSError):
                self._turn.close()

    def on_start(self, event: Any) -> None:
        """Set the clock, if it is the first of our kernels."""
        if self._timer is None and event.data["dispatcher"].py_func.__module__.startswith("tertulia."):
            text = _WAIT + (_LOST if self.folder is None else _KEPT)
            self._timer = threading.Timer(_PATIENCE, _log.warning, [text])
            self._timer.daemon = True
            self._timer.start()
        if self.depth == 0:
            self._collects = gc.isenabled()
            gc.disable()  # a tenth of the time: a compiler makes many objects, and hardly any garbage in cycles
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Stop the clock when the outermost kernel is ready in time."""
        self.depth -= 1
        if self.depth == 0 and self._collects:
            gc.enable()
        if self.depth == 0 and self._timer is not None and self._timer.is_alive():
            self._timer.cancel()
            self._timer = None
        if event.is_failed:
            self.give_back()


class _Ready(event.Listener):
    """Calls a function after each kernel of ours."""

    def __init__(self, ready: Callable[[], None]) -> None:
        self._ready = ready

    def on_start(self, event: Any) -> None:
        """Nothing is ready yet."""

    def on_end(self, event: Any) -> None:
        """Call the function."""
        if event.data["dispatcher"].py_func.__module__.startswith("tertulia."):
            self._ready()


@contextmanager
def watching(ready: Callable[[], None]) -> Iterator[None]:
    """Call `ready` after each kernel that was compiled, while this lasts."""
    with event.install_listener("numba:compile", _Ready(ready)):
        yield
