"""`python -m benchmarks.embedding_topics.tables FILE.json`: the tables of the page, from the benchmark's JSON line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_COLUMNS = ("none", "8", "3", "1")
_SCORES = (
    ("npmi_all", "NPMI of all K"),
    ("npmi_live", "NPMI of live"),
    ("live", "live"),
    ("nmi", "NMI"),
    ("nmi_none", "NMI, none a group"),
    ("diversity", "diversity"),
    ("outside", "in no topic"),
)


def quality(found: Mapping[str, Any]) -> Iterator[str]:
    """Show scores by corpus and epsilon."""
    yield "| corpus | | no noise | epsilon 8 | 3 | 1 |\n|---|---|---|---|---|---|"
    for name, row in found.items():
        for score, title in _SCORES:
            cells = [_number(row.get(column, {}), score) for column in _COLUMNS]
            if any(cell != "-" for cell in cells):
                yield f"| {name if score == 'npmi_all' else ''} | {title} | {' | '.join(cells)} |"


def peers(found: Mapping[str, Any], quality_cells: Mapping[str, Any]) -> Iterator[str]:
    """Show peers by corpus beside ours without noise."""
    yield "| corpus | method | NPMI all | NPMI live | live | NMI | with none | diversity | outside | CPU s | runs |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name, row in found.items():
        own = {"ours, no noise": quality_cells.get(name, {}).get("none", "not run")}
        missing = [method for method, cell in row.items() if isinstance(cell, str)]
        for number, (method, cell) in enumerate({**own, **row}.items()):
            if not isinstance(cell, str):
                scores = [_number(cell, score) for score, _ in _SCORES]
                first = name if number == 0 else ""
                yield f"| {first} | {method} | {' | '.join(scores)} | {_number(cell, 'seconds')} | {cell['runs']} |"
        if missing:
            yield f"| | not run: {', '.join(missing)} | | | | | | | | | |"


def private(found: Mapping[str, Any], more: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Show ways of private k-means, and other methods of ours, by corpus: NPMI of all K / live / NMI."""
    yield "| corpus | method | epsilon 8 | 3 | 1 |\n|---|---|---|---|---|"
    for name, row in found.items():
        ways = {**{method: several[name] for method, several in more.items() if name in several}, **row}
        for number, (way, cells) in enumerate(ways.items()):
            short = [_short(cells.get(column)) for column in _COLUMNS[1:]]
            yield f"| {name if number == 0 else ''} | {way} | {' | '.join(short)} |"


def _short(cell: Mapping[str, Any] | None) -> str:
    if not cell:
        return "not run"
    return " / ".join(_number(cell, score, spread=False) for score in ("npmi_all", "live", "nmi"))


def _number(cell: Any, score: str, *, spread: bool = True) -> str:
    if not isinstance(cell, Mapping) or cell.get(score) is None:
        return "-"
    more = cell.get(f"{score}_sd")
    return f"{cell[score]:g}" + (f" ± {more:g}" if more and spread else "")


def main() -> None:
    """Print all tables."""
    found = json.loads(Path(sys.argv[1]).read_text())
    cells = found.get("quality_cells", {})
    for lines in (
        quality(cells),
        peers(found.get("peers", {}), cells),
        private(
            found.get("private_kmeans", {}),
            {
                "ours": cells,
                "ours, 5,000 words": found.get("fewer_words", {}),
                "PrivateTopics": found.get("private_topics", {}),
            },
        ),
    ):
        print("\n".join(lines), end="\n\n")


if __name__ == "__main__":
    main()
