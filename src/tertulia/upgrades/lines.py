"""Settings that move within a TOML file: lines go to another place, and comments and order stay."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from tertulia._toml import toml_value
from tertulia.errors import ConfigError

_Path = tuple[str, ...]


def rewrite(text: str, wanted: dict[str, Any]) -> str:
    r"""The text of a file that says `wanted`; raise `ConfigError`, with what to write, if lines cannot do it.

    What may differ is a method's keys, of which some go to `[method.paper]`, and the homes of parties.

    >>> new = {"method": {"name": "ftm", "paper": {"literal_compose": True}}}
    >>> print(rewrite('[method]\nname = "ftm"\nliteral_compose = true  # as printed\n', new), end="")
    [method]
    name = "ftm"
    <BLANKLINE>
    [method.paper]
    literal_compose = true  # as printed
    """
    lines, old = _Lines(text), tomllib.loads(text)
    before, after = old.get("method", {}), wanted.get("method", {})
    if before != after:
        lines.change_method(before, after)
    for name, party in wanted.get("parties", {}).items():
        home = party.get("home")
        if home != old["parties"][name].get("home"):
            lines.replace(("parties", name), "home", f"home = {toml_value(home)}\n")
    found = "".join(lines.lines)
    try:
        if tomllib.loads(found) == wanted:
            return found
    except tomllib.TOMLDecodeError:
        pass
    raise ConfigError(f"its lines cannot be moved by themselves: write {_difference(old, wanted)} yourself")


class _Lines:
    """The lines of a file, and which table each is in."""

    def __init__(self, text: str) -> None:
        self.lines = re.findall(r"[^\n]*\n|[^\n]+", text)
        self.lines[-1:] = [f"{last.rstrip()}\n" for last in self.lines[-1:]]  # which may lack its end

    def change_method(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Move, rename or drop the keys of a method."""
        if self._find((), "method") is not None:  # a table in one line
            self.replace((), "method", f"method = {_inline(after)}\n")
            return
        moved = [key for key in after.get("paper", {}) if key not in before.get("paper", {})]
        taken = {key: self._take(("method",), key) for key in before if key not in after}
        for key in sorted(set(after) - set(before) - {"paper"}):
            self._insert(("method",), [f"{key} = {toml_value(after[key])}\n"])
        if moved:
            new = [taken.get(key) or [f"{key} = {toml_value(after['paper'][key])}\n"] for key in moved]
            self._insert(("method", "paper"), [line for part in new for line in part])

    def replace(self, table: _Path, key: str, line: str) -> None:
        """Put a line in place of a key's."""
        found = self._find(table, key)
        if found is not None:
            self.lines[slice(*found)] = [line]

    def _take(self, table: _Path, key: str) -> list[str]:
        """Remove the lines of a key."""
        found = self._find(table, key)
        if found is None:
            return []
        taken = self.lines[slice(*found)]
        del self.lines[slice(*found)]
        return taken

    def _insert(self, table: _Path, new: list[str]) -> None:
        """Add lines to a table; one that is not there is begun after the table that it is part of."""
        there = self._span(table)
        start, end = there or self._span(table[:-1]) or (0, len(self.lines))
        while end > start and not self.lines[end - 1].strip():
            end -= 1
        self.lines[end:end] = new if there else ["\n", f"[{'.'.join(table)}]\n", *new]

    def _span(self, table: _Path) -> tuple[int, int] | None:
        """Where the lines of a table are, behind its head."""
        heads = [(i, path) for i, line in enumerate(self.lines) if (path := _head_or_none(line)) is not None]
        ends = [*(i for i, _ in heads[1:]), len(self.lines)][: len(heads)]
        if not table:
            return 0, heads[0][0] if heads else len(self.lines)
        return next(((i + 1, end) for (i, path), end in zip(heads, ends, strict=True) if path == table), None)

    def _find(self, table: _Path, key: str) -> tuple[int, int] | None:
        """Where the lines of a key are."""
        first, end = self._span(table) or (0, 0)
        for i in range(first, end):
            if "=" in self.lines[i] and self.lines[i].split("=")[0].strip() == key:
                last = next((j for j in range(i + 1, end + 1) if _is_toml("".join(self.lines[i:j]))), None)
                return None if last is None else (i, last)
        return None


def _head_or_none(line: str) -> _Path | None:
    """The path of the table that a line begins, if it does.

    >>> _head_or_none('[parties."north west"]'), _head_or_none('names = ["a"]')
    (('parties', 'north west'), None)
    """
    if not line.lstrip().startswith("["):
        return None
    try:
        tree, path = tomllib.loads(line), []
    except tomllib.TOMLDecodeError:  # a line within a list
        return None
    while isinstance(tree, dict) and tree:
        ((name, tree),) = tree.items()
        path.append(name)
    return tuple(path)


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _inline(value: Any) -> str:
    """A value as it stands in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_inline(one)}" for key, one in value.items()) + " }"
    return toml_value(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def _difference(old: dict[str, Any], wanted: dict[str, Any]) -> str:
    """What a file would have to say, as far as it differs."""
    keys = [key for key in wanted if wanted[key] != old.get(key)]
    return ", ".join(f"{key} = {_inline(wanted[key])}" for key in keys)
