"""Which Ray carries a run: one of its own, on loopback alone, or a cluster that is there; always with a token."""

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
_LONGEST = 40  # characters of a folder in which Ray can still name its sockets
_PATIENCE = 60.0  # seconds for a Ray of our own to end


@contextmanager
def joined(address: str) -> Iterator[None]:
    """Be connected to the Ray at this address, and leave it; what was there before stays."""
    if os.environ.get("RAY_AUTH_MODE", "disabled").lower() == "disabled":
        raise ConfigError(
            "Ray is used without tokens here, and whoever reaches such a cluster runs code on it: set "
            "RAY_AUTH_MODE=token for Tertulia and for all nodes, before Ray is imported"
        )
    if ray.is_initialized():
        if address != "auto":
            raise ConfigError(f"this process is connected to Ray already: use address = 'auto', not '{address}'")
        yield
        return
    with ExitStack() as stack:
        _join(stack.enter_context(_own()) if address == "local" else address)
        stack.callback(ray.shutdown)
        yield


def _join(address: str) -> None:
    """Connect to a cluster that is there."""
    where = "a Ray cluster" if address == "auto" else f"the Ray cluster at {address}"
    if address != "auto":
        _check_listening(address)
    try:
        ray.init(address, log_to_driver=False, logging_level="error")
        # It prints its thoughts about dead workers to standard output, which is the run's.
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
def _own() -> Iterator[str]:
    """Start a Ray on loopback, in a process that ends it with us, however we end; give its address."""
    parent = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="tertulia-ray-", dir=parent if len(parent) < _LONGEST - 22 else "/tmp"))  # noqa: S108
    if not (any(map(os.environ.get, TOKEN)) or (Path.home() / ".ray" / "auth_token").exists()):
        os.environ[TOKEN[0]] = secrets.token_hex(32)  # for as long as we live: Ray reads its token once
    log = (folder / "keeper.log").open("wb")
    command = [sys.executable, "-P", "-m", "tertulia.federation.engines.ray.keeper", str(folder)]
    environment = os.environ | {"RAY_NUM_REDIS_GET_RETRIES": "60", "RAY_USAGE_STATS_ENABLED": "0"}
    with log, subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment,
        start_new_session=True,
    ) as keeper:  # fmt: skip
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        try:
            address = keeper.stdout.readline().decode().strip()
            if not address:
                keeper.wait(_PATIENCE)
                said = (folder / "keeper.log").read_text(errors="replace").strip().splitlines()
                raise ConnectionTrouble(f"Ray did not start ({said[-1] if said else 'without a word'}): see {folder}")
            yield address
        finally:
            with contextlib.suppress(OSError):
                keeper.stdin.close()
            try:
                keeper.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                keeper.kill()
