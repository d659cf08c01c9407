"""`tertulia report`: a page that says what was learned, what left, and whether it was worth it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from tertulia.view import console


def report(
    directory: Annotated[Path, typer.Argument(help="A run's directory, a party's, or a federation's.", metavar="RUN")],
    party: Annotated[str | None, typer.Option(help="That party's page alone, to be signed.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; without, report.html or report-PARTY.html."),
    ] = None,
    rare: Annotated[
        Path | None, typer.Option("--rare-words", help="Also list the rare words that left, for the party alone.")
    ] = None,
    delta: Annotated[float, typer.Option(help="The delta at which epsilon is computed.")] = 1e-6,
) -> None:
    """Write a report: one HTML file, which loads nothing, can be read without scripts, and printed."""
    from tertulia.view.pages.report import write_rare_words, write_report

    if output is None:
        output = Path("report.html" if party is None else f"report-{re.sub(r'[^A-Za-z0-9_.]+', '-', party)[:60]}.html")
    written = write_report(directory, output, party, delta)
    console.line(f"{output}: {console.size(written)}, to be opened in a browser")
    if rare is not None:
        number = write_rare_words(directory, rare, party)
        console.line(f"{rare}: {number} words; it is for the party alone: do not pass it on")
