"""A run's directory: how it is laid out, and how it is opened, also after a crash.

run.json                  the settings
server/commit-*.safetensors
parties/<party>/          the party's own: party.json, policy.toml, corpus/, answers/, kept/, ledger.sqlite
model/                    the result
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tertulia._disk import atomic_write
from tertulia._kinds import fits
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.engines.base import EngineSetup, Transport, start_engine
from tertulia.federation.method_modules import check_pins, pins_of
from tertulia.federation.server.handle import Handle, RolledBack
from tertulia.federation.server.journal import Journal
from tertulia.federation.types import PartyId

FORMAT = 1
_LONGEST = 200  # characters of a directory's name
_FACTS = {"format": int, "id": str, "parties": list, "config": dict, "durable": bool}


@dataclass(frozen=True)
class Run:
    """A run, stored in a directory."""

    directory: Path
    id: str
    parties: tuple[PartyId, ...]
    config: dict[str, Any]
    durable: bool = True
    pins: Mapping[str, str] = field(default_factory=dict)  # a user's own method, and the hash of its source
    keys: Mapping[str, str] = field(default_factory=dict)  # members' roster keys, by fingerprint

    @classmethod
    def new(cls, directory: Path, parties: tuple[PartyId, ...], config: dict[str, Any], durable: bool = True) -> Run:
        """Make a run in a directory that holds none yet; nothing is written before `save`."""
        if (directory / "run.json").exists():
            raise ConfigError(
                f"{directory} holds a run already: `tertulia resume {directory}` goes on with it, and `tertulia run "
                "--fresh` moves it aside; or choose another name"
            )
        for party in parties:
            directory_name(party)
        return cls(directory, secrets.token_hex(8), parties, config, durable)

    def save(self) -> None:
        """Write `run.json`, once all parties have their homes: a directory that has it is complete."""
        facts = {
            "format": FORMAT,
            "id": self.id,
            "parties": self.parties,
            "durable": self.durable,
            "config": self.config,
            "pins": dict(self.pins),
            **({"keys": dict(self.keys)} if self.keys else {}),
        }
        self.directory.mkdir(parents=True, exist_ok=True)
        atomic_write(self.directory / "run.json", json.dumps(facts, indent=1).encode(), durable=self.durable)

    @classmethod
    def open(cls, directory: Path, methods: Sequence[str] = ()) -> Run:
        """Open a run that was begun before.

        A run of a user's own method needs the names of its modules here: a directory alone must not decide which code
        is run.
        """
        facts = _read(directory / "run.json")
        found, pinned = pins_of(methods), facts.get("pins", {})
        check_pins(methods, {module: pinned.get(module, pin) for module, pin in found.items()})
        keys = facts.get("keys", {})
        return cls(directory, facts["id"], tuple(facts["parties"]), facts["config"], facts["durable"], found, keys)

    @property
    def is_federated(self) -> bool:
        """Whether the parties are in organisations of their own."""
        return bool(self.keys) and not (self.directory / "parties").exists()

    def party_directory(self, party: PartyId) -> Path:
        """Return the directory of a party: one below `parties`, for any name."""
        return self.directory / "parties" / directory_name(party)

    def transport(
        self, engine: str, workers: int, corpora: Mapping[PartyId, Corpus] | None = None, address: str = "local"
    ) -> Transport:
        """Start the engine. Only the local one can use documents that are in this process's memory."""
        if self.is_federated:
            raise ConfigError(
                f"the parties of {self.directory} are in organisations of their own: `tertulia serve "
                f"{self.directory.resolve().parents[1]}` goes on with this run"
            )
        directories = {party: self.party_directory(party) for party in self.parties}
        return start_engine(engine, EngineSetup(directories, workers, corpora or {}, self.pins, address))

    def journal(self) -> Journal:
        """Open the journal of the server's commits."""
        return Journal(self.directory / "server", durable=self.durable)


def directory_name(party: PartyId) -> str:
    """Return the name of a party's directory: its own, with %-codes for characters that a file system could misread.

    >>> directory_name("../north")
    '%2E.%2Fnorth'
    """
    try:
        name = quote(party, safe=" ")
    except UnicodeEncodeError:
        raise ConfigError(f"a party cannot be called {party!r}: that is no text") from None
    if not party.strip():
        raise ConfigError("a party has an empty name: give it one")
    if len(name) > _LONGEST:  # file systems take 255 bytes; no other name is written with %~
        name = f"{name[: _LONGEST - 40]}%~{hashlib.blake2b(party.encode(), digest_size=16).hexdigest()}"
    return f"%2E{name[1:]}" if name.startswith(".") else name


def _read(path: Path) -> dict[str, Any]:
    """Read a `run.json`; raise `FormatError` if it is damaged."""
    try:
        facts: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ConfigError(f"{path.parent} is not a run's directory: it has no run.json") from None
    except OSError as error:
        raise FormatError(f"cannot read {path} ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is damaged ({error}): restore it from a backup") from error
    if isinstance(facts, dict) and fits(facts.get("format"), int) and facts["format"] > FORMAT:
        raise FormatError(
            f"{path.parent} was written in format {facts['format']}, this version reads up to {FORMAT}: "
            "upgrade with `pip install -U tertulia`"
        )
    wrong = [name for name, kind in _FACTS.items() if not (isinstance(facts, dict) and fits(facts.get(name), kind))]
    named = all(fits(facts.get(name, {}), dict[str, str]) for name in ("pins", "keys")) if not wrong else False
    if not named or not fits(tuple(facts["parties"]), tuple[str, ...]):
        what = ", ".join(wrong or ["parties, pins or keys"])
        raise FormatError(f"{path} is damaged ({what}): restore it from a backup")
    try:
        names = {directory_name(party) for party in facts["parties"]}
    except ConfigError as error:
        raise FormatError(f"{path} is damaged ({error}): restore it from a backup") from error
    if len(names) < len(facts["parties"]):
        raise FormatError(f"{path} is damaged (a party is named twice): restore it from a backup")
    return facts


def drive(handle: Handle, train: Callable[[Handle, Any, Any], Any], config: Any) -> Any:
    """Run a method from its last commit to its end; this is also what resuming is."""
    while True:
        try:
            result = train(handle, config, handle.restore())
        except RolledBack:
            continue
        handle.finish()
        return result
