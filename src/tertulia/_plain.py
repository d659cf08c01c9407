"""Texts of others as they may stand on a terminal: what would steer it is written out instead."""

from __future__ import annotations

import re

# Control characters (C0, DEL, C1), marks that turn the direction of writing, line separators, and lone surrogates,
# which no terminal can be sent. Tabs and line ends are harmless.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def plain(text: str, most: int | None = None) -> str:
    r"""Write out control characters as `\x1b`, and cut what is longer than `most`.

    >>> plain("red \x1b[31m")
    'red \\x1b[31m'
    """
    if most is not None and len(text) > most:
        text = f"{text[:most]} ..."
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def plain_json(text: str) -> str:
    """The same for JSON, which has a way to write such characters: what it says stays as it is."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
