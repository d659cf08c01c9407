"""The shape of the package: sizes of files and functions, and words that neither sources nor pages use.

A *kernel* is a function compiled by a decorator of `core.jit`, or an intrinsic. A *launcher* is a function of
`tertulia.kernels` whose body names a kernel, or names a launcher of its own family (`kernels.lda`, say): it checks
plain arrays and hands them on, one argument for each. Every other function has at most 8 parameters.
"""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import tertulia

PACKAGE = Path(tertulia.__file__).parent
FILES = sorted(path for pattern in ("*.py", "*.pyi") for path in PACKAGE.rglob(pattern))
MOST_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 400, 50, 8
COMPILED = {"kernel", "lean_kernel", "inner_kernel", "loose_kernel", "intrinsic", "overload"}
Function = ast.FunctionDef | ast.AsyncFunctionDef

DOCUMENTS = r"\b(SPEC|PRIVACY|DESIGN|THREATS|ISSUES?)\b|\b[Ii]ssue \d|\bas of step\b|\b[Ss]tep \d+\b"
BY_NAME = (
    r"getattr\(.*(method|settings|choices|parties).*, [\"'](rounds|mode|epsilon|sigma|topics|vocabulary)[\"']"
    r"|settings(\.get\(|\[)[\"'](rounds|mode|epsilon|sigma|topics)[\"']"
)
# Words end at anything but a letter: names of tests have them between underscores, where \b does not match.
GLOSSARY = {
    r"(?<![A-Za-z])House(Rules)?(?![A-Za-z])": "PartyHost, PartyConfig",
    r"(?<![A-Za-z])Visit(?![A-Za-z])": "StepContext",
    r"(?<![A-Za-z])Carrier(?![A-Za-z])": "Transport",
    r"(?<![A-Za-z])(?i:clapped)(?![A-Za-z])": "thresholded",
    r'(?<!["A-Za-z])(?i:(re)?told)(?![A-Za-z]|[ _]apart)|(?<![A-Za-z])(?i:telling)(?![A-Za-z])':
        "report(s)",  # but ids of charges hold a key "told"
    r"(?<![A-Za-z])(?i:honest[ _]epsilon)(?![A-Za-z])": "real epsilon",
    r"(?<![A-Za-z])(?<!drawn )(?i:anew)(?![A-Za-z])": "again",  # but "drawn anew" is part of ledgers' rows
    r"(?<!who's )(?<![A-Za-z])(?i:whoever)(?![A-Za-z])": "a plain noun",
    r"(?<![A-Za-z])(?i:so[ _]many)(?![A-Za-z])": "the number",
    r"(?<![A-Za-z])(?i:seat|desk|gate|house)s?(?![A-Za-z])|(?<![A-Z])(Seat|Desk|Gate|House)s?(?![a-z])":
        "connection, registry, service, organisation",
}  # fmt: skip
ROOT = PACKAGE.parents[1]
TEXTS = ("*.md", "Makefile", "mkdocs.yml", "docs/**/*.md", "benchmarks/**/*.md", "examples/*.toml", "deploy/**/*")
SOURCES = ("tests/**/*.py", "benchmarks/**/*.py", "deploy/**/*.py", "examples/*.py")


class Found(NamedTuple):
    """A function of the package."""

    path: Path
    node: Function

    def __str__(self) -> str:
        return f"{self.path.relative_to(PACKAGE)}:{self.node.lineno} {self.node.name}"

    @property
    def parameters(self) -> list[str]:
        """All but `self` and `cls`."""
        given = self.node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        names = [argument.arg for argument in every if argument is not None]
        return names[1:] if names[:1] in (["self"], ["cls"]) else names

    @property
    def is_kernel(self) -> bool:
        """Whether it is machine code, or makes some."""
        decorators = {ast.unparse(decorator).split("(")[0] for decorator in self.node.decorator_list}
        return bool(decorators & COMPILED)


