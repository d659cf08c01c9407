"""What an upgrade finds: a thing, its format, and what becomes of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tertulia.errors import FormatError

AS_IT_IS = "nothing: it is read as it is"


@dataclass(frozen=True)
class FileChange:
    """A file that is written anew, as a whole."""

    path: Path
    data: bytes


@dataclass(frozen=True)
class HomeChange:
    """A home whose ledger and key are brought to this version's format, by being opened."""

    directory: Path
    fixed_key: str | None = None  # of tests, whose key is no secret


Change = FileChange | HomeChange


class Item(NamedTuple):
    """A thing that was recognised."""

    kind: str
    path: Path
    found: str  # its format
    becomes: str
    changes: tuple[Change, ...] = ()
    wrong: bool = False  # it can neither be read nor carried over


def newer(path: Path, found: int, most: int) -> FormatError:
    """What is said of a format that is not known yet."""
    return FormatError(
        f"{path} was made by a newer version: it has format {found}, and this one reads up to {most}. Install that "
        "version; nothing was touched"
    )


def read_json(path: Path) -> dict[str, Any]:
    """A file of facts."""
    try:
        facts = json.loads(path.read_bytes())
    except OSError as error:
        raise FormatError(f"cannot read {path} ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is damaged ({error}): restore it from a backup") from error
    if not isinstance(facts, dict):
        raise FormatError(f"{path} is damaged: restore it from a backup")
    return facts


def as_json(facts: dict[str, Any]) -> bytes:
    """The facts as runs and parties write them."""
    return json.dumps(facts, indent=1).encode()
