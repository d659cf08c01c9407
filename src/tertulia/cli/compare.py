"""`tertulia compare`: which party of a finished run works on what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tertulia.errors import ConfigError
from tertulia.view import console


def compare_run(run: Path, output: Path | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Compare a run's parties; write CSV files to `output`, and return everything as plain data."""
    from tertulia.applications import compare

    found = compare.of_run(run, **settings)
    if output is not None:
        console.say(f"tables written to {found.save(output)}")
    tables = {"prevalence": found.table(), "similarity": found.similarity()}
    if len(found.periods) > 1:
        tables["over_time"] = found.over_time()
    rows = {name: table.fill_nan(None).to_dicts() for name, table in tables.items()}
    return {"parties": found.names, "epsilon": found.epsilon if found.sigma else "infinite (non-private)", **rows}


def dry_run_of_comparison(run: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """What would leave each party, and what its policy says to it."""
    from tertulia.applications import compare
    from tertulia.view.dry_run import dry_run

    return dry_run(compare.settings_of_run(run, **settings))


def groups_of(given: list[str]) -> dict[str, tuple[str, ...]]:
    """Read groups that are written NAME=PARTY,PARTY.

    >>> groups_of(["science=MPS,GEO"])
    {'science': ('MPS', 'GEO')}
    """
    found = {}
    for text in given:
        name, equals, members = text.partition("=")
        if not (name and equals and members):
            raise ConfigError(f"--group {text}: write NAME=PARTY,PARTY, such as science=MPS,GEO")
        found[name] = tuple(member.strip() for member in members.split(","))
    return found
