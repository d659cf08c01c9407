"""`tertulia privacy`: a page for each party; with `--all` everything behind it."""

from __future__ import annotations

import json
from pathlib import Path

from tertulia.view import console


def print_privacy(directory: Path, delta: float, every: bool, as_json: bool) -> None:
    """Print what left the parties of a run, and what that costs."""
    from tertulia.runs.layout import Run
    from tertulia.view.officer import pages
    from tertulia.view.tables import disclosure_rows, privacy_rows, privacy_totals

    run = Run.open(directory)
    found = pages(run, delta)
    if as_json:
        known = {"delta": delta, "totals": privacy_totals(run, delta), "privacy": privacy_rows(run, delta)}
        facts = [
            {"party": page.party, "verdict": page.verdict, "rare words": page.rare_words, "refused": page.refused}
            for page in found
        ]
        print(json.dumps({**known, "verdicts": facts}, ensure_ascii=False, default=str))
        return
    for page in found:
        console.output.print("\n".join(page.lines(run.id)) + "\n", markup=False, highlight=False, soft_wrap=True)
    if every:
        console.print_totals(f"Cost of {directory} at delta {delta:g}", privacy_totals(run, delta))
        console.records("Thing by thing (what is derived adds nothing to its source)", privacy_rows(run, delta))
        console.records("Every release", disclosure_rows(run))
