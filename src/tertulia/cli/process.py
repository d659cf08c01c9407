"""The process of a command: log messages on stderr, errors in one line, signals, and exit codes."""

from __future__ import annotations

import errno
import logging
import signal
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup

from tertulia.errors import TertuliaError
from tertulia.view import console

# docs/commands.md explains these exit codes; 2 is click's
WRONG, REFUSED, UNSURE, INTERRUPTED, TERMINATED = 1, 3, 4, 130, 143
_REMEDIES = {
    errno.EACCES: "there is no permission for {}: run this as who owns it, or choose another place",
    errno.EPERM: "there is no permission for {}: run this as who owns it, or choose another place",
    errno.EROFS: "{} cannot be written, for its file system is read-only: choose another place",
    errno.ENAMETOOLONG: "{} is too long a name for this file system: choose a shorter one",
    errno.ENOSPC: "the disk is full at {}: make room, and type the same again",
    errno.ENOENT: "{} does not exist",
    errno.ENOTDIR: "{} is inside something that is no folder",
    errno.EISDIR: "{} is a folder, and a file is needed",
    errno.EEXIST: "{} exists already",
}


class Terminated(BaseException):
    """Raised on SIGTERM; like KeyboardInterrupt, it is no error."""


class Commands(TyperGroup):
    """The group of all commands; errors and signals that end a command are reported in one line."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn errors and signals into exit codes."""
        with _terminable(), _warnings_in_a_line():
            try:
                return super().invoke(ctx)
            except TertuliaError as error:
                text, where = str(error), traceback.format_exc()
            except OSError as error:
                if error.errno == errno.EPIPE:
                    console.end_unread()
                text, where = one_line(error), traceback.format_exc()
            except (KeyboardInterrupt, Terminated) as stop:
                console.say("interrupted")
                raise typer.Exit(code_of(stop)) from None
        if ctx.params.get("verbose"):
            console.say(where)
        console.say_error(f"error: {text}")
        raise typer.Exit(WRONG)


def one_line(error: OSError) -> str:
    """Describe an error of the operating system in one line, with a remedy where one is known.

    >>> one_line(OSError(errno.ENAMETOOLONG, "File name too long", "n" * 500))  # doctest: +ELLIPSIS
    'nnn... is too long a name for this file system: choose a shorter one'
    """
    name = str(error.filename or "a file")
    shown = name if len(name) <= 200 else f"{name[:80]} ..."
    known = _REMEDIES.get(error.errno or 0)
    return known.format(shown) if known else f"{shown}: {error.strerror or error}"


def code_of(stop: BaseException) -> int:
    """Return the exit code of a command that a signal has stopped."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, so that files are closed and party processes end."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Print warnings without their source line."""
    before = warnings.showwarning
    warnings.showwarning = lambda text, *_: console.say(f"warning: {text}")
    try:
        yield
    finally:
        warnings.showwarning = before


class _Lines(logging.Handler):
    """Handler that prints log messages like everything else on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message."""
        (console.say_error if record.levelno >= logging.ERROR else console.say)(self.format(record))


@contextmanager
def verbosity(verbose: bool, quiet: bool) -> Iterator[None]:
    """Log to stderr while a command runs: warnings; everything if verbose; only errors if quiet."""
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
