"""Recognise the files and directories of Tertulia at a path, and the conversions that they need. Nothing is written.

`CONVERSIONS` lists the steps from earlier formats to today's, oldest first. It is empty: no earlier format was ever
released. Files of unreleased versions are refused.
"""

from __future__ import annotations

import fnmatch
import json
import os
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tertulia.corpus import storage as corpora
from tertulia.errors import ConfigError, FormatError, TertuliaError
from tertulia.federation.identity.invitations import Invitation
from tertulia.federation.party.host import PartyConfig
from tertulia.models import storage as models
from tertulia.network.party import party_directory as membership
from tertulia.network.server import federation_directory as federations
from tertulia.privacy import chain
from tertulia.privacy.home import KEY, LEDGER
from tertulia.privacy.policy import Policy
from tertulia.privacy.snapshots import snapshot, version_of
from tertulia.runs.directory import FORMAT, Run
from tertulia.runs.settings import RunSettings, settings_from

TODAYS = "nothing: it is of today's format"
BACKUP = ".before-upgrade-"  # in the names of backups, which are not searched
EARLIER = "made by an earlier, unreleased version"
_INSIDE = {"answers", "authority", "identity", "kept", "server", "words"}  # folders that belong to what is around them
_CONVERTIBLE = ("run.json", "party.json", "*.toml")


@dataclass(frozen=True)
class Conversion:
    """A step from an earlier format of a file to the one after it."""

    what: str  # as `tertulia upgrade` describes it
    files: str  # a pattern of file names: one that `is_convertible` accepts
    convert: Callable[[bytes], bytes]  # returns a file that is not of the earlier format unchanged


CONVERSIONS: list[Conversion] = []


class Change(NamedTuple):
    """A file and its new contents."""

    path: Path
    data: bytes


class Item(NamedTuple):
    """A recognised file or directory."""

    kind: str
    path: Path
    found: str  # its format
    becomes: str
    changes: tuple[Change, ...] = ()
    wrong: bool = False  # it can be neither read nor converted


def is_convertible(name: str) -> bool:
    """Return whether a conversion may change files of this name: never a ledger, a key, a model or a corpus."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _CONVERTIBLE)


def recognise(path: Path) -> list[Item]:
    """Describe everything at a path; raise `ConfigError` if Tertulia has written none of it."""
    if not path.exists():
        raise ConfigError(f"there is no {path}")
    if path.is_file():
        found = list(_file(path))
    else:
        found = [item for directory, names in _directories(path) for item in _directory(directory, names)]
    if not found:
        raise ConfigError(f"{path} holds nothing that Tertulia has written: give a home, a run, a model or a TOML file")
    return found


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        facts = json.loads(path.read_bytes())
    except OSError as error:
        raise FormatError(f"cannot read {path} ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is damaged ({error}): restore it from a backup") from error
    if not isinstance(facts, dict):
        raise FormatError(f"{path} is damaged: restore it from a backup")
    return facts


def _directories(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Walk all directories in order, except for those inside of something that is recognised as a whole."""
    for place, inside, names in os.walk(root):
        inside[:] = sorted(
            name
            for name in inside
            if name not in _INSIDE and not name.startswith((".", "corpus-arrays-")) and BACKUP not in name
        )
        yield Path(place), sorted(names)


def _directory(directory: Path, names: list[str]) -> Iterator[Item]:
    if "run.json" in names:
        _check_not_newer(directory / "run.json", read_json(directory / "run.json").get("format"), FORMAT)
        yield _item("run", directory / "run.json", lambda data: _run_settings(directory, data))
    if "party.json" in names:
        yield _item("party", directory / "party.json", lambda _: PartyConfig.load(directory))
    if LEDGER in names or KEY in names:
        party = read_json(directory / "party.json") if "party.json" in names else {}
        yield _home(directory, fixed_key=party.get("noise_key") is not None)
    if "model.json" in names:
        yield _stored("model", directory / "model.json", models.FORMAT, models.load)
    if corpora.MARK in names:
        yield _stored("corpus", directory / corpora.MARK, corpora.FORMAT, lambda place: corpora.read(place, True))
    for name in names:
        yield from _named(directory / name)


