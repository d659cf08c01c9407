"""The party at a site of a FLARE job. It answers for runs that it has approved, under its own policy and ledger."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tertulia._disk import write_line
from tertulia._locks import directory_lock
from tertulia.errors import ConfigError
from tertulia.federation.engines.nvflare.site import Site
from tertulia.federation.party import failures
from tertulia.network.party.attendant import Attendant
from tertulia.network.party.party_directory import PartyDirectory
from tertulia.network.party.received_models import keep_model


class FlareParty(Site):
    """The class that a job names at a site; it takes no argument from the job."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()  # until the process ends

    def answers(self, place: Path, site: str) -> Callable[[bytes], bytes]:
        """Return the function that answers frames; only one process of a party answers at a time."""
        os.umask(0o077)
        log = place / failures.LOG
        try:
            party = PartyDirectory(place)
            if (name := party.file.name) != site:
                raise ConfigError(f"{place} is the party '{name}', and FLARE calls this site '{site}'")
            self._stack.enter_context(directory_lock(party.runs, wait=lambda text: write_line(log, "warning", text)))
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
    """Redirect output to the party's log: libraries may print documents, and FLARE's administrators read its logs."""
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(target, stream.fileno())
    os.close(target)
