"""Numbers that pages quote from the book, kept true by marks: `<!-- book:NAME/LINE/X -->861<!-- /book -->`.

A fourth part chooses what is quoted: `mean` (by default), `range` (mean, smallest and largest), `sd` (mean and standard
deviation), `percent`; a fifth one the number of decimals. `over` with a fifth part LINE is by how many percent the mean
is above that of this line. `<!-- book:NAME -->` alone holds the panel's whole table, `<!-- book:NAME/verdict -->` what
its sentences say; `applications/NAME` is a table of `benchmarks.applications`. `python -m benchmarks.book --pages`
fills all marks; a test fails where a page holds something else.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from benchmarks.book.applications import TABLES
from benchmarks.book.panels import Found
from benchmarks.book.registry import panels
from benchmarks.book.results import load_or_none
from benchmarks.book.tables import STYLES, decimals_of, quote_values, table

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"<!-- book:(?P<key>[^>]+?) -->(?P<said>.*?)<!-- /book -->", re.S)
GENERATED = ROOT / "docs" / "reproduction.md"


class QuoteError(Exception):
    """A mark that names no number of the book."""


def pages() -> list[Path]:
    """Return the pages that quote the book."""
    found = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("benchmarks/results/*.md"))]
    return [page for page in found if page != GENERATED and "<!-- book:" in page.read_text(encoding="utf-8")]


def fill(text: str) -> str:
    """Return a page with all its marks filled from the stored results."""
    return MARK.sub(lambda found: f"<!-- book:{found['key']} -->{quote(found['key'])}<!-- /book -->", text)


def wrong(page: Path) -> list[str]:
    """List the quotes of a page that are not what the book holds."""
    text = page.read_text(encoding="utf-8")
    return [
        f"{page.name}: {found['key']} is {quote(found['key'])}, not {found['said']}"
        for found in MARK.finditer(text)
        if found["said"] != quote(found["key"])
    ]


def quote(key: str) -> str:
    """Format the number, the table or the verdict that a mark names."""
    if key in TABLES:
        return f"\n\n{TABLES[key]()}\n"
    name, *parts = key.split("/")
    if parts in ([], ["verdict"]):
        return _whole(name, verdict=bool(parts))
    if len(parts) == 1:
        raise QuoteError(f"book:{key} names no number: NAME/LINE/X, NAME/verdict, or NAME for the table")
    line, x, *rest = parts
    style, decimals = (rest + ["mean", ""][len(rest) :])[:2]
    found, lines = _found(name), [line, decimals] if style == "over" else [line]
    if found is None or any(x not in found.lines.get(one, {}) for one in lines):
        raise QuoteError(f"book:{key} names no number: see benchmarks/results/book/{name}.json")
    if style == "over":
        above = 100 * (found(line, x) / found(decimals, x) - 1)
        return f"{round(above, 1) + 0.0:.1f} %"  # no -0.0
    if style not in STYLES:
        raise QuoteError(f"book:{key}: '{style}' is none of {', '.join(STYLES)}")
    values = found.seeds(line, x)
    return quote_values(values, style, int(decimals) if decimals else decimals_of(values))


@cache
def _found(name: str) -> Found | None:
    result = load_or_none(name)
    return None if result is None else Found(result["numbers"])


def _whole(name: str, *, verdict: bool) -> str:
    """Format a panel's table, or what its sentences say."""
    found = _found(name)
    panel = next((panel for panel in panels() if panel.name == name), None)
    if found is None or panel is None:
        raise QuoteError(f"book:{name} names no panel that is measured")
    if not verdict:
        return "\n\n" + "\n".join(table(panel, found)) + "\n\n"
    held = [check.holds(found) for check in panel.checks if check.counts]
    return "holds" if all(held) else f"{sum(held)} of {len(held)} sentences hold"
