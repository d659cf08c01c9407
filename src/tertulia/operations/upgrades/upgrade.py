"""Convert the files that were recognised, under locks, with a backup beside them; or restore them from the backup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from tertulia._disk import atomic_write
from tertulia._locks import directory_lock
from tertulia.errors import ConfigError
from tertulia.federation import faults
from tertulia.operations.upgrades.backups import Backup, backup_for, backups_of
from tertulia.operations.upgrades.formats import Item

_LOCKED = ("run.json", "party.json")  # files of directories that have a lock


def upgrade(path: Path, items: Sequence[Item]) -> Backup | None:
    """Make the changes of the items that were recognised at a path; return None if there were none.

    After a crash each file is as it was or as it will be, and the backup holds all of them. A second call completes
    the upgrade, with the same backup.
    """
    root, changes = path.resolve(), [change for item in items for change in item.changes]
    if not changes:
        for left in [backup for backup in backups_of(root) if not backup.done]:
            left.finish()  # a crash came after the last change
        return None
    with ExitStack() as locks:
        for directory in _lock_places(change.path for change in changes):
            locks.enter_context(directory_lock(directory, again=f"tertulia upgrade {path}"))
        backup = backup_for(root, changes)
        faults.point("upgrade.after_backup")
        for change in changes:
            mode = change.path.stat().st_mode
            atomic_write(change.path, change.data)
            change.path.chmod(mode)
            faults.point("upgrade.after_change")
        backup.finish()
    return backup


def undo(path: Path) -> Backup:
    """Restore the files of the newest upgrade, or raise an error and change nothing."""
    root = path.resolve()
    found = backups_of(root)
    if not found:
        raise ConfigError(f"there is no backup beside {root}: nothing was upgraded there, or its backup was removed")
    backup = found[-1]
    backup.check(root)
    with ExitStack() as locks:
        for directory in _lock_places(backup.place_of(kept) for kept in backup.files):
            locks.enter_context(directory_lock(directory, again=f"tertulia upgrade {path} --undo"))
        for kept in backup.files:
            backup.check_unchanged(kept)
        for kept in backup.files:
            backup.restore(kept)
            faults.point("upgrade.after_restore")
        backup.remove()
    return backup


def _lock_places(paths: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(path.parent for path in paths if path.name in _LOCKED))
