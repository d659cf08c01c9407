"""What a file does not say about itself: how its letters are encoded, and what separates its fields.

A byte order mark says it. Without one a file is UTF-8, unless it cannot be: then it is UTF-16 if every other byte is
zero, and CP1252, the habit of old Windows programs in the west, if it reads like that. Whatever is guessed is noted.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Collection

_MARKS = (  # the longer ones first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAMPLE = 1 << 22  # bytes looked at
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_BEYOND_ASCII = re.compile("[^\x00-\x7f]")
_NO_LETTER = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d]")  # control characters; what CP1252 lacks
_ACCENT = rb"\x8a\x8c\x8e\x9a\x9c\x9e\x9f\xc0-\xff"  # letters of CP1252 beyond ASCII
_WITH_ACCENTS = re.compile(rb"[A-Za-z]*[%b][A-Za-z%b]*" % (_ACCENT, _ACCENT))
_MOST_ACCENTS = 0.5  # of the letters of words that have any; more is another alphabet, of which there are many
_HALF_ZERO = 0.3  # of every other byte
_SEPARATORS = (",", ";", "\t", "|")


def guess_encoding(sample: bytes) -> str:
    r"""The encoding of a file that begins like this; `utf-8` also where nothing fits, as its reader says what is wrong.

    >>> guess_encoding("naïve".encode()), guess_encoding("naïve".encode("cp1252"))
    ('utf-8', 'cp1252')
    """
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding
    if b"\0" in sample:
        return _half_zero_or_none(sample) or "utf-8"
    if _faults(sample) > 0.5 and _reads_as_cp1252(sample):  # where fewer are wrong, these are broken rows
        return "cp1252"
    return "utf-8"


def _faults(sample: bytes) -> float:
    """Of what is not ASCII, the share that is not UTF-8; the sample may cut the last letter in two."""
    decoder = codecs.getincrementaldecoder("utf-8")
    try:
        decoder().decode(sample)
    except UnicodeDecodeError:
        text = decoder("surrogateescape").decode(sample)
        return len(_NOT_UTF8.findall(text)) / len(_BEYOND_ASCII.findall(text))
    return 0.0


def _half_zero_or_none(sample: bytes) -> str | None:
    """UTF-16 without a mark: the letters of most alphabets leave one byte of two zero, or at least the spaces do."""
    even, odd = (sample[first::2].count(0) / max(len(sample) // 2, 1) for first in (0, 1))
    if min(even, odd) > 0 or max(even, odd) < _HALF_ZERO:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _reads_as_cp1252(sample: bytes) -> bool:
    """Whether these are words with an accent here and there, rather than another alphabet or no text at all."""
    if _NO_LETTER.search(sample):
        return False
    letters = b"".join(_WITH_ACCENTS.findall(sample))
    return sum(letter >= 0x80 for letter in letters) <= _MOST_ACCENTS * len(letters)


def guess_separator(header: str, wanted: Collection[str], usual: str) -> str:
    """What separates the fields of a table whose first line this is: what gives the columns that are wanted.

    >>> guess_separator("id;text", {"text"}, usual=",")
    ';'
    """

    def fitness(separator: str) -> tuple[int, int, bool]:
        try:
            names = [name.strip() for name in next(csv.reader([header], delimiter=separator), [])]
        except csv.Error:
            return 0, 0, False
        return len(set(wanted) & set(names)), len(names), separator == usual

    return max((usual, *_SEPARATORS), key=fitness)
