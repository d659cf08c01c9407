"""One line on stderr while kernels compile for the first time, so that users know what they wait for."""

# mypy: disable-error-code="no-untyped-call"
# numba carries no types.

from __future__ import annotations

import sys
import threading
from typing import Any

from numba.core import event

_PATIENCE = 0.5  # seconds; what is sooner done needs no explanation


class Notice(event.Listener):
    """Listens to numba's compiler, which loading from the cache does not wake; speaks once a process."""

    def __init__(self) -> None:
        self.depth = 0  # a kernel may call others that are compiled on the way
        self.timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        """Set the clock, if it is the first of our kernels."""
        if self.timer is None and event.data["dispatcher"].py_func.__module__.startswith("tertulia."):
            self.timer = threading.Timer(_PATIENCE, self._tell)
            self.timer.daemon = True
            self.timer.start()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Stop the clock when the outermost kernel is ready in time."""
        self.depth -= 1
        if self.depth == 0 and self.timer is not None and self.timer.is_alive():
            self.timer.cancel()
            self.timer = None

    def _tell(self) -> None:
        print("tertulia: compiling kernels; later runs find them on disk", file=sys.stderr, flush=True)


def announce() -> None:
    """Listen from now on."""
    event.register("numba:compile", Notice())
