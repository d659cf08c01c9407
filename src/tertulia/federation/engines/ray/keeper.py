"""A Ray of a run's own, kept by a process of its own: when the run ends, even by `kill -9`, nothing of it stays.

It listens on loopback alone and lets in only who has the token.
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
_STORE = 1 << 30  # bytes for frames on their way; what is more goes to disk
_PATIENCE = 10.0  # seconds for what was killed to be gone


def keep(folder: Path) -> None:
    """Start Ray, say where it is, and end it when standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which then lets go of us
    try:
        context = ray.init(
            "local", include_dashboard=False, object_store_memory=_STORE, log_to_driver=False, logging_level="error",
            _node_ip_address=_LOOPBACK, _temp_dir=str(folder), _system_config={"prestart_worker_first_driver": False},
        )  # fmt: skip
        if (host := context.address_info["node_ip_address"]) != _LOOPBACK:
            raise SystemExit(f"it listens at {host}, not on loopback alone")
        with suppress(BrokenPipeError):  # the run has ended meanwhile
            print(context.address_info["address"], flush=True)
        sys.stdin.buffer.read()
    finally:
        # Nobody needs this Ray any more. To shut it down in order is to wait for those of it that may have died.
        _end_session()
    shutil.rmtree(folder, ignore_errors=True)


def _end_session() -> None:
    """End all others, until there are none.

    Who has been killed may write for a moment more, into the folder that is removed next, or start another.
    """
    until = time.monotonic() + _PATIENCE
    while (left := _of_session()) and time.monotonic() < until:
        for pid in left:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    with suppress(ChildProcessError):  # there is none any more
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _of_session() -> list[int]:
    """The other living processes of our session."""
    pids = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if pid != os.getpid() and _lives_with_us(pid)]


def _lives_with_us(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return os.getsid(pid) == os.getsid(0) and state not in "XZ"
    except OSError:  # it has just ended
        return False


if __name__ == "__main__":
    try:
        keep(Path(sys.argv[1]))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # at an orderly exit this process, too, would say goodbye to a Ray that is gone
