"""The Ray cluster that carries a run: one of its own, on loopback only, or a running one; always with a token."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import ray

from tertulia.errors import ConfigError, ConnectionTrouble

TOKEN = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_REMEDY = "set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH, or put the cluster's token into ~/.ray/auth_token"
_LONGEST = 40  # characters of a folder's path: Ray puts sockets there
_PATIENCE = 60.0  # seconds for our own Ray to end


@contextmanager
def connection(address: str) -> Iterator[None]:
    """Connect to the Ray at this address, and disconnect at the end; keep a connection that this process had before."""
    if os.environ.get("RAY_AUTH_MODE", "disabled").lower() == "disabled":
        raise ConfigError(
            "Ray is used without tokens here, and anybody who reaches such a cluster runs code on it: set "
            "RAY_AUTH_MODE=token for Tertulia and for all nodes, before Ray is imported"
        )
    if ray.is_initialized():
        if address != "auto":
            raise ConfigError(f"this process is connected to Ray already: use address = 'auto', not '{address}'")
        yield
        return
    with ExitStack() as stack:
        _connect(stack.enter_context(_own_ray()) if address == "local" else address)
        stack.callback(ray.shutdown)
        yield


def _connect(address: str) -> None:
    """Connect to a running cluster."""
    where = "a Ray cluster" if address == "auto" else f"the Ray cluster at {address}"
    if address != "auto":
        _check_listening(address)
    try:
        ray.init(address, log_to_driver=False, logging_level="error")
        # Ray prints messages about dead workers to standard output, which belongs to the run.
        ray._private.worker.print_to_stdstream = lambda data, ignore_prefix: None
    except ray.exceptions.AuthenticationError as error:
        raise ConfigError(f"there is no token for {where}: {_REMEDY}") from error
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RaySystemError) as error:
        causes = f"{error} {error.__cause__} {error.__context__}"
        if "AuthenticationError" in causes or "InvalidAuthToken" in causes:
            raise ConfigError(f"the token is not that of {where}: {_REMEDY}") from error
        raise ConnectionTrouble(
            f"cannot join {where}: start it with `ray start` on this machine, too, or use address = 'local'"
        ) from error


def _check_listening(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise ConnectionTrouble(f"no Ray cluster answers at {address} ({error}): is its head node running?") from error


@contextmanager
def _own_ray() -> Iterator[str]:
    """Start Ray on loopback, under a supervisor that ends it even if we are killed; yield its address."""
    parent = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="tertulia-ray-", dir=parent if len(parent) < _LONGEST - 22 else "/tmp"))  # noqa: S108
    if not (any(map(os.environ.get, TOKEN)) or (Path.home() / ".ray" / "auth_token").exists()):
        os.environ[TOKEN[0]] = secrets.token_hex(32)  # for the life of this process: Ray reads its token once
    log = (folder / "supervisor.log").open("wb")
    command = [sys.executable, "-P", "-m", "tertulia.federation.engines.ray.supervisor", str(folder)]
    environment = os.environ | {"RAY_NUM_REDIS_GET_RETRIES": "60", "RAY_USAGE_STATS_ENABLED": "0"}
    with log, subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment,
        start_new_session=True,
    ) as supervisor:  # fmt: skip
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        try:
            address = supervisor.stdout.readline().decode().strip()
            if not address:
                supervisor.wait(_PATIENCE)
                said = (folder / "supervisor.log").read_text(errors="replace").strip().splitlines()
                raise ConnectionTrouble(f"Ray did not start ({said[-1] if said else 'without a word'}): see {folder}")
            yield address
        finally:
            with contextlib.suppress(OSError):
                supervisor.stdin.close()
            try:
                supervisor.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                supervisor.kill()
