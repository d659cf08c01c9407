"""What pages show is what runs: blocks of Python, commands, settings.

Blocks of a page run in order, in one namespace, in an empty folder; `world` is what they may take for granted. A page
may prepare more in a comment that no reader sees (`<!-- setup`, lines of Python, `-->`). A block that cannot run has a
comment before it that says why: `<!-- not run: it needs a cluster -->`. Commands are parsed; those of a block after
`<!-- run -->` are run, one after the other.
"""

import ast
import re
import shlex
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import typer

from tertulia.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")])
PART = re.compile(
    r"^<!-- (?P<kind>setup|not run:|run)(?P<said>.*?)-->$|^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.S | re.M
)
TYPED = re.compile(r"(?:^|/bin/|-- |compose exec (?:-T )?\w+ )tertulia (?=[a-z])(.+)$|compose run --rm \w+ (?!-)(.+)$")
INLINE = re.compile(r"(?<!`)`tertulia\s+([a-z][^`]*)`(?!`)")
SUBJECTS = (
    ["rain", "sun", "river", "wind", "cloud", "storm", "snow", "weather"],
    ["bank", "money", "coin", "loan", "market", "price", "trade", "interest"],
    *([f"subject{'abcdefgh'[n]}{'klmnopqr'[w]}" for w in range(8)] for n in range(6)),
)


class Block(NamedTuple):
    """A block of a page: in which language, what, from which line on, why it is not run, or whether commands are."""

    page: Path
    language: str
    code: str
    line: int
    excuse: str | None = None
    is_run: bool = False

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, and its hidden preparations (language `setup`), in order."""
    text, found, excuse, is_run = page.read_text(), [], None, False
    for part in PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 2
        if part["kind"] == "not run:":
            excuse = part["said"].strip()
            continue
        if part["kind"] == "run":
            is_run = True
            continue
        language, code = ("setup", part["said"]) if part["kind"] else (part["language"], part["code"])
        found.append(Block(page, language, code, line, excuse, is_run))
        excuse, is_run = None, False
    return found


def run(page: Path, names: dict) -> dict:
    """Run a page's Python in a namespace that holds `names`, and give that namespace back."""
    for block in blocks(page):
        if block.language in ("python", "setup") and block.excuse is None:
            placed = "\n" * (block.line - 1) + block.code.lstrip("\n" if block.language == "setup" else "")
            exec(compile(placed, str(page), "exec"), names)
            names["last_block"] = block.code
    return names


def world() -> dict:
    """What snippets may take for granted: small texts, of two parties, their words, and a label for each text."""
    north, south = texts(0), texts(1)
    return {
        "texts": north,
        "more_texts": south,
        "parties": {"north": north, "south": south},
        "words": [word for subject in SUBJECTS for word in subject],
        "labels": ["weather" if number % 2 else "money" for number in range(len(north))],
    }


def texts(seed: int, n: int = 64) -> list[str]:
    """Texts of each subject in turn, of twenty of its eight words."""
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(SUBJECTS[number % len(SUBJECTS)], 20)) for number in range(n)]


def commands(page: Path) -> list[str]:
    """The commands that a page types in blocks, without `tertulia`."""
    return [typed for block in blocks(page) if block.language in ("", "bash", "sh") for typed in typed_in(block)]


def typed_in(block: Block) -> list[str]:
    """The commands of a block."""
    lines = block.code.splitlines()
    return [next(filter(None, typed.groups())) for line in lines if (typed := TYPED.search(line))]


def arguments_of(typed: str) -> list[str]:
    """A command in words, without comments and without what the shell does."""
    return shlex.split(
        re.split(r"\s[#>|]|\s\\\||\s<\s", typed)[0].translate(dict.fromkeys(map(ord, "[]…"))).replace("...", "")
    )


def mentions(page: Path) -> list[str]:
    """The commands that a page's sentences name."""
    return [" ".join(found.split()) for found in INLINE.findall(_prose(page))]


def _prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M)


@cache
def _commands() -> click.Command:
    return typer.main.get_command(app)


def inline_python(page: Path) -> list[ast.expr]:
    """What a page's sentences say in Python about `tt`, where it can be parsed."""
    spans = re.findall(r"(?<!`)`([^`]*\btt\.[^`]*)`(?!`)", _prose(page))
    return [found for span in spans if (found := _expression_or_none(span)) is not None]


def _expression_or_none(span: str) -> ast.expr | None:
    try:
        return ast.parse(" ".join(span.split()), mode="eval").body
    except SyntaxError:
        return None


def understand(typed: str, *, whole: bool) -> None:
    """Parse a command as the command line would; with `whole` nothing that it needs may be missing.

    Files need not be there, as pages name other people's.
    """
    command = _commands()
    arguments = arguments_of(typed)
    while isinstance(command, click.Group) and arguments:
        name = arguments.pop(0)
        assert name in command.commands, f"there is no command {name!r}"
        command = command.commands[name]
    for parameter in command.params:
        if isinstance(parameter.type, click.Path):
            parameter.type.exists = False
    if whole:
        command.make_context(command.name, arguments)
    else:
        command.make_parser(click.Context(command)).parse_args([*arguments, "whatever"])  # of a last option
