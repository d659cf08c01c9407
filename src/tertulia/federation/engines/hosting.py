"""A party in a process of its own, whatever engine has started it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tertulia._disk import private_directory
from tertulia._locks import holding
from tertulia._logs import write_line
from tertulia._memory import keep_blocks
from tertulia.errors import TertuliaError
from tertulia.federation.codec import encode
from tertulia.federation.party import failures
from tertulia.federation.party.host import PartyConfig, PartyHost


@contextmanager
def hosted(directory: Path, pins: Mapping[str, str]) -> Iterator[Callable[[bytes], bytes]]:
    """Be a party: what answers frames, in a process that prints nothing on standard output and works here alone."""
    keep_blocks()
    os.umask(0o077)  # whatever is written here is the party's own
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the pipe
    try:
        closed = PartyConfig.load(directory).owners == "several"
    except Exception:  # whose it is cannot be known
        closed = True
    if closed:  # what libraries print may quote documents, and the terminal is the server's
        log = os.open(directory / failures.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, sys.stderr.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # When a server is killed, its parties still end the step that they are in.
    with holding(private_directory(directory), wait=lambda text: print(text, file=sys.stderr)):
        try:
            host = PartyHost(directory)
            host.pins, answer = pins, host.answer
        except TertuliaError as error:  # a broken policy, say: reported in answer to whatever is asked
            write_line(directory / failures.LOG, "error", failures.describe(error, details=False))
            failure = encode(failures.constant_answer(error) if closed else failures.full_answer(error, None))
            answer = lambda frame: failure  # noqa: E731
        yield answer
