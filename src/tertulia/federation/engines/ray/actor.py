"""The Ray actor: one party, in a process of its own, on any node of the cluster."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import tertulia
from tertulia.federation.codec import encode
from tertulia.federation.messages import Answer


class PartyActor:
    """A party that answers frames."""

    def __init__(self, directory: str, pins: Mapping[str, str], folders: Sequence[str], here: tuple[str, str]) -> None:
        self._stack = ExitStack()
        self._answer: Callable[[bytes], bytes]
        if trouble := _trouble_or_none(directory, *here):
            failure = encode(Answer("failed", trouble, None))
            self._answer = lambda frame: failure
            return
        from tertulia.federation.engines.party_process import host_party
        from tertulia.federation.party import failures

        os.chdir(here[0])  # paths may be relative
        sys.path[:0] = folders
        log = os.open(Path(directory) / failures.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, sys.stderr.fileno())  # not to Ray's logs, which outlive the run on each node
        os.close(log)
        self._answer = self._stack.enter_context(host_party(Path(directory), pins))

    def answer(self, frame: bytes) -> bytes:
        """Answer a frame."""
        return self._answer(frame)

    def leave(self) -> None:
        """Release the party's directory."""
        self._stack.close()


def _trouble_or_none(directory: str, working_directory: str, version: str) -> str | None:
    """Return the reason why a party cannot run on this node, if there is one."""
    node = platform.node()
    if version != tertulia.__version__:
        return f"node {node} has Tertulia {tertulia.__version__}, not {version}: install the same on all nodes"
    for path in (directory, working_directory):
        if not Path(path).is_dir():
            return f"{path} is not seen on node {node}: on a cluster a run lives on storage that all nodes share"
    return None
