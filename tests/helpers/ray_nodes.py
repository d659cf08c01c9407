"""A Ray cluster of several nodes on this machine, in a process of its own; tests connect to it and kill its nodes.

A node is a raylet with its workers. A client needs the cluster's token.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from helpers.forker import PATIENCE

_HOST = "127.0.0.1"
_SYSTEM = {
    "health_check_period_ms": 300,
    "health_check_failure_threshold": 3,
}  # instead of 15 s until a node counts as dead
_SYSTEM |= {"prestart_worker_first_driver": False, "enable_worker_prestart": False}  # workers that nothing uses


class Nodes:
    """A cluster whose nodes can be killed; `close` ends all of its processes."""

    def __init__(self, number: int, cpus: int = 2) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp")  # Ray's sockets have long names
        self.token = os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32)
        env = os.environ | {"RAY_AUTH_TOKEN": self.token, "RAY_TMPDIR": self.folder.name}
        env |= {"RAY_NUM_REDIS_GET_RETRIES": "30", "RAY_USAGE_STATS_ENABLED": "0"}
        command = [sys.executable, "-m", "helpers.ray_nodes", str(number), str(cpus)]
        with (Path(self.folder.name) / "log").open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=env, start_new_session=True
            )
        self.address, self.raylets = json.loads(self.process.stdout.readline())

    def kill(self, raylet: int) -> None:
        """Kill a node: its raylet, and all that the raylet has started."""
        for pid in [*children(raylet), raylet]:
            with suppress(ProcessLookupError):  # a worker that has just ended
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """End all nodes."""
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if os.getsid(int(entry.name)) == self.process.pid:
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:  # it has just ended
                continue
        self.process.communicate(timeout=PATIENCE)
        self.folder.cleanup()


def children(pid: int) -> list[int]:
    """Return the children of a process."""
    return list(map(int, subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()))


def parent(pid: int) -> int:
    """Return the parent of a process; for an actor, its node's raylet."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _keep(number: int, cpus: int) -> None:
    import_module("tertulia.federation.engines.ray")  # sets Ray's environment before its import
    from ray.cluster_utils import Cluster

    node = {"node_ip_address": _HOST, "num_cpus": cpus, "include_dashboard": False, "object_store_memory": 1 << 28}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "_system_config": _SYSTEM})
    for _ in range(number - 1):
        cluster.add_node(**node)
    raylets = [process.process.pid for one in cluster.list_all_nodes() for process in one.all_processes["raylet"]]
    print(json.dumps([cluster.address, raylets]), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _keep(int(sys.argv[1]), int(sys.argv[2]))
