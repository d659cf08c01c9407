"""Numbers that pages quote from the book, kept true by marks: `<!-- book:NAME/LINE/X -->861<!-- /book -->`.

A fourth part chooses what is quoted: `mean` (by default), `range` (mean, smallest and largest), `sd` (mean and standard
deviation), `percent`; a fifth one the number of decimals. `over` with a fifth part LINE is by how many percent the mean
is above that of this line. `python -m benchmarks.book --pages` fills all marks; a test
fails where a page holds something else.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.book.panels import Found
from benchmarks.book.results import load_or_none

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
    """Format the number that a mark names."""
    name, line, x, *rest = key.split("/")
    style, decimals = (rest + ["mean", ""][len(rest) :])[:2]
    found, lines = _found(name), [line, decimals] if style == "over" else [line]
    if found is None or any(x not in found.lines.get(one, {}) for one in lines):
        raise QuoteError(f"book:{key} names no number: see benchmarks/results/book/{name}.json")
    if style == "over":
        return f"{100 * (found(line, x) / found(decimals, x) - 1):.1f} %"
    if style not in STYLES:
        raise QuoteError(f"book:{key}: '{style}' is none of {', '.join(STYLES)}")
    values = found.seeds(line, x)
    return quote_values(values, style, int(decimals) if decimals else decimals_of(values))


def quote_values(values: list[float], style: str, decimals: int) -> str:
    """Format the values of a point's seeds."""
    return STYLES[style](values, decimals)


def decimals_of(values: list[float]) -> int:
    """Choose decimals by size: three significant digits, and no more than three decimals."""
    size = max(map(abs, values))
    return next((n for n, least in ((0, 100), (1, 10), (2, 1)) if size >= least), 3)


def _range(values: list[float], decimals: int) -> str:
    mean, low, high = (f"{value:.{decimals}f}" for value in (statistics.fmean(values), min(values), max(values)))
    return mean if low == high else f"{mean} ({low} to {high})"


def _sd(values: list[float], decimals: int) -> str:
    mean = f"{statistics.fmean(values):.{decimals}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{decimals}f}"


STYLES: Mapping[str, Callable[[list[float], int], str]] = {
    "mean": lambda values, decimals: f"{statistics.fmean(values):.{decimals}f}",
    "range": _range,
    "sd": _sd,
    "percent": lambda values, decimals: f"{100 * statistics.fmean(values):.{decimals}f} %",
}


@cache
def _found(name: str) -> Found | None:
    result: dict[str, Any] | None = load_or_none(name)
    return None if result is None else Found(result["numbers"])
