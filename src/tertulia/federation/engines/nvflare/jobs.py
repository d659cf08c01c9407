"""The job that FLARE runs: it names classes that every site has installed, a roster and a run. No code, and no path.

Within a job, calls are short, even if a step takes long: a site answers `NOT_YET` until its reply is ready.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.engines.nvflare.kits import COLLAB

NOT_YET = b""  # the answer is not ready: the server asks again, with an empty frame
WAIT = 5.0  # seconds for which a site holds a call until its answer is ready
SERVER = "server"  # FLARE's name of the server
_META, _APP = "meta.json", "app"
_SERVER, _CLIENT = f"{_APP}/config/config_fed_server.json", f"{_APP}/config/config_fed_client.json"
_SIGNATURES = ".__nvfl_"
_SYNC = 600  # seconds for sites to start: imports and compiled kernels take time


def job_files(run: str, roster: Sequence[str], least: int, server: str, site: str) -> dict[str, Any]:
    """Return the files of a job's folder; `server` and `site` are the classes that do the work."""
    controller, executor = COLLAB
    workflow = {"id": "controller", "path": controller, "args": {"server_obj_id": "run", "sync_task_timeout": _SYNC}}
    calls = {"tasks": ["*"], "executor": {"path": executor, "args": {"client_obj_id": "party"}}}
    return {
        _META: {
            "name": f"tertulia-{run}",
            "resource_spec": {},
            "min_clients": least,
            "deploy_map": {_APP: ["server", *roster]},
        },
        _SERVER: {
            "format_version": 2,
            "workflows": [workflow],
            "components": [{"id": "run", "path": server, "args": {"run": run}}],
        },
        _CLIENT: {
            "format_version": 2,
            "executors": [calls],
            "components": [{"id": "party", "path": site, "args": {}}],
        },
    }


def write_job(directory: Path, files: dict[str, Any]) -> None:
    """Write a job's folder; raise `ConfigError` if the folder holds other files."""
    if directory.exists() and (strange := _found(directory) - set(files)):
        raise ConfigError(f"{directory} holds {sorted(strange)[0]}, which is no file of a job: choose another folder")
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        atomic_write(directory / name, json.dumps(content, indent=2).encode())


def check_job(directory: Path, files: dict[str, Any]) -> None:
    """Raise an error unless a folder is exactly this job, so that nobody submits a job that was changed."""
    if not (directory / _META).exists():
        raise ConfigError(f"{directory} is no job: `tertulia nvflare export` writes one")
    try:
        same = _found(directory) == set(files) and all(
            json.loads((directory / name).read_bytes()) == content for name, content in files.items()
        )
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(
            f"{directory} cannot be read ({error}): write it again with `tertulia nvflare export`"
        ) from error
    if not same:
        raise ConfigError(
            f"{directory} is not the job of the run that is proposed now: write it again with `tertulia nvflare export`"
        )


def _found(directory: Path) -> set[str]:
    """Return the files of a folder, without the signatures that FLARE adds when a job is submitted."""
    paths = [path for path in directory.rglob("*") if not path.is_dir() and not path.name.startswith(_SIGNATURES)]
    return {path.relative_to(directory).as_posix() for path in paths}
