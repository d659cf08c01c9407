"""What the pages name exists: links with their anchors, files, and benchmarks."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
        *ROOT.glob("benchmarks/results/*.md"),
    ]
)
FILE = re.compile(r"(?<![\w/.])((?:[\w.-]+/)+[\w.-]+\.(?:py|md|toml|csv|jsonl))(?![\w/])")
MADE_BY_RUNS = ("runs/", "parties/", "server/", "benchmarks/out/")


def _slug(heading):
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _exists(name, page):
    """Whether a file is there; of a file that is still to be written (NAME), whether its folder is."""
    name = name.partition("NAME")[0]
    return any((folder / name).exists() for folder in (ROOT, page.parent, ROOT / "src" / "tertulia"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.is_file(), f"{page.name}: {target} leads nowhere"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
            assert anchor in map(_slug, headings), f"{page.name}: {name} has no heading '{anchor}'"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page):
    names = [name for name in FILE.findall(page.read_text()) if not name.startswith(MADE_BY_RUNS)]
    assert [name for name in names if not _exists(name, page)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_benchmarks_that_are_named_exist(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    for module in set(re.findall(r"python -m (benchmarks(?:\.[a-z]\w*)+)", page.read_text())):
        assert importlib.util.find_spec(module), f"{page.name}: no {module}"


def test_every_benchmark_is_listed():
    folder = ROOT / "benchmarks"
    commands = {
        str(file.relative_to(folder).with_suffix("")).replace("/", ".").removesuffix(".__main__")
        for file in folder.glob("*/*.py")
        if "arguments(" in file.read_text() or "parser(" in file.read_text()
    }
    listed = set(re.findall(r"^\| `([\w.]+)", (folder / "README.md").read_text(), re.M))
    assert commands <= listed, f"benchmarks/README.md lacks {sorted(commands - listed)}"
    assert len(commands) > 10


def test_nine_changes_are_counted():
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## Nine changes")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| a")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len(rows) == 9
    counts = {change: int(files) for change, _, files, _ in rows}
    for change, must, _, _ in rows:
        named = re.findall(r"`((?:[\w.]+/)*[\w.]+\.(?:pyi?|toml))`", must)
        assert len(named) == len(set(named)) == counts[change], change
    assert counts["a method"] <= 4
    assert counts["an engine"] <= 3
    assert counts["a command"] <= 2
