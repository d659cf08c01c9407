"""The papers' applications: speech recognition, document classification, spam and sentiment, comparing parties.

These are iFTM's tables 2 and 3, FedLDA's table 2, and the purpose of gFedNTM. Every trained and scored model is a cell
on disk: an interrupted run continues, and a new machine reuses the cells in `benchmarks/results/applications`.
`--publish` writes results and cells there. Tables go to `benchmarks/out/applications`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks.applications.cells import KEPT, compute_nothing
from benchmarks.applications.tables import tables
from benchmarks.common import finish, parser, say
from tertulia.errors import TertuliaError


def speech(quick: bool, publish: bool) -> dict[str, Any]:
    """Measure word error rates; without its code or its extra this part is skipped."""
    if find_spec("benchmarks.applications.speech") is None:
        say("speech: left out, there is no benchmarks/applications/speech here")
        return {}
    try:
        found: dict[str, Any] = import_module("benchmarks.applications.speech").run(quick)
    except (ModuleNotFoundError, TertuliaError) as error:
        say(f"speech: left out, {error}. It needs: pip install '.[asr]'")
        return {}
    return found


def classification(quick: bool, publish: bool) -> dict[str, Any]:
    """Measure iFTM's table 3."""
    from benchmarks.applications.classification import run

    return run(quick, publish)


def spam(quick: bool, publish: bool) -> dict[str, Any]:
    """Measure the upper half of FedLDA's table 2."""
    from benchmarks.applications.labels import run

    return {"spam": run("spam", quick, publish)}


def sentiment(quick: bool, publish: bool) -> dict[str, Any]:
    """Measure the lower half of FedLDA's table 2."""
    from benchmarks.applications.labels import run

    return {"sentiment": run("sentiment", quick, publish)}


def compare(quick: bool, publish: bool) -> dict[str, Any]:
    """Compare NSF directorates by their topics."""
    from benchmarks.applications.compare import run

    return {"compare": run(quick)}


PARTS: dict[str, Callable[[bool, bool], dict[str, Any]]] = {
    "speech": speech,
    "classification": classification,
    "spam": spam,
    "sentiment": sentiment,
    "compare": compare,
}


def main() -> None:
    """Run the benchmark, or some parts of it."""
    command = parser("the papers' applications: speech, classification, spam, sentiment, comparing parties")
    command.add_argument("--parts", default=",".join(PARTS), help=f"a list from {','.join(PARTS)}; by default all")
    command.add_argument("--publish", action="store_true", help="write results and cells to benchmarks/results")
    command.add_argument(
        "--only-kept", action="store_true", help="compute nothing: results of the cells that there are"
    )
    given = command.parse_args()
    parts = given.parts.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        raise SystemExit(f"--parts {','.join(unknown)}: choose from {','.join(PARTS)}")
    if given.only_kept:
        compute_nothing()
        parts = [part for part in parts if part != "speech"]
    result: dict[str, Any] = {"benchmark": "applications", "quick": given.quick}
    for part in parts:
        result |= PARTS[part](given.quick, given.publish)
    if text := tables(result):
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / "tables.md").write_text(text, encoding="utf-8")
        say(text)
    finish(result)


if __name__ == "__main__":
    main()
