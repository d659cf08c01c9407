"""One party in a process of its own, for every engine that starts such processes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tertulia._disk import private_directory, write_line
from tertulia._locks import directory_lock
from tertulia._memory import keep_blocks
from tertulia.errors import TertuliaError
from tertulia.federation.codec import encode
from tertulia.federation.party import failures
from tertulia.federation.party.host import PartyConfig, PartyHost


@contextmanager
def host_party(directory: Path, pins: Mapping[str, str]) -> Iterator[Callable[[bytes], bytes]]:
    """Host a party in this process; yield the function that answers frames.

    Standard output is redirected to standard error, and a lock makes this the only process of the party.
    """
    keep_blocks()
    os.umask(0o077)  # files of a party are private
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the pipe
    try:
        closed = PartyConfig.load(directory).owners == "several"
    except Exception:  # unknown owners: assume several
        closed = True
    if closed:  # libraries may print parts of documents, and the terminal is the server's
        log = os.open(directory / failures.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, sys.stderr.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # A party of a server that was killed may still be finishing its step.
    with directory_lock(private_directory(directory), wait=lambda text: print(text, file=sys.stderr)):
        try:
            host = PartyHost(directory)
            host.pins, answer = pins, host.answer
        except TertuliaError as error:  # for example, an invalid policy: every frame is answered with it
            write_line(directory / failures.LOG, "error", failures.describe(error, details=False))
            failure = encode(failures.constant_answer(error) if closed else failures.full_answer(error, None))
            answer = lambda frame: failure  # noqa: E731
        yield answer
