"""Carry over what was found, under locks, with a backup beside it; or bring back what was there before.

What was spent stays spent: a ledger that was charged after an upgrade is never replaced by one that does not know it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from tertulia._disk import atomic_write
from tertulia._locks import holding
from tertulia.errors import ConfigError, FormatError
from tertulia.federation import faults
from tertulia.privacy.home import LEDGER, alone_at, carry_over
from tertulia.upgrades.backups import Backup, Kept, backup_for, backups_of, hash_or_none
from tertulia.upgrades.items import Change, FileChange, Item

_LOCKED = ("run.json", "party.json")  # whose directories have a lock


def upgrade(path: Path, items: Sequence[Item]) -> Backup | None:
    """Make the changes of these items, which were found at a path; None: there were none to make.

    A crash leaves each file and each home either as it was or as it will be, and the backup of all; who upgrades again
    ends what was begun.
    """
    root, changes = path.resolve(), [change for item in items for change in item.changes]
    if not changes:
        for left in [backup for backup in backups_of(root) if not backup.done]:
            left.finish()  # a crash came after the last change
        return None
    with ExitStack() as locks:
        for directory in _lock_places(change.path for change in changes if isinstance(change, FileChange)):
            locks.enter_context(holding(directory, again=f"tertulia upgrade {path}"))
        backup = backup_for(root, changes)
        faults.point("upgrade.after_backup")
        for change in changes:
            _change(change, backup)
            faults.point("upgrade.after_change")
        backup.finish()
    return backup


def _lock_places(paths: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(path.parent for path in paths if path.name in _LOCKED))


def _change(change: Change, backup: Backup) -> None:
    if isinstance(change, FileChange):
        mode = change.path.stat().st_mode
        atomic_write(change.path, change.data)
        change.path.chmod(mode)
        return
    home = carry_over(change.directory, lambda: backup.check_home(change.directory), fixed_key=change.fixed_key)
    try:
        home.ledger.verify()
    finally:
        home.ledger.close()
    backup.check_home(change.directory)


def undo(path: Path) -> Backup:
    """Bring back what was there before the newest upgrade, or raise an error and touch nothing."""
    root = path.resolve()
    found = backups_of(root)
    if not found:
        raise ConfigError(f"there is no backup beside {root}: nothing was upgraded there, or its backup was removed")
    backup = found[-1]
    homes = [root.parent / home for home in backup.homes]
    with ExitStack() as locks:
        for directory in _lock_places(backup.place_of(kept) for kept in backup.files):
            locks.enter_context(holding(directory, again=f"tertulia upgrade {path} --undo"))
        for home in homes:
            locks.enter_context(alone_at(home))
            _check_unspent(home, backup)
        for kept in backup.files:
            _check_unchanged(kept, backup)
        for kept in backup.files:
            backup.restore(kept)
            faults.point("upgrade.after_restore")
        backup.remove()
    return backup


def _check_unspent(home: Path, backup: Backup) -> None:
    added = backup.added_since(home)
    if added:
        raise FormatError(
            f"{home / LEDGER} was charged {added} times since the upgrade, and what was spent stays spent: nothing is "
            "undone"
        )


def _check_unchanged(kept: Kept, backup: Backup) -> None:
    """A file that somebody has edited since is not thrown away."""
    place = backup.place_of(kept)
    if kept.after is not None and hash_or_none(place) not in (kept.before, kept.after):
        raise ConfigError(
            f"{place} was changed since the upgrade: move it away first; as it was, it is in {backup.directory}"
        )
