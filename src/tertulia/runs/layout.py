"""A run's directory: what it is, how it is laid out, and how it is opened, now or after a crash.

run.json                  what was asked for
server/commit-*.safetensors
parties/<party>/          the party's own: party.json, policy.toml, corpus/, answers/, kept/, ledger.sqlite
model/                    the result
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tertulia._disk import atomic_write
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.engines.base import EngineSetup, Transport, start_engine
from tertulia.federation.server.handle import Handle, RolledBack
from tertulia.federation.server.journal import Journal
from tertulia.federation.types import PartyId

FORMAT = 1


@dataclass(frozen=True)
class Run:
    """One federation's directory."""

    directory: Path
    id: str
    parties: tuple[PartyId, ...]
    config: dict[str, Any]
    durable: bool = True

    @classmethod
    def new(cls, directory: Path, parties: tuple[PartyId, ...], config: dict[str, Any], durable: bool = True) -> Run:
        """A run in a directory that holds none yet; nothing is written before `save`."""
        if (directory / "run.json").exists():
            raise ConfigError(f"{directory} holds a run already: `tertulia resume {directory}`, or choose another name")
        return cls(directory, secrets.token_hex(8), parties, config, durable)

    def save(self) -> None:
        """Write `run.json`, once all parties have their homes: a directory that has it is complete."""
        facts = {
            "format": FORMAT,
            "id": self.id,
            "parties": self.parties,
            "durable": self.durable,
            "config": self.config,
        }
        self.directory.mkdir(parents=True, exist_ok=True)
        atomic_write(self.directory / "run.json", json.dumps(facts, indent=1).encode(), durable=self.durable)

    @classmethod
    def open(cls, directory: Path) -> Run:
        """Open a run that was begun before."""
        try:
            facts = json.loads((directory / "run.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(f"{directory} is not a run's directory: it has no run.json") from None
        except ValueError as error:
            raise FormatError(f"{directory / 'run.json'} is damaged ({error}): restore it from a backup") from error
        if facts["format"] > FORMAT:
            raise FormatError(
                f"{directory} was written in format {facts['format']}, this version reads up to {FORMAT}: "
                "upgrade with `pip install -U tertulia`"
            )
        return cls(directory, facts["id"], tuple(facts["parties"]), facts["config"], facts["durable"])

    def party_directory(self, party: PartyId) -> Path:
        """Where a party lives; whatever its name, it is one directory below `parties`."""
        name = quote(party, safe=" ")
        return self.directory / "parties" / (f"%2E{name[1:]}" if name.startswith(".") else name)

    def transport(self, engine: str, workers: int, corpora: Mapping[PartyId, Corpus] | None = None) -> Transport:
        """Start the engine. Only the local one can use documents that are in this process's memory."""
        directories = {party: self.party_directory(party) for party in self.parties}
        return start_engine(engine, EngineSetup(directories, workers, corpora or {}))

    def journal(self) -> Journal:
        """The server's commits."""
        return Journal(self.directory / "server", durable=self.durable)


def drive(handle: Handle, train: Callable[[Handle, Any, Any], Any], config: Any) -> Any:
    """Run a method from its last commit to its end; this is also what resuming is."""
    while True:
        try:
            result = train(handle, config, handle.restore())
        except RolledBack:
            continue
        handle.flush()
        return result
