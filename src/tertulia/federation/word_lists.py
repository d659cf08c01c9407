"""Word lists in a frame: they follow the envelope, and are decoded only when a word is looked up.

A list is its name, the length of each word, and then all words. Nothing of it is parsed before run and plan are
checked, and the number of words is checked before memory is allocated for them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise

import numpy as np

from tertulia.errors import FormatError

MOST_WORDS = 1 << 22  # of all lists of a frame; a policy allows fewer
_HEAD = struct.Struct("<BIQ")  # bytes of the name, words, bytes of all words


def write_lists(lists: Mapping[str, tuple[str, ...]]) -> bytes:
    """Encode word lists."""
    if isinstance(lists, SentLists):
        return bytes(lists.data)
    parts: list[bytes] = []
    for name, words in lists.items():
        encoded = [word.encode() for word in words]
        text, called = b"".join(encoded), name.encode()
        lengths = np.array([len(word) for word in encoded], "<u4").tobytes()
        parts += [_HEAD.pack(len(called), len(words), len(text)), called, lengths, text]
    return b"".join(parts)


class ListWriter:
    """Encodes lists for several parties: equal ones once."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, ...], SentLists] = {}

    def write(self, lists: Mapping[str, tuple[str, ...]]) -> SentLists:
        """Return lists as a frame holds them; their names are fingerprints, so equal names are equal lists."""
        names = tuple(lists)
        if names not in self._written:
            self._written[names] = SentLists(memoryview(write_lists(lists)))
        return self._written[names]


class SentLists(Mapping[str, tuple[str, ...]]):
    """The word lists of a received frame; the first access decodes them, and malformed bytes raise `FormatError`."""

    def __init__(self, data: memoryview) -> None:
        self.data = data

    @cached_property
    def _lists(self) -> dict[str, tuple[str, ...]]:
        try:
            return dict(_read(self.data))
        except (struct.error, ValueError) as error:
            raise FormatError("the word lists of a frame cannot be read") from error

    def __getitem__(self, name: str) -> tuple[str, ...]:
        return self._lists[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lists)

    def __len__(self) -> int:
        return len(self._lists) if self.data else 0


def _read(data: memoryview) -> Iterator[tuple[str, tuple[str, ...]]]:
    at, left = 0, MOST_WORDS
    while at < len(data):
        called, count, size = _HEAD.unpack_from(data, at)
        lengths = at + _HEAD.size + called
        text = lengths + 4 * count
        left -= count
        if left < 0 or text + size > len(data):
            raise ValueError("too many words, or a list that is cut short")
        ends = np.cumsum(np.frombuffer(data[lengths:text], "<u4"), dtype=np.int64)
        if (int(ends[-1]) if count else 0) != size:
            raise ValueError("the words have other lengths")
        words = tuple(str(data[text + a : text + b], "utf-8") for a, b in pairwise([0, *ends.tolist()]))
        yield str(data[at + _HEAD.size : lengths], "utf-8"), words
        at = text + size
