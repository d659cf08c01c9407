"""A corpus on disk: one .npy file per array, the table as Parquet, the rest as JSON, in one folder.

`corpus.json` names the folder and is written last, by one rename: a directory without it was never finished. A corpus
is checked when it is read, because kernels trust its offsets.
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
from tertulia._locks import brief_lock, lock_folder_or_none
from tertulia.corpus.report import ReadReport
from tertulia.corpus.tokens import TextOptions
from tertulia.corpus.vocabulary import Vocabulary
from tertulia.errors import FormatError, InputError

if TYPE_CHECKING:
    import polars as pl


from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

ARRAYS = ("words", "documents", "sentences", "paragraphs")
FORMAT = 1
MARK = "corpus.json"
_FOLDER = "corpus-arrays-"  # prefix of the folder names
_BLOCK = 1 << 22  # numbers checked at a time, so that mapped arrays stay on disk
_KINDS = {"words": ("i4",), "documents": ("i8",), "sentences": ("i4", "i8"), "paragraphs": ("i4", "i8")}
_T = TypeVar("_T")


class Fields(TypedDict):
    """The parts of a corpus."""

    words: I32
    documents: I64
    sentences: I32 | I64
    paragraphs: I32 | I64
    vocabulary: Vocabulary
    table: pl.DataFrame
    options: TextOptions
    report: ReadReport


class Draft:
    """An unfinished corpus in a folder of its own, until `publish` makes it the directory's corpus by one rename.

    Until then, and after a crash, readers and writers of the directory see the previous corpus, or none. The folder is
    locked, so that the next draft can recognise leftovers of a crash and remove them.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
        self.directory = directory
        self.folder = directory / f"{_FOLDER}{uuid.uuid4().hex[:12]}"
        with brief_lock(directory):
            _remove_leftovers(directory)
            self.folder.mkdir(mode=PRIVATE_DIRECTORY)
            descriptor = lock_folder_or_none(self.folder)
            assert descriptor is not None  # nobody else knows the folder
            self._unlock = weakref.finalize(self, os.close, descriptor)

    def publish(self, vocabulary: Vocabulary, table: pl.DataFrame, options: TextOptions, report: ReadReport) -> None:
        """Write everything but the arrays, and make this the corpus of the directory."""
        about = {"format": FORMAT, "folder": self.folder.name, "options": options.to_dict(), "report": report.to_dict()}
        table.write_parquet(self.folder / "table.parquet")
        words = json.dumps(vocabulary.words, ensure_ascii=False)
        (self.folder / "vocabulary.json").write_text(words, encoding="utf-8")
        for file in self.folder.iterdir():
            file.chmod(PRIVATE_FILE)
        sync_files(self.folder)
        with brief_lock(self.directory):
            atomic_write(self.directory / MARK, json.dumps(about, ensure_ascii=False, indent=1).encode())
            self._unlock()
            _remove_leftovers(self.directory)

    def close(self) -> None:
        """Remove a corpus that is not published."""
        if self._unlock.alive:
            self._unlock()  # Windows removes no folder with an open file
            shutil.rmtree(self.folder, ignore_errors=True)  # the next draft does it otherwise


def write(directory: Path, arrays: Mapping[str, Array], *rest: Any) -> None:
    """Write a whole corpus; it replaces an existing one."""
    with closing(Draft(directory)) as draft:
        for name, array in arrays.items():
            np.save(draft.folder / f"{name}.npy", array)
        draft.publish(*rest)


def _remove_leftovers(directory: Path) -> None:
    """Remove folders that are neither the corpus nor an active draft; arrays that are mapped stay readable."""
    try:
        current = _about(directory).get("folder")
    except InputError:  # there is none yet
        current = None
    except FormatError:  # the mark is damaged: the current folder is unknown
        return
    for folder in directory.glob(f"{_FOLDER}*"):
        if folder.name != current and (descriptor := lock_folder_or_none(folder)) is not None:
            os.close(descriptor)
            shutil.rmtree(folder, ignore_errors=True)  # Windows removes no file that is mapped


def read(directory: Path, mmap: bool) -> Fields:
    """Read the corpus of a directory."""
    about = _about(directory)
    try:
        return _fields(directory / about["folder"], about, mmap)
    except FormatError:
        now = _about(directory)
        if now == about:
            raise
        return _fields(directory / now["folder"], now, mmap)  # another process replaced the corpus during the read


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
        _check_parts(found)
    except (InputError, FormatError, TypeError) as error:
        raise FormatError(f"{folder} is damaged ({error}): read or save the corpus again") from error
    return found


class _About:
    words: list[str]
    options: dict[str, Any]
    report: dict[str, Any]


def load_array(path: Path, mmap: bool = True) -> Array:
    """Load or map one array.

    The map is copy-on-write rather than read-only. The file is just as safe, and numba sees the type of an ordinary
    array; for read-only arrays it would compile every kernel a second time.
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
    folder = about.setdefault("folder", ".")  # early corpora have no folder of their own
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
    json.dumps(found, ensure_ascii=False).encode()  # raises on lone surrogates
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


def _check_parts(parts: Any) -> None:
    """Raise `FormatError` unless words are numbers of the vocabulary, and offsets rise from 0 to the last token."""
    for name, kinds in _KINDS.items():
        array: Array = parts[name]
        if array.ndim != 1 or array.dtype.str not in {f"<{kind}" for kind in kinds}:
            raise FormatError(f"{name} are {array.dtype} {array.shape}, not a row of integers")
    _check_range("words", parts["words"], len(parts["vocabulary"]))
    for name in ("documents", "sentences", "paragraphs"):
        _check_offsets(name, parts[name], len(parts["words"]), strictly=name != "documents")
    for name in ("sentences", "paragraphs"):
        within = np.searchsorted(parts[name], parts["documents"])
        if not np.array_equal(np.asarray(parts[name])[within], parts["documents"]):
            raise FormatError(f"{name} cross documents")
    _check_table(parts["table"], len(parts["documents"]) - 1)


def _check_range(name: str, array: Array, size: int) -> None:
    for start in range(0, len(array), _BLOCK):
        block = array[start : start + _BLOCK]
        if block.min() < 0 or block.max() >= size:
            raise FormatError(f"{name} are not within 0 and {size}")


def _check_offsets(name: str, offsets: Array, tokens: int, *, strictly: bool) -> None:
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != tokens:
        raise FormatError(f"offsets of {name} do not run from 0 to {tokens}")
    for start in range(0, len(offsets), _BLOCK):
        block = offsets[start : start + _BLOCK + 1]
        rising = block[1:] > block[:-1] if strictly else block[1:] >= block[:-1]
        if not rising.all():
            raise FormatError(f"offsets of {name} do not rise")


def _check_table(table: pl.DataFrame, documents: int) -> None:
    import polars as pl

    if table.height != documents:
        raise FormatError(f"the table has {table.height} rows for {documents} documents")
    texts = [name for name in ("id", "label", "date", "user", "text") if name in table.columns]
    if "id" not in texts or any(table[name].dtype != pl.String for name in texts) or table["id"].null_count():
        raise FormatError("the table has no ids, or columns that are no texts")
    if "embedding" in table.columns and not isinstance(table["embedding"].dtype, pl.Array):
        raise FormatError("the table's embeddings are no vectors")
