"""Files: one file, a folder of texts, a pattern, or a list of these."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from tertulia.corpus.formats.base import is_compressed
from tertulia.corpus.sources.base import PathLike
from tertulia.errors import InputError


def list_files(path: PathLike | Sequence[PathLike]) -> Iterator[tuple[Path, Path]]:
    """List the files, each with the folder to which ids of text files are relative."""
    if not isinstance(path, str | os.PathLike):
        for each in path:
            yield from list_files(each)
        return
    given = Path(path)
    if given.is_dir():
        texts = sorted(file for file in given.rglob("*.txt*") if _is_text(file) and _is_file(file, given))
        if not texts:
            raise InputError(f"folder {given} holds no .txt file; for tables give a pattern such as {given}/*.jsonl")
        yield from ((file, given) for file in texts)
    elif given.exists():
        yield given, given.parent
    else:
        matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207 - may be absolute
        if not matches:
            raise InputError(f"there is no file {path}" if not glob.has_magic(str(path)) else f"no file fits {path}")
        root = Path(os.path.commonpath([match.parent for match in matches]))
        fixed = Path(*takewhile(lambda part: not glob.has_magic(part), given.parts))
        yield from ((match, root) for match in matches if _is_file(match, fixed))


def _is_file(file: Path, below: Path) -> bool:
    """Return whether it is a file; raise `InputError` for a link in a folder, which may lead to private files."""
    for part in (file, *file.parents):
        if part == below:
            break
        if part.is_symlink():
            raise InputError(f"{part} is a link, which is not followed: put a copy there, or give the file's own path")
    return file.is_file()


def _is_text(file: Path) -> bool:
    return (file.with_suffix("") if is_compressed(file) else file).suffix == ".txt"
