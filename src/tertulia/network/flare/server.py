"""The server of a FLARE job, which drives a run from its last commit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tertulia._locks import directory_lock
from tertulia.errors import ConfigError, DirectoryInUse, QuorumError, TertuliaError
from tertulia.federation.engines.nvflare.server import CollabTransport, PartyLost, Server
from tertulia.federation.types import PartyId
from tertulia.network.endings import FINISHED, STOPPED
from tertulia.network.server.federation_directory import FederationDirectory
from tertulia.network.server.run_registry import RunRegistry, model_bytes
from tertulia.operations.health import Monitor
from tertulia.operations.status import ServerLog
from tertulia.runs.driver import finish


class FlareServer(Server):
    """The class that a job names at the server; its argument is the run."""

    def drive(self, place: Path, clients: Mapping[PartyId, Any]) -> None:
        """Drive the run; an error that another job cannot mend is recorded, and stops the run."""
        federation = FederationDirectory(place)
        registry, log = RunRegistry(federation), ServerLog(place, _say_nothing, Monitor("server", federation.file.name))
        with directory_lock(place, again=f"tertulia nvflare supervise {place}"):
            run = registry.under_way()
            if run is None or run.id != self.run:
                raise ConfigError(f"run {self.run[:100]} is not under way in {place}")
            log.facts["connected"] = dict.fromkeys(clients, time.time())
            log.begin(run.id)
            transport = CollabTransport(run.parties, clients)
            try:
                with closing(transport):
                    finish(run, observe=log.observe, transport=transport)
                    kept = transport.hand_out(run.id, model_bytes(run.directory))
            except (PartyLost, QuorumError, DirectoryInUse) as error:  # another job may find them
                log.note("waiting", "warning", str(error), run=run.id)
                raise
            except TertuliaError as error:
                registry.end(run.id, STOPPED, str(error))
                log.note(STOPPED, "error", str(error), run=run.id)
                raise
            registry.end(run.id, FINISHED)
            log.note(FINISHED, run=run.id, kept=kept)


def _say_nothing(text: str) -> None:
    """Ignore messages for a terminal: server.log has them."""
