"""How a command ends: one line for an error, a quiet end when it is stopped, and an exit code that scripts can read."""

from __future__ import annotations

import errno
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

WRONG, REFUSED, INTERRUPTED, TERMINATED = 1, 3, 130, 143  # docs/commands.md says what they mean; 2 is click's
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
    """SIGTERM came; like KeyboardInterrupt, it is no error."""


class Commands(TyperGroup):
    """All commands; whatever ends one is said in a line."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
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
    """An error of the operating system, with what to do about it where that is known.

    >>> one_line(OSError(errno.ENAMETOOLONG, "File name too long", "n" * 500))  # doctest: +ELLIPSIS
    'nnn... is too long a name for this file system: choose a shorter one'
    """
    name = str(error.filename or "a file")
    shown = name if len(name) <= 200 else f"{name[:80]} ..."
    known = _REMEDIES.get(error.errno or 0)
    return known.format(shown) if known else f"{shown}: {error.strerror or error}"


def code_of(stop: BaseException) -> int:
    """The exit code of a command that a signal has stopped."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does: files are closed, and party processes end; commands may have a way."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Print warnings without the line of code that they come from."""
    before = warnings.showwarning
    warnings.showwarning = lambda text, *_: console.say(f"warning: {text}")
    try:
        yield
    finally:
        warnings.showwarning = before
