"""`tertulia nvflare supervise`: submit a job, watch it, and submit it again until the run is finished.

FLARE does not take a site back into a job after the site was lost, nor a job after its server died. Commits and the
parties' answer logs outlast both: each job continues where the last one ended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia.errors import ConfigError, ConnectionTrouble
from tertulia.federation.engines.nvflare.jobs import check_job, job_files
from tertulia.federation.engines.nvflare.sessions import Administrator
from tertulia.network.endings import FINISHED, STOPPED, UNDER_WAY
from tertulia.network.flare.setup import PARTY, SERVER
from tertulia.network.proposals import Proposal
from tertulia.network.server.federation_directory import FederationDirectory
from tertulia.network.server.run_registry import RunRegistry
from tertulia.runs.directory import Run

_JOB = "job"  # in the run's directory: the number of the job that was submitted last
_LOOK = 2.0  # seconds between two looks at a job
_TROUBLED = 60.0  # seconds after which a server that cannot be reached is worth a line


def files_of(federation: FederationDirectory, proposal: Proposal) -> dict[str, Any]:
    """Return the files of a proposed run's job; raise `ConfigError` if the proposal is not complete."""
    federation.check_engine("nvflare")
    _ = proposal.own_plan
    least = max(1, math.ceil(proposal.run_settings.federation.quorum * len(proposal.roster)))
    return job_files(proposal.run, proposal.roster, least, SERVER, PARTY)


class Supervisor:
    """A supervisor that submits jobs until one run is finished."""

    def __init__(
        self, federation: FederationDirectory, administrator: Administrator, say: Callable[[str], None]
    ) -> None:
        self._federation, self._registry, self._say = federation, RunRegistry(federation), say
        self._admin = administrator

    def supervise(self, job: Path, tries: int) -> Run:
        """Submit a job until its run is finished; give up after `tries` jobs in a row without a new round."""
        proposal = self._registry.current()
        check_job(job, files_of(self._federation, proposal))
        if self._registry.state(proposal.run).state != UNDER_WAY:
            self._registry.start()
        run, left, before = Run.open(self._federation.runs / proposal.run), tries, -1
        while self._registry.state(run.id).state == UNDER_WAY:
            if left == 0:
                raise ConfigError(
                    f"{tries} jobs brought run {run.id} no further: see {self._federation.directory}/server.log "
                    "and the logs of the sites; `tertulia nvflare supervise` goes on with it"
                )
            self._watch(self._running(run) or self._submit(job, run), run)
            now = _commits(run)
            left, before = (left - 1 if now == before else tries), now
        state = self._registry.state(run.id)
        if state.state != FINISHED:
            raise ConfigError(f"run {run.id} has {state.state}: {state.text}. When that is mended, supervise it again")
        return run

    def _running(self, run: Run) -> str | None:
        """Return the job that an earlier supervisor submitted last, if it still runs."""
        path = run.directory / _JOB
        job = path.read_text(encoding="utf-8") if path.exists() else ""
        return job if job and not self._patiently(lambda: self._admin.status(job)).over else None

    def _submit(self, job: Path, run: Run) -> str:
        self._wait_for_sites(run)
        number = str(self._patiently(lambda: self._admin.submit(job)))
        atomic_write(run.directory / _JOB, number.encode())
        self._say(f"job {number} is submitted")
        return number

    def _wait_for_sites(self, run: Run) -> None:
        """Wait until all members are connected; the next job leaves out those that are absent for too long."""
        until = time.monotonic() + self._federation.file.terms.absent_after
        while missing := set(run.parties) - set(self._patiently(self._admin.connected)):
            if time.monotonic() > until:
                self._say(f"absent, and left out of the next job: {', '.join(sorted(missing))}")
                return
            time.sleep(_LOOK)

    def _watch(self, job: str, run: Run) -> None:
        """Wait until a job is over; abort it if its run was abandoned."""
        while not (ending := self._patiently(lambda: self._admin.status(job))).over:
            if self._registry.state(run.id).state not in (UNDER_WAY, FINISHED, STOPPED):
                self._admin.abort(job)
            time.sleep(_LOOK)
        self._say(f"job {job}: {ending.status}")

    def _patiently(self, do: Callable[[], Any]) -> Any:
        """Call FLARE's server, and retry while it cannot be reached."""
        since, announced = time.monotonic(), False
        while True:
            try:
                return do()
            except ConnectionTrouble as error:
                if not announced and time.monotonic() - since > _TROUBLED:
                    self._say(f"waiting: {error}")
                    announced = True
                time.sleep(_LOOK)


def _commits(run: Run) -> int:
    """Return the round of a run's last commit."""
    commit, _ = run.journal().last()
    return commit.round if commit is not None else -1