@cache
def tree(path: Path) -> list[ast.AST]:
    """All nodes of a file."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def functions(folder: Path = PACKAGE) -> Iterator[Found]:
    for path in FILES:
        if path.is_relative_to(folder):
            for node in tree(path):
                if isinstance(node, Function):
                    yield Found(path, node)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> dict[str, str]:
    """What a file's imports call things -> what they are: a module, or a module's name."""
    found = {}
    for node in tree(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def named(function: Found) -> set[str]:
    """The full names of what a body names: things of its own module, things imported, things of modules imported."""
    known, own, names = imports(function.path), module_of(function.path), set()
    for node in (node for statement in function.node.body for node in ast.walk(statement)):
        if isinstance(node, ast.Name):
            names.add(known.get(node.id, f"{own}.{node.id}"))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            names.add(f"{known[node.value.id]}.{node.attr}")
    return names


def launchers() -> set[str]:
    """The full names of functions of `kernels` that name a kernel, or a launcher of their own family."""
    inside = list(functions(PACKAGE / "kernels"))
    kernels = {f"{module_of(f.path)}.{f.node.name}" for f in inside if f.is_kernel}
    uses = {f"{module_of(f.path)}.{f.node.name}": named(f) for f in inside if not f.is_kernel}
    found = {name for name, used in uses.items() if used & kernels}
    while more := {
        name
        for name, used in uses.items()
        if name not in found and any(family(name) == family(other) for other in used & found)
    }:
        found |= more
    return found


def family(name: str) -> str:
    return ".".join(name.split(".")[:3])  # tertulia.kernels.lda


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and strings, docstrings among them, with their lines."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], token.string


def outside(patterns: tuple[str, ...]) -> list[Path]:
    """The files beside the package that match, but for this one, which names the words."""
    found = {path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    return sorted(path for path in found if path != Path(__file__) and "__pycache__" not in path.parts)


@cache
def written(path: Path) -> list[tuple[int, str]]:
    """The lines that people read in a file: all of a page; of a source its names, comments and docstrings."""
    return list(_written(path))


def _written(path: Path) -> Iterator[tuple[int, str]]:
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(source.splitlines(), start=1)
        return
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        docstring = token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT)
        if docstring or token.type in (tokenize.NAME, tokenize.COMMENT):
            yield from enumerate(token.string.splitlines(), start=token.start[0])
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type


@cache
def layers() -> dict[str, int]:
    """Room -> its height in import-linter's contract; rooms of one line are equally high.

    The package itself is the highest. Modules that no line lists are helpers, which stand below all rooms.
    """
    contracts = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    lines = next(contract["layers"] for contract in contracts if contract["name"] == "Dependencies run one way")
    found = {room.strip(): -n for n, line in enumerate(lines) for room in re.split(r"[|:]", line)}
    helpers = {module_of(path) for path in PACKAGE.glob("*.py")} - {"tertulia", "tertulia.__main__"}
    return dict.fromkeys(helpers, -len(lines)) | found | dict.fromkeys(("tertulia", "tertulia.__main__"), 1)


def strings(path: Path) -> Iterator[ast.Constant]:
    """All strings but docstrings."""
    prose = {id(node.value) for node in tree(path) if isinstance(node, ast.Expr)}
    for node in tree(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node


def names_above(module: str, text: str) -> list[str]:
    """What a text in a module names that lies above the module."""
    height, named = layers(), re.findall(r"\btertulia(?:\.\w+)+", text)
    room = ".".join(module.split(".")[:2])
    return [name for name in named if height.get(".".join(name.split(".")[:2]), -99) > height[room]]


def test_files_are_short():
    long = {
        str(path.relative_to(PACKAGE)): n for path in FILES if (n := len(path.read_text().splitlines())) > MOST_LINES
    }
    assert not long


def test_functions_are_short():
    long = {str(found): n for found in functions() if (n := lines(found.node)) > MOST_FUNCTION_LINES}
    assert not long


def lines(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_functions_have_few_parameters_but_for_kernels_and_their_launchers():
    free = launchers()
    many = {
        str(found): n
        for found in functions()
        if (n := len(found.parameters)) > MOST_PARAMETERS
        and not found.is_kernel
        and f"{module_of(found.path)}.{found.node.name}" not in free
    }
    assert not many


def test_launchers_are_those_functions_of_kernels_that_lead_to_a_kernel():
    free = launchers()
    lda = "tertulia.kernels.lda"
    assert {f"{lda}.run", f"{lda}.sparse.sweep", f"{lda}.blocked.run_beside", f"{lda}.phi.draw_phi"} <= free
    assert not {"tertulia.kernels.core.checks.check_documents", f"{lda}.priors.fit_beta", f"{lda}.choose"} & free


def test_no_string_names_a_module_above():
    """A module that is found by its name is a dependency that import-linter does not see."""
    above = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {name}"
        for path in FILES
        for node in strings(path)
        for name in names_above(module_of(path), node.value)
    ]
    assert not above


def test_names_of_modules_above_are_recognised():
    assert names_above("tertulia.models.display", "tertulia.view.plots") == ["tertulia.view.plots"]
    assert names_above("tertulia._lazy", "tertulia.models:Topics") == ["tertulia.models"]
    for helper in ("_kinds", "_locks", "_memory", "_plain", "_toml"):
        assert names_above(f"tertulia.{helper}", "tertulia.corpus") == ["tertulia.corpus"]
    assert not names_above("tertulia.view.plots", "tertulia.models")
    assert not names_above("tertulia.kernels.lda", "tertulia.corpus")  # beside it; imports are checked by import-linter
    assert not names_above("tertulia.federation.party.host", "tertulia.party")  # a logger
    assert not names_above("tertulia", "tertulia.view.plots")  # the top-level package registers views


def test_settings_are_not_recognised_by_their_names_outside_methods():
    """A method declares what its settings mean, by properties of `MethodSettings` and by marks."""
    names = [
        f"{path.relative_to(PACKAGE)}:{n}: {line.strip()}"
        for path in FILES
        if not path.is_relative_to(PACKAGE / "methods")
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(BY_NAME, line)
    ]
    assert not names


@pytest.mark.parametrize(
    "line",
    ['getattr(settings_of(run).method, "rounds", None)', 'plan.settings.get("mode")', "plan.settings['epsilon']"],
)
def test_settings_by_name_are_recognised(line):
    assert re.search(BY_NAME, line)


def test_nothing_outside_the_repository_is_cited():
    cited = [
        f"{path.relative_to(PACKAGE)}:{line}: {match[0]}"
        for path in FILES
        for line, text in prose(path)
        for match in re.finditer(DOCUMENTS, text)
    ]
    assert not cited


@pytest.mark.parametrize("pattern", GLOSSARY)
def test_words_that_mean_something_else_are_not_used(pattern):
    used = [
        f"{path.relative_to(PACKAGE)}:{n}: {line.strip()}"
        for path in FILES
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(pattern, line)
    ]
    assert not used, f"say {GLOSSARY[pattern]}"


@pytest.mark.parametrize("pattern", GLOSSARY)
def test_nor_are_they_in_pages_tests_and_benchmarks(pattern):
    used = [
        f"{path.relative_to(ROOT)}:{n}: {line.strip()}"
        for path in [*outside(TEXTS), *outside(SOURCES)]
        for n, line in written(path)
        if re.search(pattern, line)
    ]
    assert not used, f"say {GLOSSARY[pattern]}"


def test_pages_tests_and_benchmarks_are_read(tmp_path):
    found = {str(path.relative_to(ROOT)) for path in [*outside(TEXTS), *outside(SOURCES)]}
    assert {"README.md", "CONTRIBUTING.md", "Makefile", "docs/federation.md", "benchmarks/README.md"} <= found
    assert {"deploy/release.py", "deploy/docker/Dockerfile", "tests/conftest.py", "benchmarks/common.py"} <= found
    source = '"""Of desks."""\nseat_block = "a gate"  # a house\n\n\ndef at_the_gate():\n    """Of seats."""\n'
    (tmp_path / "source.py").write_text(source)
    read = " ".join(line for _, line in written(tmp_path / "source.py"))
    assert all(name in read for name in ("desks", "seat_block", "a house", "at_the_gate", "Of seats"))
    assert "a gate" not in read  # a string may be a document's text


@pytest.mark.parametrize("line", ["as PRIVACY says", "see SPEC 1", "issue 13", "dense as of step 1", "DESIGN.md"])
def test_citations_are_recognised(line):
    assert re.search(DOCUMENTS, line)


@pytest.mark.parametrize(
    "line",
    [
        "class House:", "told = reports()", "def _told(", "its honest epsilon", "clapped", "made anew", "self._gate",
        "seat_block = 1", "at_the_gate()", "SeatBlock", "openHouse", "three houses", "Whoever asks", "so many topics",
        "def test_words_drawn_anew(", "test_users_are_told_of", "test_rows_are_equal_whoever_asks", "so_many_words",
    ],
)  # fmt: skip
def test_words_are_recognised(line):
    assert any(re.search(pattern, line) for pattern in GLOSSARY)


@pytest.mark.parametrize(
    "line",
    [
        "make wheelhouse", "a gateway", "aggregate", "investigate", "household", "tolerated", "told apart",
        "test_errors_are_told_apart", "untold", '"told": 3', "a row drawn anew",
    ],
)  # fmt: skip
def test_words_that_only_contain_them_are_not(line):
    assert not any(re.search(pattern, line) for pattern in GLOSSARY)
