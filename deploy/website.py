"""Build the site: docs/ and the pages that it links to, as HTML that loads nothing from other servers. `make site`.

Pages are written for the repository: links lead to files, formulas stand between dollars. This module prepares them for
Zensical: every page gets its place on the site, links are changed to these places, formulas become MathML, which
browsers draw by themselves, and notebooks become pages. A link that cannot be resolved is an error.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from os.path import relpath
from pathlib import Path
from typing import Any

import yaml
from latex2mathml.converter import convert

ROOT = Path(__file__).parents[1]
HOME = Path("index.md")
ELSEWHERE = {
    "README.md": HOME,
    "CHANGELOG.md": Path("project/changelog.md"),
    "CONTRIBUTING.md": Path("project/contributing.md"),
    "SECURITY.md": Path("project/security.md"),
    "benchmarks/RESULTS.md": Path("results/index.md"),
    "benchmarks/README.md": Path("results/commands.md"),
}
ASSETS = ("assets/site.css", "assets/iframe-worker.js")
SHIM = (
    "https://unpkg.com/iframe-worker/shim"  # what Zensical's plugin `offline` loads; ours is the same, beside the pages
)
COMMENT = re.compile(r"^<!--(?:(?!-->).)*-->\n", re.S | re.M)
CODE = re.compile(r"^(?P<fence>`{3,})[^\n]*\n.*?^(?P=fence)[ ]*$|`[^`\n]+`", re.S | re.M)
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
FORMULA = re.compile(
    r"^\$\$\n(?P<block>.+?)\n\$\$$|(?<![\w$\\])\$(?P<inline>[^$\s](?:[^$\n]*[^$\s])?)\$(?!\w)", re.S | re.M
)
MARKDOWN = str.maketrans({sign: f"&#{ord(sign)};" for sign in "*_|`[]~^\\"})


class SiteError(Exception):
    """Raised for a page that cannot be prepared, with the reason."""


def main() -> None:
    """Build the site into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="target folder; its contents are replaced")
    build(parser.parse_args().folder)


def build(folder: Path) -> None:
    """Build the site strictly: a warning is an error. An existing folder is replaced."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        lay_out(work / "pages")
        settings = (ROOT / "mkdocs.yml").read_text()
        for name in ("src", "deploy/docstrings.py"):  # both stay where they are
            settings = settings.replace(f"[{name}]", f"[{ROOT / name}]")
        (work / "mkdocs.yml").write_text(settings)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", "mkdocs.yml"]
        ended = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise SiteError(f"the site was not built\n{ended.stdout}{ended.stderr}")
        for page in (work / "site").rglob("*.html"):
            page.write_text(mend(page.read_text(), relpath(work / "site", page.parent)))
        (work / "site" / "llms.txt").write_text(llms(settings, work / "pages"))
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work / "site", folder)


def llms(settings: str, written: Path) -> str:
    """Return the site's table of contents for language models (llmstxt.org): each page with its first paragraph."""
    about = yaml.safe_load(settings.partition("\ntheme:")[0])
    lines = [f"# {about['site_name']}", "", f"> {about['site_description']}.", ""]
    for section in yaml.safe_load(settings[settings.index("\nnav:") :])["nav"]:
        ((name, entries),) = section.items()
        lines += [f"## {name}", ""]
        for entry in entries:
            place = Path(entry if isinstance(entry, str) else next(iter(entry.values())))
            text = CODE.sub(" ", (written / place).read_text())
            title = next(line.lstrip("# ") for line in text.splitlines() if line.startswith("# "))
            lines.append(f"- [{title}]({place.with_suffix('.html')}): {first_paragraph(text)}")
        lines.append("")
    return "\n".join(lines)


