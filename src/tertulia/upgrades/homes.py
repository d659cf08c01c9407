"""Homes of earlier versions: their ledgers, their keys, and where they are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tertulia.errors import FormatError
from tertulia.privacy import chain
from tertulia.privacy.home import KEY, LEDGER
from tertulia.privacy.noise import is_bound
from tertulia.privacy.releases import Release
from tertulia.privacy.snapshots import contents, snapshot, version_of
from tertulia.upgrades.items import AS_IT_IS, HomeChange, Item, newer

_KIND = "ledger and key"


def look_at_home(directory: Path, fixed_key: str | None = None) -> Item:
    """The ledger and the key of a directory that has one of them."""
    path, key = directory / LEDGER, directory / KEY
    if not path.exists():
        why = f"cannot be used: {LEDGER} is missing, restore it from a backup as new as {KEY}"
        return Item(_KIND, directory, "a key alone", why, wrong=True)
    with snapshot(path) as db:
        version, owner, entries = version_of(db), None, contents(db)
        if version > chain.FORMAT:
            raise newer(path, version, chain.FORMAT)
        if version:
            owner = chain.key_of(db)
    releases = [Release.from_json(body) for id_, body in entries if not id_.startswith((chain.MARK, chain.DOCUMENTS))]
    bound = fixed_key is not None or (key.exists() and is_bound(key))
    found = f"ledger {version or 'not begun'}, {'bound' if bound else 'not bound'} to its key"
    noisy = owner is not None or any(release.charges and not release.non_private for release in releases)
    if noisy and not key.exists() and fixed_key is None:
        why = f"cannot be used: {KEY} is missing, restore it from a backup as new as {LEDGER}"
        return Item(_KIND, directory, f"ledger {version} without its key", why, wrong=True)
    if version == chain.FORMAT and bound:
        return Item(_KIND, directory, found, AS_IT_IS)
    becomes = f"ledger {chain.FORMAT}, bound to its key; {len(releases)} releases stay charged"
    return Item(_KIND, directory, found, becomes, (HomeChange(directory, fixed_key),))


def find_home(home: str, run: str, places: Iterable[Path]) -> Path:
    """The home that a run has used, of which only a relative path is known; raise `FormatError` if it is not found.

    Its ledger must hold releases of the run: another home would begin the budget anew.
    """
    candidates = dict.fromkeys((place / home).resolve() for place in places)
    fitting = [path for path in candidates if (path / LEDGER).exists() and _charged(path / LEDGER, run)]
    if len(fitting) != 1:
        raise FormatError(
            f"its home is '{home}' from where the run was begun, and no ledger of this run is there from here: run "
            "`tertulia upgrade` in that directory, or write `home` from the root on"
        )
    return fitting[0]


def _charged(path: Path, run: str) -> bool:
    with snapshot(path) as db:
        if version_of(db) > chain.FORMAT:
            raise newer(path, version_of(db), chain.FORMAT)
        bodies = [json.loads(body) for _, body in contents(db)]
    return any(isinstance(body, dict) and body.get("run") == run for body in bodies)
