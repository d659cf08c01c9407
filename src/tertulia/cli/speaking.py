"""How much is said on stderr: `tertulia -v COMMAND`, `tertulia -q COMMAND`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from tertulia.view import console


class _Lines(logging.Handler):
    """Prints what is logged like everything else on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line."""
        (console.say_error if record.levelno >= logging.ERROR else console.say)(self.format(record))


@contextmanager
def speak(verbose: bool, quiet: bool) -> Iterator[None]:
    """Log to stderr while a command runs: warnings, or everything, or errors only."""
    log, lines = logging.getLogger("tertulia"), _Lines()
    before = log.level
    log.addHandler(lines)
    log.setLevel(logging.DEBUG if verbose else logging.ERROR if quiet else logging.WARNING)
    console.be_quiet(quiet)
    try:
        yield
    finally:
        log.removeHandler(lines)
        log.setLevel(before)
        console.be_quiet(False)
