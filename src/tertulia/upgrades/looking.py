"""Recognise what is at a path: files and directories that some version of Tertulia wrote. Nothing is touched."""

from __future__ import annotations

import copy
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tertulia.corpus import storage as corpora
from tertulia.errors import ConfigError, TertuliaError
from tertulia.federation.identity.invitations import Invitation
from tertulia.models import storage as models
from tertulia.privacy.home import KEY, LEDGER
from tertulia.privacy.policy import Policy
from tertulia.runs import federations, membership
from tertulia.runs.config import settings_from
from tertulia.runs.former import carry_settings
from tertulia.upgrades.homes import look_at_home
from tertulia.upgrades.items import AS_IT_IS, FileChange, Item, newer, read_json
from tertulia.upgrades.lines import rewrite
from tertulia.upgrades.runs import look_at_party, look_at_run

BACKUP = ".before-upgrade-"  # in the names of backups, which are left alone
_INSIDE = {"answers", "authority", "identity", "kept", "server", "words"}  # folders that belong to what is around them


def look(path: Path) -> list[Item]:
    """Everything that is recognised at a path; raise `ConfigError` if there is nothing."""
    if not path.exists():
        raise ConfigError(f"there is no {path}")
    if path.is_file():
        found = list(_file(path))
    else:
        found = [item for directory, names in _directories(path) for item in _directory(directory, names)]
    if not found:
        raise ConfigError(f"{path} holds nothing that Tertulia has written: give a home, a run, a model or a TOML file")
    return found


def _directories(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """All directories, in order, but for those inside of something that is recognised as a whole."""
    for place, inside, names in os.walk(root):
        inside[:] = sorted(
            name
            for name in inside
            if name not in _INSIDE and not name.startswith((".", "corpus-arrays-")) and BACKUP not in name
        )
        yield Path(place), sorted(names)


def _directory(directory: Path, names: list[str]) -> Iterator[Item]:
    in_run = directory.parent.name == "parties" and (directory.parents[1] / "run.json").exists()
    if "run.json" in names:
        yield from look_at_run(directory)
    if "party.json" in names and not in_run:  # else it was looked at with its run
        yield look_at_party(directory)
    if LEDGER in names or KEY in names:
        fixed = read_json(directory / "party.json").get("noise_key") if "party.json" in names else None
        yield look_at_home(directory, fixed)
    if "model.json" in names:
        yield _stored("model", directory, "model.json", models.FORMAT)
    if corpora.MARK in names:
        yield _stored("corpus", directory, corpora.MARK, corpora.FORMAT)
    for name in names:
        yield from _named(directory / name)


def _file(path: Path) -> Iterator[Item]:
    """What a file is, or is part of."""
    parts = {"run.json", "party.json", LEDGER, KEY, "model.json", "topics.safetensors", corpora.MARK}
    if path.name in parts:
        yield from _directory(path.parent, sorted(other.name for other in path.parent.iterdir()))
    else:
        yield from _named(path)


def _named(path: Path) -> Iterator[Item]:
    """A file that stands for itself."""
    if path.suffix == ".invite":
        yield _readable("invitation", path, lambda: Invitation.load(path))
    elif path.suffix == ".toml":
        yield from _toml(path)


def _stored(kind: str, directory: Path, mark: str, most: int) -> Item:
    """A model or a corpus, whose file says its format."""
    version = read_json(directory / mark).get("format")
    if isinstance(version, int) and version > most:
        raise newer(directory / mark, version, most)
    item = _readable(
        kind, directory, lambda: models.load(directory) if kind == "model" else corpora.read(directory, True)
    )
    return item._replace(found=f"format {version}")


def _readable(kind: str, path: Path, read: Any) -> Item:
    """A thing of which every version is read."""
    try:
        read()
    except TertuliaError as error:
        return Item(kind, path, "", f"cannot be read: {error}", wrong=True)
    return Item(kind, path, "", AS_IT_IS)


def _toml(path: Path) -> Iterator[Item]:
    try:
        text = path.read_text(encoding="utf-8")
        raw = tomllib.loads(text)
    except (OSError, ValueError, RecursionError):
        return  # whatever it is
    if path.name == membership.FILE and "federation" in raw:
        yield _readable("settings", path, lambda: membership.PartyDirectory(path.parent).file)
    elif path.name == federations.FILE and "members" in raw:
        yield _readable("settings", path, lambda: federations.Federation(path.parent).file)
    elif {"allow_clear", "declared_public", "budget"} & raw.keys() or path.name == membership.POLICY:
        yield _readable("policy", path, lambda: Policy.parse(text, str(path)))
    elif any(isinstance(raw.get(name), dict) for name in ("method", "parties", "data")):
        yield _run_settings(path, text, raw)


def _run_settings(path: Path, text: str, raw: dict[str, Any]) -> Item:
    """The settings of a run, in a file that people wrote."""
    try:
        wanted = carry_settings(raw)
        notes = _carry_homes(wanted, path.parent)
        settings_from(copy.deepcopy(wanted), path.parent)
        if wanted == raw:
            return Item("settings", path, "", AS_IT_IS)
        data = rewrite(text, wanted).encode()
    except TertuliaError as error:
        return Item("settings", path, "", f"cannot be carried over: {error}", wrong=True)
    moved = [*notes, *(["keys of [method] have the place of now"] if raw.get("method") != wanted.get("method") else [])]
    return Item("settings", path, "earlier keys", "; ".join(moved), (FileChange(path, data),))


def _carry_homes(settings: dict[str, Any], base: Path) -> list[str]:
    """Homes that were once found from the working directory are found from the file now: they keep their place."""
    notes, parties = [], settings.get("parties")
    for name, party in parties.items() if isinstance(parties, dict) else ():
        home = party.get("home") if isinstance(party, dict) else None
        if not isinstance(home, str) or Path(home).is_absolute() or (base / home / LEDGER).exists():
            continue
        if (Path(home) / LEDGER).exists():
            party["home"] = str(Path(home).resolve())
            notes.append(f"the home of '{name}' stays where its ledger is")
    return notes
