"""The run at the server of a FLARE job: driven from its last commit, as far as this job carries it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tertulia._locks import holding
from tertulia.errors import ConfigError, DirectoryInUse, QuorumError, TertuliaError
from tertulia.federation.engines.nvflare.server import CollabTransport, PartyLost, Server
from tertulia.federation.types import PartyId
from tertulia.runs.desk import FINISHED, STOPPED, Desk, model_bytes
from tertulia.runs.driver import finish
from tertulia.runs.federations import Federation
from tertulia.runs.noting import Notes
from tertulia.runs.seeing import Watch


class RunServer(Server):
    """What a job names at the server; its argument is the run."""

    def drive(self, place: Path, clients: Mapping[PartyId, Any]) -> None:
        """Drive the run; what cannot be mended by another job is written down, and ends it."""
        federation = Federation(place)
        desk, notes = Desk(federation), Notes(place, _say_nothing, Watch("server", federation.file.name))
        with holding(place, again=f"tertulia nvflare supervise {place}"):
            run = desk.under_way()
            if run is None or run.id != self.run:
                raise ConfigError(f"run {self.run[:100]} is not under way in {place}")
            notes.facts["connected"] = dict.fromkeys(clients, time.time())
            notes.begin(run.id)
            transport = CollabTransport(run.parties, clients)
            try:
                with closing(transport):
                    finish(run, observe=notes.observe, transport=transport)
                    kept = transport.hand_out(run.id, model_bytes(run.directory))
            except (PartyLost, QuorumError, DirectoryInUse) as error:  # another job may find them
                notes.note("waiting", "warning", str(error), run=run.id)
                raise
            except TertuliaError as error:
                desk.end(run.id, STOPPED, str(error))
                notes.note(STOPPED, "error", str(error), run=run.id)
                raise
            desk.end(run.id, FINISHED)
            notes.note(FINISHED, run=run.id, kept=kept)


def _say_nothing(text: str) -> None:
    """There is no terminal: what is said is in server.log."""
