"""The page of all commands, made from the commands themselves, and the schemas of what they print.

`python -m tertulia.cli.commands_page` writes docs/commands.md and docs/commands.schema.json below the working
directory.
"""

from __future__ import annotations

import inspect
import json
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import typer

from tertulia.cli.main import app
from tertulia.cli.outputs import OUTPUTS, schemas
from tertulia.cli.outputs.base import Output

HEAD = """# Commands

Made by `python -m tertulia.cli.commands_page` from the commands themselves. `tertulia COMMAND --help` says the same in
a terminal. What is printed for people fits 80 columns; hints and progress go to stderr, results to stdout.

| before a command | |
|---|---|
| `-q`, `--quiet` | print results and errors only |
| `-v`, `--verbose` | say more: what is logged, and where an error comes from |
| `--version` | print the version |

`tertulia completion bash >> ~/.bashrc` (or `zsh`, `fish`) lets the shell complete commands and options. `tertulia warm`
compiles everything ahead. If it is not run, the first use of a method compiles what it needs, about 6 seconds for LDA
or Consensus, and keeps it; where nothing can be kept (a read-only installation and home), each start says so.

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | it could not be done: `error: ...` on stderr names what is wrong and what to do; or `doctor` found something bad |
| 2 | the command was typed wrongly: an unknown option, a missing argument |
| 3 | `check`: a policy forbids some of what would leave |
| 130 | stopped by Ctrl-C; of a run, stderr says by which command to go on |
| 141 | nobody reads the output any more, as in `tertulia topics RUN \\| head -1` |
| 143 | stopped by SIGTERM, as by Ctrl-C |

`serve` and `attend` end with 0 on SIGTERM: it is how services stop them.

## JSON

With `--json` a command prints one object on one line of stdout, and nothing else there. Keys have no spaces, numbers
are numbers, and null stands where there is none: an epsilon of null has no bound. Keys are stable: within a major
version none is renamed, removed or given another type; new ones may come. `commands.schema.json`, beside this page, has
a JSON Schema for each command.
"""


def page() -> str:
    """The page, in Markdown."""
    return "\n".join([HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for name, command in _commands(typer.main.get_command(app), ""):
        yield from (f"## `tertulia {name}`", "", _help(command), "")
        yield from _parameters(command)
        for key in (name, f"{name} --check"):
            if key in OUTPUTS:
                yield from _keys(key, OUTPUTS[key])


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that can be typed, in the order of `--help`."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for part, inner in command.commands.items():
        yield from _commands(inner, f"{name} {part}".strip())


def _help(command: click.Command) -> str:
    return inspect.cleandoc(command.help or "").replace("|", "\\|")


def _parameters(command: click.Command) -> Iterator[str]:
    """A row for each argument and option."""
    shown = [one for one in command.params if "--help" not in one.opts]
    if not shown:
        return
    yield from ("| argument or option | default | meaning |", "|---|---|---|")
    for one in shown:
        names = ", ".join(f"`{text}`" for text in _names(one))
        yield f"| {names} | {_default(one)} | {getattr(one, 'help', '') or ''} |".replace("bash|zsh|fish", "SHELL")
    yield ""


def _names(one: click.Parameter) -> list[str]:
    if isinstance(one, click.Argument):
        return [str(one.metavar or one.name or "").upper() if one.metavar is None else str(one.metavar)]
    return [*one.opts, *one.secondary_opts]


def _default(one: click.Parameter) -> str:
    if one.required:
        return "required"
    if one.default in (None, False, ()) or getattr(one, "count", False):
        return ""
    return f"`{one.default}`"


def _keys(name: str, output: type[Output]) -> Iterator[str]:
    """What an object of JSON has, with what stands inside it."""
    yield from (f"`tertulia {name} --json`: {inspect.getdoc(output)}", "", "| key | type | meaning |", "|---|---|---|")
    yield from _rows(output, "")
    yield ""


def _rows(output: type[Output], before: str) -> Iterator[str]:
    for name, field in output.model_fields.items():
        kind, inner = _kind(field.annotation)
        optional = "" if field.is_required() else "; may be missing"
        yield f"| `{before}{name}` | {kind}{optional} | {field.description or ''} |"
        if inner is not None:
            yield from _rows(inner, f"{before}{name}[].")


def _kind(annotation: Any) -> tuple[str, type[Output] | None]:
    """A type in words, and the object that it is a list of."""
    for one in typing.get_args(annotation):
        if isinstance(one, type) and issubclass(one, Output):
            return "list of objects", one
    if isinstance(annotation, types.UnionType):
        return " or ".join(_kind(one)[0] for one in annotation.__args__), None
    text = str(annotation) if typing.get_args(annotation) else getattr(annotation, "__name__", str(annotation))
    words = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false", "NoneType": "null"}
    found = re.sub(r"[A-Za-z]+", lambda match: words.get(match[0], match[0]), text.replace("typing.", ""))
    return _in_words(found), None


def _in_words(text: str) -> str:
    """`dict[text, list[whole number]]` as people say it."""
    for _ in range(text.count("[")):
        text = re.sub(r"dict\[text, (.*)\]", r"object of \1", text)
        text = re.sub(r"list\[(.*)\]", r"list of \1", text)
    return text.replace("Any", "anything").replace("|", "or")


def main() -> None:
    """Write both files."""
    docs = Path("docs")
    (docs / "commands.md").write_text(page(), encoding="utf-8")
    (docs / "commands.schema.json").write_text(json.dumps(schemas(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