def _file(path: Path) -> Iterator[Item]:
    """Describe a file, or the directory that it is a part of."""
    parts = {"run.json", "party.json", LEDGER, KEY, "model.json", "topics.safetensors", corpora.MARK}
    if path.name in parts:
        yield from _directory(path.parent, sorted(other.name for other in path.parent.iterdir()))
    else:
        yield from _named(path)


def _named(path: Path) -> Iterator[Item]:
    """Describe a file that is complete by itself."""
    if path.suffix == ".invite":
        yield _item("invitation", path, lambda _: Invitation.load(path))
    elif path.suffix == ".toml":
        yield from _toml(path)


def _toml(path: Path) -> Iterator[Item]:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return  # not a file of ours
    if path.name == membership.FILE and "federation" in raw:
        yield _item("settings", path, lambda _: membership.PartyDirectory(path.parent).file)
    elif path.name == federations.FILE and "members" in raw:
        yield _item("settings", path, lambda _: federations.FederationDirectory(path.parent).file)
    elif {"allow_clear", "declared_public", "budget"} & raw.keys() or path.name == membership.POLICY:
        yield _item("policy", path, lambda data: Policy.parse(data.decode(), str(path)))
    elif any(isinstance(raw.get(name), dict) for name in ("method", "parties", "data")):
        yield _item("settings", path, lambda data: settings_from(tomllib.loads(data.decode()), path.parent))


def _item(kind: str, path: Path, read: Callable[[bytes], object]) -> Item:
    """Convert a file as far as conversions know it; otherwise `read` must accept it as it is."""
    place = path if kind not in ("run", "party") else path.parent
    try:
        before = data = path.read_bytes()
        used = []
        for conversion in CONVERSIONS if is_convertible(path.name) else ():
            if fnmatch.fnmatchcase(path.name, conversion.files) and (new := conversion.convert(data)) != data:
                data = new
                used.append(conversion.what)
        if data != before:
            return Item(kind, place, "earlier", "; ".join(used), (Change(path, data),))
        read(data)
    except OSError as error:
        return Item(kind, place, "", f"cannot be read: {error.strerror}", wrong=True)
    except TertuliaError as error:
        return Item(kind, place, "", f"cannot be read: it is damaged, or {EARLIER} ({error})", wrong=True)
    return Item(kind, place, "", TODAYS)


def _run_settings(directory: Path, data: bytes) -> RunSettings:
    _ = Run.open(directory)
    try:
        return RunSettings(**json.loads(data)["config"])
    except (TypeError, RecursionError) as error:
        raise FormatError(f"{directory / 'run.json'} is damaged ({error}): restore it from a backup") from error


def _stored(kind: str, path: Path, most: int, read: Callable[[Path], object]) -> Item:
    """Describe a model or a corpus, whose file states its format."""
    version = read_json(path).get("format")
    _check_not_newer(path, version, most)
    item = _item(kind, path, lambda _: read(path.parent))
    return item._replace(path=path.parent, found=f"format {version}")


def _home(directory: Path, fixed_key: bool) -> Item:
    """Describe a ledger and its key."""
    kind, path, key = "ledger and key", directory / LEDGER, directory / KEY
    if not path.exists():
        why = f"cannot be used: {LEDGER} is missing, restore it from a backup as new as {KEY}"
        return Item(kind, directory, "a key alone", why, wrong=True)
    with snapshot(path) as db:
        version = version_of(db)
        _check_not_newer(path, version, chain.FORMAT)
        owner = chain.key_of(db) if version else None
    if 0 < version < chain.FORMAT:
        why = (
            f"it was {EARLIER}: keep it, and begin a home again in an empty directory, with what is left of the budget"
        )
        return Item(kind, directory, f"format {version}", why, wrong=True)
    if owner is not None and not key.exists() and not fixed_key:
        why = f"cannot be used: {KEY} is missing, restore it from a backup as new as {LEDGER}"
        return Item(kind, directory, f"format {version} without its key", why, wrong=True)
    return Item(kind, directory, f"format {version}" if version else "not begun", TODAYS)


def _check_not_newer(path: Path, found: object, most: int) -> None:
    if isinstance(found, int) and found > most:
        raise FormatError(
            f"{path} was made by a newer version: it has format {found}, and this one reads up to {most}. Install that "
            "version; nothing was touched"
        )
