"""Mojibake: UTF-8 that was read as Windows-1252, such as `Ã©` for `é`, and its repair.

A line is repaired if all of its characters beyond ASCII are the bytes of UTF-8, one after the other. In a line that was
read correctly that is very unlikely: each of them would be a letter such as `Ã` or `â` before a sign such as `©`.
"""

from __future__ import annotations

import re


def _byte_of() -> dict[int, int]:
    """Map each character to the byte that Windows-1252, or Latin 1 where that has none, reads as it."""
    found = {byte: byte for byte in range(128, 256)}
    for byte in range(128, 160):
        character = bytes([byte]).decode("cp1252", errors="ignore")
        if character:
            found[ord(character)] = byte
    return found


_BYTES = _byte_of()
_FOLLOWS = "".join(re.escape(chr(code)) for code, byte in _BYTES.items() if byte < 0xC0)
_BROKEN = re.compile(f"[\u00c2-\u00f4][{_FOLLOWS}]")
_MOST = 2  # times that a text may have been read wrongly


def is_broken(text: str) -> bool:
    """Return whether a line of a text can be repaired.

    >>> is_broken("cafÃ©"), is_broken("café"), is_broken("NÃO")
    (True, False, False)
    """
    return not text.isascii() and _BROKEN.search(text) is not None and repair(text) != text


def repair(text: str) -> str:
    """Repair the lines of a text that were read as Windows-1252.

    >>> repair("Itâ€™s a cafÃ©."), repair("Ça va, «déjà»?")
    ('It’s a café.', 'Ça va, «déjà»?')
    """
    if text.isascii() or _BROKEN.search(text) is None:
        return text
    return "".join(_line(line) for line in text.splitlines(keepends=True))


def _line(line: str) -> str:
    for _ in range(_MOST):
        if _BROKEN.search(line) is None:
            break
        try:
            line = line.translate(_BYTES).encode("latin-1").decode("utf-8")
        except UnicodeError:
            break
    return line
