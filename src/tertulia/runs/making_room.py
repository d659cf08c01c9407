"""A run's directory begins anew: what failed at its start is removed, and what may have left a party is kept aside."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tertulia._locks import NAME as LOCK
from tertulia.errors import TertuliaError
from tertulia.federation.server.journal import Journal
from tertulia.privacy.home import LEDGER
from tertulia.privacy.ledger import Ledger

_RUN = "run.json"


def make_room(directory: Path, fresh: bool, say: Callable[[str], None]) -> None:
    """Clear a directory for a new run, if its run has no commit, or if that is asked for (`fresh`).

    Ledgers that hold anything are never removed: they say what has left. Whoever calls this holds the directory's lock.
    """
    if not (directory / _RUN).exists():
        return
    if not fresh and Journal(directory / "server").rounds():
        return  # `Run.new` says what to do
    inside = [path for path in directory.iterdir() if path.name != LOCK]
    if not fresh and not _has_charges(directory):
        for path in inside:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        say(f"{directory}: the run that was begun here never ended a round, and nothing has left: it begins anew")
        return
    aside = _free_name(directory)
    aside.mkdir()
    for path in sorted(inside, key=lambda path: path.name == _RUN):  # last: what is moved half can be moved again
        path.rename(aside / path.name)
    say(f"{directory} begins anew; the run that was here, with its ledgers, is in {aside}")


def _has_charges(directory: Path) -> bool:
    """Whether anything has left a party of this run; a ledger that cannot be read may hold something."""
    try:
        return any(Ledger(path).releases() for path in directory.glob(f"parties/*/{LEDGER}"))
    except TertuliaError:
        return True


def _free_name(directory: Path) -> Path:
    """The directory's name with the first number that is free."""
    number = 1
    while (name := directory.with_name(f"{directory.name}.{number}")).exists():
        number += 1
    return name
