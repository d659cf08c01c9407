"""`tertulia upgrade`: what earlier versions wrote is carried over, or brought back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.view import console

if TYPE_CHECKING:
    from tertulia.upgrades.items import Item


def upgrade(
    path: Annotated[
        Path,
        typer.Argument(help="A home, a run, a model, a party's or a federation's folder, a file, or all of these."),
    ],
    dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    back: Annotated[bool, typer.Option("--undo", help="Bring back what was there before the last upgrade.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Carry over what an earlier version wrote. A backup stays beside it, and what was spent stays spent."""
    from tertulia.upgrades import applying
    from tertulia.upgrades.items import AS_IT_IS
    from tertulia.upgrades.looking import look

    if back:
        backup = applying.undo(path)
        console.say(f"{path} is as it was before the upgrade; {backup.directory} is gone")
        return
    items = look(path)
    made = None if dry else applying.upgrade(path, items)
    rows = [_row(item) for item in items]
    if as_json:
        from tertulia.cli.machine import rows_of

        console.print_json({"upgrade": rows_of(rows), "backup": str(made.directory) if made else None})
    else:
        shown = [_row(item) for item in items if item.becomes != AS_IT_IS]
        if shown:
            console.records(f"{'What would change' if dry else 'What changes'} in {path}", shown)
        console.say(f"{len(items) - len(shown)} more are read as they are" if shown else "all is read as it is")
    if made is not None:
        console.say(f"as it was, it is in {made.directory}, noise keys included: remove it when all is well")
        console.say(f"`tertulia upgrade {path} --undo` brings it back, unless a ledger was charged meanwhile")
    if any(item.wrong for item in items):
        raise typer.Exit(1)


def _row(item: Item) -> dict[str, str]:
    change = "yes" if item.changes else "no"
    return {"what": item.kind, "where": str(item.path), "format": item.found, "change": change, "becomes": item.becomes}
