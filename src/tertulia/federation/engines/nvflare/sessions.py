"""An administrator's session with FLARE: connected sites, jobs to submit, and their status."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

from nvflare.fuel.flare_api import api_spec
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session

from tertulia.errors import ConfigError, ConnectionTrouble
from tertulia.federation.engines.nvflare.kits import Kit

GONE = "gone"  # the status of a job that the server does not know any more
_RUNNING = "RUNNING"
_PATIENCE = 10.0  # seconds for a session to start
_AWAY = (api_spec.NoConnection, api_spec.SessionClosed, api_spec.InternalError, api_spec.NoReply, OSError, RuntimeError)


class JobStatus(NamedTuple):
    """The status of a job."""

    status: str

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.status == GONE or self.status.startswith("FINISHED")


class Administrator:
    """The holder of the admin kit; a session that broke is opened again, as servers restart."""

    def __init__(self, directory: Path) -> None:
        self._kit = Kit.open(directory, "admin")
        self._session: Session | None = None
        logging.getLogger("nvflare").setLevel(logging.CRITICAL)  # our own errors say the same

    def connected(self) -> list[str]:
        """Return the sites that are connected now."""
        return [client.name for client in self._do(lambda session: session.get_system_info()).client_info]

    def submit(self, job: Path) -> str:
        """Submit a job; return its id."""
        try:
            return str(self._do(lambda session: session.submit_job(str(job.resolve()))))
        except api_spec.InvalidJobDefinition as error:
            raise ConfigError(f"FLARE does not take {job}: {error}") from None

    def status(self, job: str) -> JobStatus:
        """Return the status of a job. A server that was killed reports its jobs as running; these are gone."""
        try:
            status = JobStatus(str(self._do(lambda session: session.get_job_meta(job)).get("status", "")))
        except api_spec.JobNotFound:
            return JobStatus(GONE)
        if status.status == _RUNNING:
            running = self._do(lambda session: session.get_system_info()).job_info
            return status if job in [one.job_id for one in running] else JobStatus(GONE)
        return status

    def abort(self, job: str) -> None:
        """End a job that still runs."""
        with suppress(api_spec.JobNotRunning, api_spec.JobNotFound):
            self._do(lambda session: session.abort_job(job))

    def close(self) -> None:
        """Close the session."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):  # the session is given up in any case
                session.close()

    def _do(self, use: Callable[[Session], Any]) -> Any:
        try:
            with redirect_stdout(io.StringIO()):  # FLARE prints to the terminal that it connects
                if self._session is None:
                    self._session = new_secure_session(self._kit.name, str(self._kit.directory), timeout=_PATIENCE)
                return use(self._session)
        except (api_spec.AuthenticationError, api_spec.AuthorizationError) as error:
            self.close()
            raise ConfigError(f"FLARE does not let {self._kit.directory} do this: {error}") from None
        except _AWAY as error:
            self.close()
            raise ConnectionTrouble(f"the FLARE server cannot be reached ({error}): start it, or look at it") from None
