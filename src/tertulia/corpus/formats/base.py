"""The table of records that every format returns, and functions that open, decompress and decode files.

A byte order mark gives the encoding of a file. Without a mark a file is UTF-8 if that is possible. Otherwise it is
UTF-16 if every other byte is zero, and CP1252 (old Windows programs in western Europe) if it looks like that. The
report lists all guesses.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tertulia.errors import InputError

EMPTY = "empty file"
_LONGEST_LINE = 1 << 24  # characters; a small compressed file may hold a line without end
_LARGEST_TEXT = 1 << 26  # bytes of a file that is one document
_COMPRESSED: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class Record(NamedTuple):
    """A row of a file, or the problem with it."""

    place: str
    values: Mapping[str, Any]
    problem: str = ""
    name: str | None = None  # the row's id if no column has it


class Request(NamedTuple):
    """The options that a format may need to open a file."""

    root: Path  # the folder to which the names of text files are relative
    encoding: str | None  # None: to be guessed
    separator: str | None  # of CSV fields; None: to be guessed
    wanted: frozenset[str]  # columns


class Table(NamedTuple):
    """An open file."""

    columns: tuple[str, ...]  # none if the file is empty
    records: Iterator[Record]
    source: str | None = None  # name of the party in a split by file; None: the file name without suffixes
    hint: str = ""  # added to the error about a missing column
    encoding: str = "utf-8"
    guesses: tuple[str, ...] = ()  # options that the file does not give, such as its encoding
    query: str | None = None  # the hash of the query whose rows these are


def is_compressed(path: Path) -> bool:
    """Return whether the suffix is that of a compressed file."""
    return path.suffix.lower() in _COMPRESSED


def undecodable(encoding: str) -> str:
    """Word the reason for dropping a row with undecodable bytes."""
    return f"bytes that are not {encoding.upper()}"


def empty_table(path: Path) -> Table:
    """Return the table of an empty file."""
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
    """Return the encoding of a file, and the guesses to report: one if it was guessed and is not UTF-8."""
    if request.encoding is not None:
        return request.encoding, ()
    with _open(path) as file, _reading(path):
        return guess_from(file.read(SAMPLE))


def guess_from(sample: bytes) -> tuple[str, tuple[str, ...]]:
    """Guess the encoding of a file that begins with these bytes, and the guesses to report."""
    found = guess_encoding(sample)
    return found, () if found == "utf-8" else (f"encoding = '{found}'",)


def read_bytes(path: Path) -> bytes:
    """Read a whole file, decompressed."""
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
    codec = "utf-8-sig" if encoding == "utf-8" else encoding  # drops a byte order mark
    with io.TextIOWrapper(file, codec, errors="surrogateescape", newline=newline) as lines:
        while line := lines.readline(_LONGEST_LINE + 1):
            if len(line) > _LONGEST_LINE:
                raise InputError(
                    f"{path} holds a line of more than {_LONGEST_LINE:,} characters: is it one row per line?"
                )
            yield line


_MARKS = (  # the longer ones first: the mark of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAMPLE = 1 << 22  # bytes read for a guess
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_BEYOND_ASCII = re.compile("[^\x00-\x7f]")
_NO_LETTER = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d]")  # control characters; bytes that CP1252 lacks
_ACCENT = rb"\x8a\x8c\x8e\x9a\x9c\x9e\x9f\xc0-\xff"  # letters of CP1252 beyond ASCII
_WITH_ACCENTS = re.compile(rb"[A-Za-z]*[%b][A-Za-z%b]*" % (_ACCENT, _ACCENT))
_MOST_ACCENTS = 0.5  # share of accented letters in words that have some; more means another alphabet
_HALF_ZERO = 0.3  # share of zeros among every other byte


def guess_encoding(sample: bytes) -> str:
    r"""Guess the encoding of a file that begins with these bytes; `utf-8` if nothing fits, so that reading fails.

    >>> guess_encoding("naïve".encode()), guess_encoding("naïve".encode("cp1252"))
    ('utf-8', 'cp1252')
    """
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding
    if b"\0" in sample:
        return _half_zero_or_none(sample) or "utf-8"
    if _faults(sample) > 0.5 and _reads_as_cp1252(sample):  # with fewer faults, single rows are broken
        return "cp1252"
    return "utf-8"


def _faults(sample: bytes) -> float:
    """Return the share of non-ASCII characters that are not UTF-8; the sample may cut the last one in two."""
    decoder = codecs.getincrementaldecoder("utf-8")
    try:
        decoder().decode(sample)
    except UnicodeDecodeError:
        text = decoder("surrogateescape").decode(sample)
        return len(_NOT_UTF8.findall(text)) / len(_BEYOND_ASCII.findall(text))
    return 0.0


def _half_zero_or_none(sample: bytes) -> str | None:
    """Recognise UTF-16 without a mark: in most alphabets one byte of two is zero, at least for spaces."""
    even, odd = (sample[first::2].count(0) / max(len(sample) // 2, 1) for first in (0, 1))
    if min(even, odd) > 0 or max(even, odd) < _HALF_ZERO:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _reads_as_cp1252(sample: bytes) -> bool:
    """Return whether these are words with some accents, rather than another alphabet or binary data."""
    if _NO_LETTER.search(sample):
        return False
    letters = b"".join(_WITH_ACCENTS.findall(sample))
    return sum(letter >= 0x80 for letter in letters) <= _MOST_ACCENTS * len(letters)
