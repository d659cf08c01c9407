"""The party at a site of a FLARE job: it answers what it has approved, under its own policy, ledger and log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tertulia._locks import holding
from tertulia._logs import write_line
from tertulia.errors import ConfigError
from tertulia.federation.engines.nvflare.site import Site
from tertulia.federation.party import failures
from tertulia.runs.attending import Attendant
from tertulia.runs.fetching import keep_model
from tertulia.runs.membership import PartyDirectory


class Party(Site):
    """What a job names at a site; it takes nothing from the job."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()  # for as long as the process lives

    def answers(self, place: Path, site: str) -> Callable[[bytes], bytes]:
        """What answers frames; only one process of a party does at a time."""
        os.umask(0o077)
        log = place / failures.LOG
        try:
            party = PartyDirectory(place)
            if (name := party.file.name) != site:
                raise ConfigError(f"{place} is the party '{name}', and FLARE calls this site '{site}'")
            self._stack.enter_context(holding(party.runs, wait=lambda text: write_line(log, "warning", text)))
            attendant = Attendant(party)
        except Exception as error:
            write_line(log, "error", failures.describe(error, details=False))
            raise
        _print_to(log)
        attendant.note(connected=True)
        return attendant.answer

    def leave(self) -> None:
        """Let another process of this party answer."""
        self._stack.close()

    def keep(self, place: Path, run: str, model: bytes) -> None:
        """Keep the shared model of a run that this party has approved."""
        try:
            keep_model(PartyDirectory(place), run, model)
        except Exception as error:
            write_line(place / failures.LOG, "warning", failures.describe(error, details=False))
            raise


def _print_to(log: Path) -> None:
    """What libraries print may quote documents, and FLARE's own logs can be read by its administrators."""
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(target, stream.fileno())
    os.close(target)
