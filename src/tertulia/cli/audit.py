"""The command `audit`: attack a configuration on planted documents."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tertulia.cli.options import AsJson, ConfigFile, Delta
from tertulia.cli.process import Terminated
from tertulia.view import console

if TYPE_CHECKING:
    from tertulia.operations.audit.results import Finding, Report

_AGAIN = "what is finished is kept: the same command goes on"
_REPLAYED = (
    "A replay shows what depends on the documents and must not. It compares a finite number of neighbours, and takes "
    "the noise for right: the whole audit tests that."
)
_HINT = (
    "A lower bound below its claim proves nothing: an attack may be too weak. `could have shown` is what a perfect "
    "attacker would have reached; where it is no larger than the claim, the audit could not find a violation."
)


def audit(
    config: ConfigFile,
    canaries: Annotated[
        int | None, typer.Option(min=2, help="Number of canary tokens or documents; by default as the claims need.")
    ] = None,
    draws: Annotated[int, typer.Option(min=10_000, help="Draws of each mechanism, at most.")] = 1_000_000,
    documents: Annotated[int, typer.Option(min=1, help="Documents that are copied from each party, at most.")] = 200,
    runs: Annotated[int, typer.Option(min=1, help="Runs with canary documents.")] = 3,
    replay: Annotated[
        bool, typer.Option("--replay", help="Only replay a run on neighbours of the documents: what differs?")
    ] = False,
    delta: Delta = 1e-6,
    as_json: AsJson = False,
) -> None:
    """Attack a configuration on documents planted in copies of the parties' own; nothing leaves, nothing is charged.

    The exit code is 1 if a lower bound of epsilon exceeds its claim, or a replay finds a difference that no promise
    allows. An interrupted audit goes on where it was.
    """
    from tertulia.operations.audit import attacks
    from tertulia.runs import settings as configuration

    effort = attacks.Effort(canaries, draws, documents, runs, delta)
    settings = configuration.load(config)
    said = lambda text: console.say(f"auditing: {text}")  # noqa: E731
    try:
        report = attacks.audit(settings, effort=effort, kinds=("structure",) if replay else attacks.KINDS, say=said)
    except (KeyboardInterrupt, Terminated):
        if not replay:
            console.say(_AGAIN)
        raise
    if as_json:
        console.print_json(values_of(report))
    else:
        _print(report, replay)
    if report.violated:
        raise typer.Exit(1)


def _print(report: Report, replay: bool) -> None:
    rows = [_row(one) for one in report.findings]
    bounds = f"Lower bounds of epsilon, all together at {report.confidence:.0%} confidence"
    console.records("A run, replayed on neighbours of one party's documents" if replay else bounds, rows)
    notes = [line for one in report.findings if one.violated or replay for line in one.note.split("; ")]
    for text in (*notes, *(f"not tested: {text}" for text in report.untested), _REPLAYED if replay else _HINT):
        console.show(text)


def _row(one: Finding) -> dict[str, str]:
    numbers = {"claimed": one.claimed, "lower bound": one.lower_bound, "could have shown": one.could_have_shown}
    shown = {name: "infinite" if math.isinf(value) else f"{value:.3g}" for name, value in numbers.items()}
    return {"part": one.part, "party": one.party, "what": one.what, "unit": one.unit, **shown, "verdict": one.verdict}


def values_of(report: Report) -> dict[str, Any]:
    """Return the report as the values of the command's JSON."""
    return {
        "configuration": report.configuration,
        "confidence": report.confidence,
        "violated": report.violated,
        "findings": [_values(one) for one in report.findings],
        "untested": list(report.untested),
    }


def _values(one: Finding) -> dict[str, Any]:
    return {
        "part": one.part,
        "party": one.party,
        "what": one.what,
        "unit": one.unit,
        "adjacency": one.adjacency,
        "claimed_epsilon": _finite(one.claimed),
        "lower_bound": _finite(one.lower_bound),
        "could_have_shown": _finite(one.could_have_shown),
        "delta": one.delta,
        "canaries": one.canaries,
        "verdict": one.verdict,
        "note": one.note,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
