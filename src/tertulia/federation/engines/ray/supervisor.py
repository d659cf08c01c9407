"""The process that runs a Ray of a run's own: when the run ends, even by `kill -9`, it ends all of Ray's processes.

This Ray listens on loopback only, and requires the token.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

import ray

_LOOPBACK = "127.0.0.1"
_STORE = 1 << 30  # bytes of Ray's object store, for frames; beyond, Ray spills to disk
_PATIENCE = 10.0  # seconds for killed processes to end


def supervise(folder: Path) -> None:
    """Start Ray, print its address, and end it when standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which then closes our standard input
    try:
        context = ray.init(
            "local", include_dashboard=False, object_store_memory=_STORE, log_to_driver=False, logging_level="error",
            _node_ip_address=_LOOPBACK, _temp_dir=str(folder), _system_config={"prestart_worker_first_driver": False},
        )  # fmt: skip
        if (host := context.address_info["node_ip_address"]) != _LOOPBACK:
            raise SystemExit(f"it listens at {host}, not on loopback alone")
        with suppress(BrokenPipeError):  # the run has ended
            print(context.address_info["address"], flush=True)
        sys.stdin.buffer.read()
    finally:
        # Kill Ray: an orderly shutdown would wait for processes that may be dead.
        _end_session()
    shutil.rmtree(folder, ignore_errors=True)


def _end_session() -> None:
    """Kill the other processes of the session until none is left.

    A process that is being killed may still write into the folder that is removed next, or start another process.
    """
    until = time.monotonic() + _PATIENCE
    while (left := _of_session()) and time.monotonic() < until:
        for pid in left:
            with suppress(ProcessLookupError):  # it has ended
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    with suppress(ChildProcessError):  # no child is left
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _of_session() -> list[int]:
    """Return the other live processes of our session."""
    pids = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if pid != os.getpid() and _is_live_in_session(pid)]


def _is_live_in_session(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return os.getsid(pid) == os.getsid(0) and state not in "XZ"
    except OSError:  # it has ended
        return False


if __name__ == "__main__":
    try:
        supervise(Path(sys.argv[1]))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # an orderly exit would contact the Ray that has just ended
