"""Text files: each is one record, with its path below the root and its folder as columns."""

from __future__ import annotations

from pathlib import Path

from tertulia.corpus.formats.base import Record, Request, Table, guess_from, read_bytes, undecodable

SUFFIXES = (".txt", ".text", ".md")


def open_table(path: Path, request: Request) -> Table:
    """Open a file, whose id is its path; in a split by file, the party is the first folder below the root."""
    root, raw = request.root, read_bytes(path)
    encoding, guesses = guess_from(raw) if request.encoding is None else (request.encoding, ())
    inside = path.relative_to(root)
    place, source = inside.as_posix(), inside.parts[0] if len(inside.parts) > 1 else root.name
    problem, text = "", ""
    try:
        text = raw.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError:
        problem = undecodable(encoding)
    if "\0" in text:
        problem = "not text (zero bytes)"
    values = {"text": text, "path": place, "folder": path.parent.name}
    record = Record(place, values, problem, name=place)
    return Table(tuple(values), iter([record]), source, encoding=encoding, guesses=guesses)
