"""The interface of engines, and the list of them.

A new engine is a module with a function `start(setup) -> Transport`, and a line in `ENGINES`. Modules are imported when
an engine is asked for, since some need optional packages.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol

from tertulia._memory import keep_blocks
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError
from tertulia.federation import packing
from tertulia.federation.method_modules import folders_of
from tertulia.federation.types import PartyId

ENGINES = {
    "local": "tertulia.federation.engines.local",
    "processes": "tertulia.federation.engines.processes",
    "grpc": "tertulia.federation.engines.grpc.loopback",
    "ray": "tertulia.federation.engines.ray.transport",
}
APART = ("nvflare",)  # engines between organisations only, which cannot be started on one machine
MOST_BYTES = packing.MOST_BYTES  # of a frame


class Transport(Protocol):
    """Carries frames of bytes to the parties and back, and lists the parties."""

    @property
    def parties(self) -> Sequence[PartyId]:
        """All parties that can be reached, in the federation's order."""

    def ask(
        self, frames: Mapping[PartyId, bytes], timeout: float | None, enough: int | None = None
    ) -> dict[PartyId, bytes]:
        """Send each party its frame, all at once; return the answers of those that answered within `timeout` seconds.

        With `enough`, an engine need not wait for more answers than that. An answer that comes later is dropped. A
        party that dies may be started again and asked again: its answer log makes the repeat harmless.
        """

    def close(self) -> None:
        """Release the parties."""


@dataclass(frozen=True)
class EngineSetup:
    """The arguments of an engine."""

    directories: Mapping[PartyId, Path]  # of the parties, in the federation's order
    workers: int = 1  # parties of one process that may work at the same time
    corpora: Mapping[PartyId, Corpus] = field(default_factory=dict)  # documents in memory; only `local` can use them
    pins: Mapping[str, str] = field(default_factory=dict)  # modules of users' own methods, and their hashes
    address: str = "local"  # of the cluster, for `ray`


def environment(pins: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a party's process: ours, and the folders of users' methods."""
    paths = [*folders_of(pins), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | ({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})


def check_engine(name: str) -> str:
    """Return the name of an engine that exists; raise `ConfigError` for any other."""
    if name not in (*ENGINES, *APART):
        raise ConfigError(f"there is no engine '{name}': use one of {', '.join(map(repr, ENGINES))}")
    return name


def check_starts_here(name: str) -> None:
    """Raise `ConfigError` for an engine that carries runs between organisations only."""
    if name in APART:
        raise ConfigError(
            f"engine '{name}' carries runs between organisations, see docs/{name}.md: on one machine use one of "
            f"{', '.join(map(repr, ENGINES))}"
        )


def start_engine(name: str, setup: EngineSetup) -> Transport:
    """Start the engine of this name."""
    check_starts_here(name)
    keep_blocks()
    transport: Transport = import_module(ENGINES[check_engine(name)]).start(setup)
    return transport
