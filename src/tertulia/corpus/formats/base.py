"""What every format gives, a table of records, and how files are opened, unpacked and decoded."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tertulia.corpus.formats.guessing import SAMPLE, guess_encoding
from tertulia.errors import InputError

EMPTY = "empty file"
_LONGEST_LINE = 1 << 24  # characters; a small compressed file may hold a line without end
_LARGEST_TEXT = 1 << 26  # bytes of a file that is one document
_COMPRESSED: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class Record(NamedTuple):
    """A row as it stands in the file, or what is wrong with it."""

    place: str
    values: Mapping[str, Any]
    problem: str = ""
    name: str | None = None  # what the row is known by if no column says so


class Request(NamedTuple):
    """What a format may need to know to open a file."""

    root: Path  # the folder to which the names of text files are relative
    encoding: str | None  # None: to be guessed
    separator: str | None  # of CSV fields; None: to be guessed
    wanted: frozenset[str]  # columns


class Table(NamedTuple):
    """An open file."""

    columns: tuple[str, ...]  # none if the file is empty
    records: Iterator[Record]
    source: str | None = None  # what parties by file are called; None: the file's name without suffixes
    hint: str = ""  # for those who miss a column
    encoding: str = "utf-8"
    guesses: tuple[str, ...] = ()  # what the file does not say itself


def is_compressed(path: Path) -> bool:
    """Tell whether the name says that the file is compressed."""
    return path.suffix.lower() in _COMPRESSED


def undecodable(encoding: str) -> str:
    """Word the reason for dropping a row with undecodable bytes."""
    return f"bytes that are not {encoding.upper()}"


def empty_table(path: Path) -> Table:
    """What any format gives for a file without content."""
    return Table((), iter([Record(path.name, {}, EMPTY)]))


def _open(path: Path) -> BinaryIO:
    opener = _COMPRESSED.get(path.suffix.lower())
    try:
        file: BinaryIO = path.open("rb") if opener is None else opener(path)
    except OSError as error:
        raise InputError(f"cannot open {path}: {error.strerror}") from error
    return file


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError, MemoryError) as error:
        raise InputError(f"{path} cannot be read to its end: {error}") from error


def encoding_of(path: Path, request: Request) -> tuple[str, tuple[str, ...]]:
    """The encoding of a file, and if it was guessed, and is not what nearly all files have, a word about it."""
    if request.encoding is not None:
        return request.encoding, ()
    with _open(path) as file, _reading(path):
        return guess_from(file.read(SAMPLE))


def guess_from(sample: bytes) -> tuple[str, tuple[str, ...]]:
    """The encoding of a file that begins like this, with a word about it."""
    found = guess_encoding(sample)
    return found, () if found == "utf-8" else (f"encoding = '{found}'",)


def read_bytes(path: Path) -> bytes:
    """Read a whole file, unpacked."""
    with _open(path) as file, _reading(path):
        found = file.read(_LARGEST_TEXT + 1)
    if len(found) > _LARGEST_TEXT:
        raise InputError(f"{path} is one text of more than {_LARGEST_TEXT >> 20} MB: cut it into documents")
    return found


def read_lines(path: Path, encoding: str, newline: str) -> Generator[str, None, None]:
    """Decode lines; bytes that do not decode pass as lone surrogates, so that only their own row is dropped."""
    with _open(path) as file, _reading(path):
        try:
            yield from _decode(file, path, encoding, newline)
        except UnicodeError as error:
            raise InputError(f"{path} is not {encoding}: name its real encoding with encoding=...") from error


def _decode(file: BinaryIO, path: Path, encoding: str, newline: str) -> Iterator[str]:
    if encoding == "utf-8" and b"\0" in file.read(4096):
        raise InputError(
            f"{path} is not UTF-8 text (it holds zero bytes): if it is UTF-16, pass encoding='utf-16'; "
            "if it is Parquet or compressed, give it the right suffix"
        )
    file.seek(0)
    codec = "utf-8-sig" if encoding == "utf-8" else encoding  # a byte order mark is no part of the first name
    with io.TextIOWrapper(file, codec, errors="surrogateescape", newline=newline) as lines:
        while line := lines.readline(_LONGEST_LINE + 1):
            if len(line) > _LONGEST_LINE:
                raise InputError(
                    f"{path} holds a line of more than {_LONGEST_LINE:,} characters: is it one row per line?"
                )
            yield line
