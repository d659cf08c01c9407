"""An administrator's session with FLARE: who is connected, a job submitted, and what became of it."""

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

GONE = "gone"  # what becomes of a job that a server has lost, by its end or with its store
_RUNNING = "RUNNING"
_PATIENCE = 10.0  # seconds for a session to begin
_AWAY = (api_spec.NoConnection, api_spec.SessionClosed, api_spec.InternalError, api_spec.NoReply, OSError, RuntimeError)


class Ending(NamedTuple):
    """How far a job has come."""

    status: str

    @property
    def over(self) -> bool:
        """Whether it runs no more."""
        return self.status == GONE or self.status.startswith("FINISHED")


class Administrator:
    """Whoever has the admin kit; a session that broke is opened anew, since servers come and go."""

    def __init__(self, directory: Path) -> None:
        self._kit = Kit.open(directory, "admin")
        self._session: Session | None = None
        logging.getLogger("nvflare").setLevel(logging.CRITICAL)  # what matters is said by us

    def connected(self) -> list[str]:
        """The sites that are there now."""
        return [client.name for client in self._do(lambda session: session.get_system_info()).client_info]

    def submit(self, job: Path) -> str:
        """Submit a job; its id."""
        try:
            return str(self._do(lambda session: session.submit_job(str(job.resolve()))))
        except api_spec.InvalidJobDefinition as error:
            raise ConfigError(f"FLARE does not take {job}: {error}") from None

    def ending(self, job: str) -> Ending:
        """How far a job has come; a server that was killed says for ever that its jobs run."""
        try:
            ending = Ending(str(self._do(lambda session: session.get_job_meta(job)).get("status", "")))
        except api_spec.JobNotFound:
            return Ending(GONE)
        if ending.status == _RUNNING:
            running = self._do(lambda session: session.get_system_info()).job_info
            return ending if job in [one.job_id for one in running] else Ending(GONE)
        return ending

    def abort(self, job: str) -> None:
        """End a job that still runs."""
        with suppress(api_spec.JobNotRunning, api_spec.JobNotFound):
            self._do(lambda session: session.abort_job(job))

    def close(self) -> None:
        """Leave."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):  # it is being left
                session.close()

    def _do(self, use: Callable[[Session], Any]) -> Any:
        try:
            with redirect_stdout(io.StringIO()):  # FLARE tells the terminal that it connects
                if self._session is None:
                    self._session = new_secure_session(self._kit.name, str(self._kit.directory), timeout=_PATIENCE)
                return use(self._session)
        except (api_spec.AuthenticationError, api_spec.AuthorizationError) as error:
            self.close()
            raise ConfigError(f"FLARE does not let {self._kit.directory} do this: {error}") from None
        except _AWAY as error:
            self.close()
            raise ConnectionTrouble(f"the FLARE server cannot be reached ({error}): start it, or look at it") from None