def first_paragraph(text: str) -> str:
    """Return a page's first paragraph of prose as plain text, at most 300 characters."""
    parts = (" ".join(part.split()) for part in text.split("\n\n"))
    prose = next((part for part in parts if part and part[0] not in "#|<!>`-*1"), "")
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", re.sub(r"<[^>]+>", "", prose)).replace("**", "").replace("`", "")
    return plain if len(plain) <= 300 else f"{plain[:297]}..."


def mend(html: str, root: str) -> str:
    """Load the one foreign script from the site itself; let wide tables scroll, also by the keyboard."""
    html = html.replace(SHIM, f"{root}/assets/iframe-worker.js")
    return html.replace("<table>", '<div class="wide" tabindex="0"><table class="data">').replace(
        "</table>", "</table></div>"
    )


@cache
def pages() -> dict[Path, Path]:
    """Map every page of the repository that the site has to its place there."""
    found = {ROOT / name: place for name, place in ELSEWHERE.items() if name != "README.md"}
    found |= {page: Path("results") / page.name for page in sorted((ROOT / "benchmarks" / "results").glob("*.md"))}
    docs = ROOT / "docs"
    found |= {page: page.relative_to(docs) for page in sorted(docs.rglob("*.md"))}
    return found | {book: book.relative_to(docs).with_suffix(".md") for book in sorted(docs.rglob("*.ipynb"))}


def lay_out(folder: Path) -> None:
    """Write all pages for Zensical, and the files that they link to; those that are Markdown are pages, too."""
    waiting, seen = list(pages()), set(pages())
    while waiting:
        page = waiting.pop()
        text, wanted = for_the_site(page)
        place = place_of(page)
        write(folder / place, text)
        for file in wanted:
            if file.suffix == ".md" and file not in seen:
                waiting.append(file)
                seen.add(file)
            elif file.suffix != ".md":
                copy(file, folder / (place.with_name(file.name) if file == page else place_of(file)))
    for name in ASSETS:
        copy(ROOT / "docs" / name, folder / name)


def for_the_site(page: Path) -> tuple[str, set[Path]]:
    """Convert a page for Zensical; return it with the files that it links to."""
    text, wanted = notebook(page) if page.suffix == ".ipynb" else COMMENT.sub("", page.read_text()), set[Path]()
    return outside_code(text, lambda part: formulas(links(part, page, wanted))), wanted


def write(path: Path, text: str) -> None:
    """Write a page, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def copy(file: Path, target: Path) -> None:
    """Copy a file that a page links to."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)


def place_of(file: Path) -> Path:
    """Return the place of a repository file on the site."""
    name = file.relative_to(ROOT)
    if str(name) in ELSEWHERE:
        return ELSEWHERE[str(name)]
    if file in (known := pages()):
        return known[file]
    return name.relative_to("docs") if name.parts[0] == "docs" else Path("files") / name


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Apply a change to a page, except to its code."""
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [change(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, change(text[end:])])


def links(text: str, page: Path, wanted: set[Path]) -> str:
    """Change the links of a text to places on the site; add files that are not pages to `wanted`."""
    here = place_of(page).parent

    def turned(link: re.Match[str]) -> str:
        name, mark, anchor = link["target"].partition("#")
        if not name or "://" in name:
            return link[0]
        file = (page.parent / name).resolve()
        if not file.is_file() or ROOT not in file.parents:
            raise SiteError(f"{page.relative_to(ROOT)}: {name} is no file of the repository")
        if file == page:  # a notebook, to be downloaded
            wanted.add(file)
            return link[0]
        place = place_of(file)
        if file not in pages() and str(file.relative_to(ROOT)) not in ELSEWHERE:
            wanted.add(file)
        return f"]({relpath(place, here)}{mark}{anchor})"

    return LINK.sub(turned, text)


def formulas(text: str) -> str:
    """Convert the formulas of a text to MathML; characters with a meaning in Markdown become entities."""

    def drawn(formula: re.Match[str]) -> str:
        if formula["block"]:
            return f'<div class="formula" tabindex="0">{mathml(formula["block"], "block")}</div>'
        return f'<span class="formula">{mathml(formula["inline"], "inline")}</span>'

    return FORMULA.sub(drawn, text)


def mathml(formula: str, display: str) -> str:
    """Convert one formula to one line of MathML."""
    drawn = convert(formula.strip(), display=display)
    return " ".join(drawn.split()).translate(MARKDOWN)


def notebook(path: Path) -> str:
    """Convert a notebook to a page: its texts, and its code in blocks."""
    cells = json.loads(path.read_text())["cells"]
    return "\n\n".join([*cell_texts(cells), f"[This page as a notebook]({path.name}), to run it yourself."]) + "\n"


def cell_texts(cells: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each cell as Markdown."""
    for cell in cells:
        source = "".join(cell["source"])
        yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"


if __name__ == "__main__":
    try:
        main()
    except SiteError as reason:
        sys.exit(str(reason))
