"""The demo corpus: the docstrings of installed packages, real text that every installation has.

Sources are parsed, never imported. They make three parties (the standard library, NumPy and SciPy), or any number of
similar parties among which the same docstrings are split at random.
"""

from __future__ import annotations

import ast
import gc
import importlib.util
import inspect
import os
import re
import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tertulia.corpus.builder import Builder
from tertulia.corpus.corpus import Corpus
from tertulia.corpus.splits import Row, at_random
from tertulia.corpus.tokens import TextOptions
from tertulia.errors import InputError

PARTIES = ("stdlib", "numpy", "scipy")
_SKIPPED = {  # tests, tables, demonstrations, and other people's packages
    *("test", "tests", "_testutils", "idlelib", "lib2to3", "turtledemo", "pydoc_data", "encodings", "ensurepip"),
    *("site-packages", "dist-packages"),
}
_DEFINITION = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def demo_parties(options: TextOptions | None = None, min_words: int = 20) -> dict[str, Corpus]:
    """Make the three parties of the demo; a document's id is its name (`numpy.lib.scimath.sqrt`).

    The label is the module two levels deep: `scipy.stats`, `email`.
    """
    parties = {}
    for party in PARTIES:
        builder = Builder(options)
        for name, text in docstrings(party, min_words):
            builder.add(name, text, label=".".join(name.split(".")[: 1 if party == "stdlib" else 2]))
        parties[party] = builder.finish()
    return parties


def demo_teams(teams: int = 8, seed: int = 0) -> dict[str, Corpus]:
    """Split the same documents at random among similar parties, `team 1` and so on, like branches of one field."""
    whole = Corpus.concatenate(list(demo_parties().values()))
    names = [f"team {number}" for number in range(1, teams + 1)]
    assign = at_random(dict.fromkeys(names, 1.0), seed)
    owner = np.array([assign(Row(name, "")) for name in whole.table["id"]])
    return {name: whole.select(owner == name) for name in names}


def docstrings(package: str, min_words: int = 20) -> list[tuple[str, str]]:
    """Collect the cleaned docstrings of a package (or of "stdlib") as pairs of name and text, without duplicates."""
    root = _root(package)
    found: dict[str, str] = {}  # text -> name
    with _without_collections():
        for file in _sources(root):
            inside = file.relative_to(root).with_suffix("").parts
            module = ".".join(part for part in (package, *inside) if part not in ("stdlib", "__init__"))
            for name, raw in _raw_docstrings(file):
                text = clean(raw)
                if len(text.split()) >= min_words:
                    found.setdefault(text, f"{module}.{name}" if name else module)
    if not found:
        raise InputError(f"package '{package}' has no docstrings in {root}: its sources are not installed")
    return [(name, text) for text, name in found.items()]


def _root(package: str) -> Path:
    if package == "stdlib":
        return Path(sysconfig.get_path("stdlib"))
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"there is no package '{package}': pip install {package}")
    return Path(spec.submodule_search_locations[0])


def _sources(root: Path) -> Iterator[Path]:
    for folder, inside, files in os.walk(root):
        inside[:] = sorted(set(inside) - _SKIPPED)  # os.walk does not enter removed folders
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py") and name[:5] != "test_")


@contextmanager
def _without_collections() -> Iterator[None]:
    """Pause the garbage collector: syntax trees have no cycles, and the search for them takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _raw_docstrings(file: Path) -> Iterator[tuple[str, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old sources have invalid escapes
            tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # templates and sources for other Python versions
    yield from _walk(tree, "")


def _walk(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    """Walk modules, classes and the blocks in them, not the bodies of functions."""
    if isinstance(node, _DEFINITION):
        if text := ast.get_docstring(node):
            yield name, text
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _walk(child, f"{name}.{child.name}" if name else child.name)
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _walk(child, name)
        elif isinstance(child, ast.Expr) and isinstance(child.value, ast.Call):
            yield from _added_docstrings(child.value)


def _added_docstrings(call: ast.Call) -> Iterator[tuple[str, str]]:
    """Find docstrings that are set by a call, `add_newdoc("numpy", "ndarray", ("sort", "..."))`, for objects in C."""
    if "add_newdoc" in ast.unparse(call.func):
        strings = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant) and type(node.value) is str]
        names = [text for text in strings if text.isidentifier()]
        for text in strings:
            if " " in text:
                yield ".".join(names), inspect.cleandoc(text)


# Markup of numpydoc and reStructuredText.
_DOCTEST = re.compile(r"^[ \t]*>>>.*\n?(?:[ \t]*\S.*\n?)*", re.MULTILINE)
_SECTION = re.compile(r"^[ \t]*(\S.*)\n[ \t]*[-=~^]{3,}[ \t]*$", re.MULTILINE)
_TYPE_LINE = re.compile(r"^[ \t]*[*\w{][\w*, .()}]* : .*$", re.MULTILINE)  # x : array_like, optional
_NOISE = re.compile(
    r"""  :math:`[^`]*` | ``.*?`` | \[\w+\]_ | https?://\S+ | %\(\w+\)s | \$\{?\w+\}? | :\w+(?::\w+)?:(?=`)
        | ^[ \t]*[-=~^*+|]{3,}[ \t]*$ """,
    re.VERBOSE | re.MULTILINE,
)
_BLANK_LINES = re.compile(r"\n\s*\n")
_LEFT_OUT = ("see also", "references")  # lists of names


def clean(docstring: str) -> str:
    """Keep the prose of a docstring: no examples in code, headings, types, formulas, references or markup."""
    text = "\n".join(_without_blocks(_DOCTEST.sub("\n", docstring)))
    pieces = _SECTION.split(text)  # prose, heading, prose, heading, ..
    kept = [pieces[0], *(p for h, p in zip(pieces[1::2], pieces[2::2], strict=True) if h.lower() not in _LEFT_OUT)]
    prose = _NOISE.sub(" ", _TYPE_LINE.sub("", "\n".join(kept))).replace("`", "")
    return _BLANK_LINES.sub("\n\n", prose).strip()


def _without_blocks(text: str) -> Iterator[str]:
    """Drop directives (`.. note::`) and literal blocks (after `::`), with everything indented below them."""
    above: int | None = None
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        if above is not None and (not line.strip() or depth > above):
            continue
        directive = line.lstrip().startswith(".. ")
        above = depth if directive or line.rstrip().endswith("::") else None
        if not directive:
            yield line
