"""A corpus on disk: one .npy file per array, the table as Parquet, the rest as JSON, in a folder of their own.

`corpus.json` names the folder and is written last, by one rename: a directory without it was never finished.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
import weakref
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import numpy as np

from tertulia._arrays import I32, I64, Array
from tertulia._disk import PRIVATE_DIRECTORY, PRIVATE_FILE, atomic_write, sync_files
from tertulia._kinds import check_fields
from tertulia._locks import locked, taking_turns
from tertulia.corpus.integrity import check_parts
from tertulia.corpus.report import ReadReport
from tertulia.corpus.tokens import TextOptions
from tertulia.corpus.vocabulary import Vocabulary
from tertulia.errors import FormatError, InputError

if TYPE_CHECKING:
    import polars as pl

ARRAYS = ("words", "documents", "sentences", "paragraphs")
FORMAT = 1
MARK = "corpus.json"
_FOLDER = "corpus-arrays-"  # how the names of folders begin
_T = TypeVar("_T")


class Fields(TypedDict):
    """What a corpus is made of."""

    words: I32
    documents: I64
    sentences: I32 | I64
    paragraphs: I32 | I64
    vocabulary: Vocabulary
    table: pl.DataFrame
    options: TextOptions
    report: ReadReport


class Draft:
    """A corpus in the making: a folder of its own, until `publish` makes it the directory's corpus by one rename.

    Whoever reads or writes the directory meanwhile, or a crash, meets the corpus that was there before, or none. The
    folder is locked, so that the next draft can tell what a crash left behind and remove it.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
        self.directory = directory
        self.folder = directory / f"{_FOLDER}{uuid.uuid4().hex[:12]}"
        with taking_turns(directory):
            _remove_leftovers(directory)
            self.folder.mkdir(mode=PRIVATE_DIRECTORY)
            descriptor = os.open(self.folder, os.O_RDONLY)
            self._unlock = weakref.finalize(self, os.close, descriptor)
            locked(descriptor)

    def publish(self, vocabulary: Vocabulary, table: pl.DataFrame, options: TextOptions, report: ReadReport) -> None:
        """Write everything but the arrays, and put the corpus in its place."""
        about = {"format": FORMAT, "folder": self.folder.name, "options": options.to_dict(), "report": report.to_dict()}
        table.write_parquet(self.folder / "table.parquet")
        words = json.dumps(vocabulary.words, ensure_ascii=False)
        (self.folder / "vocabulary.json").write_text(words, encoding="utf-8")
        for file in self.folder.iterdir():
            file.chmod(PRIVATE_FILE)
        sync_files(self.folder)
        with taking_turns(self.directory):
            atomic_write(self.directory / MARK, json.dumps(about, ensure_ascii=False, indent=1).encode())
            self._unlock()
            _remove_leftovers(self.directory)

    def close(self) -> None:
        """Give up a corpus that is not published."""
        if self._unlock.alive:
            shutil.rmtree(self.folder)
            self._unlock()


def write(directory: Path, arrays: Mapping[str, Array], *rest: Any) -> None:
    """Write a whole corpus, in place of the one that may be there."""
    with closing(Draft(directory)) as draft:
        for name, array in arrays.items():
            np.save(draft.folder / f"{name}.npy", array)
        draft.publish(*rest)


def _remove_leftovers(directory: Path) -> None:
    """Remove folders that are neither the corpus nor a draft at work; who has their arrays mapped keeps them."""
    try:
        current = _about(directory).get("folder")
    except InputError:  # there is none yet
        current = None
    except FormatError:  # the mark is damaged: who knows which folder it named
        return
    for folder in directory.glob(f"{_FOLDER}*"):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            if folder.name != current and locked(descriptor):
                shutil.rmtree(folder)
        finally:
            os.close(descriptor)


def read(directory: Path, mmap: bool) -> Fields:
    """Read what `write` or a draft wrote."""
    about = _about(directory)
    try:
        return _fields(directory / about["folder"], about, mmap)
    except FormatError:
        now = _about(directory)
        if now == about:
            raise
        return _fields(directory / now["folder"], now, mmap)  # another corpus took its place while we read


def _fields(folder: Path, about: Mapping[str, Any], mmap: bool) -> Fields:
    import polars as pl

    words, documents, sentences, paragraphs = (
        _load(folder / f"{name}.npy", lambda path: load_array(path, mmap)) for name in ARRAYS
    )
    listed = _load(folder / "vocabulary.json", _json)
    try:
        check_fields(_About, {"words": listed, "options": about.get("options"), "report": about.get("report")})
        found = Fields(
            words=words,
            documents=documents,
            sentences=sentences,
            paragraphs=paragraphs,
            vocabulary=Vocabulary(tuple(listed)),
            table=_load(folder / "table.parquet", pl.read_parquet),
            options=TextOptions.from_dict(about["options"]),
            report=ReadReport.from_dict(about["report"]),
        )
        check_parts(found)
    except (InputError, FormatError, TypeError) as error:
        raise FormatError(f"{folder} is damaged ({error}): read or save the corpus again") from error
    return found


class _About:
    words: list[str]
    options: dict[str, Any]
    report: dict[str, Any]


def load_array(path: Path, mmap: bool = True) -> Array:
    """Load or map one array.

    Mapped copy-on-write rather than read-only: the file is just as safe, and numba then sees the type of an ordinary
    array instead of compiling every kernel a second time for read-only ones.
    """
    array: Array = np.load(path, mmap_mode="c", allow_pickle=False)  # checks the header against the file's length
    return np.asarray(array) if mmap else np.array(array)


def _about(directory: Path) -> dict[str, Any]:
    mark = directory / MARK
    if not mark.exists():
        raise InputError(f"{directory} holds no finished corpus (no corpus.json): read or save the corpus again")
    about: dict[str, Any] = _load(mark, _json)
    if not isinstance(about, dict):
        raise FormatError(f"{mark} is damaged: read or save the corpus again")
    folder = about.setdefault("folder", ".")  # corpora of long ago have no folder of their own
    if not isinstance(folder, str) or not (folder == "." or re.fullmatch(rf"{_FOLDER}[0-9a-f]{{1,32}}", folder)):
        raise FormatError(f"{mark} names no folder of its own: read or save the corpus again")
    if about.get("format") != FORMAT:
        raise FormatError(
            f"{directory} holds a corpus of format {about.get('format')}, this version reads {FORMAT}: "
            "update tertulia, or read the texts again"
        )
    return about


def _json(path: Path) -> Any:
    found = json.loads(path.read_text(encoding="utf-8"))
    json.dumps(found, ensure_ascii=False).encode()  # half a character is no text
    return found


def _load(path: Path, load: Callable[[Path], _T]) -> _T:
    from polars.exceptions import PanicException, PolarsError

    try:
        return load(path)
    except (
        OSError, ValueError, TypeError, EOFError, SyntaxError, RecursionError, MemoryError, OverflowError, TokenError,
        PolarsError, PanicException,
    ) as error:  # fmt: skip
        raise FormatError(f"{path} is missing or damaged: read or save the corpus again") from error
