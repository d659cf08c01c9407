"""Edits of TOML files that people wrote: one value changes, comments and order stay."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from tertulia.errors import ConfigError


def toml_value(value: Any) -> str:
    """Format a value as TOML: a boolean, a number, a text, or a list of these.

    >>> toml_value(("topic sizes", "words")), toml_value(True)
    ('["topic sizes", "words"]', 'true')
    """
    text = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")  # the only character that TOML escapes and JSON does not


def with_value(text: str, key: str, value: Any) -> str:
    r"""Set a top-level key in the text of a file; raise `ConfigError` if a change of one line cannot do it.

    >>> print(with_value("# who\nnames = [\n  'a',\n]\n[[more]]\n", "names", ("a", "b")), end="")
    # who
    names = ["a", "b"]
    [[more]]
    """
    lines, new = re.findall(r"[^\n]*\n|[^\n]+", text), f"{key} = {toml_value(value)}\n"
    lines[-1:] = [f"{last.rstrip()}\n" for last in lines[-1:]]  # the last line may lack its line end
    tables = [i for i, line in enumerate(lines) if line.lstrip().startswith("[")]
    top = next((i for i in tables if _parsed_or_none("".join(lines[:i])) is not None), len(lines))
    found = [i for i, line in enumerate(lines[:top]) if line.split("=")[0].strip() == key and "=" in line]
    if found:
        first = last = found[0]
        while _parsed_or_none("".join(lines[first : last + 1])) is None and last + 1 < top:
            last += 1
        lines[first : last + 1] = [new]
    else:
        lines[top:top] = [new]
    changed = "".join(lines)
    wanted = {**tomllib.loads(text), key: list(value) if isinstance(value, tuple) else value}
    if _parsed_or_none(changed) != wanted:
        raise ConfigError(f"the file is written in a way that a line cannot change: write {new.strip()} yourself")
    return changed


def _parsed_or_none(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except ValueError:
        return None
