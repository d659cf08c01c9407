"""`--live`: a page of a run, as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tertulia.view import console

Live = Annotated[bool, typer.Option("--live", help="Show a page of it, as it goes, on this machine alone.")]
LiveAt = Annotated[
    str | None,
    typer.Option(metavar="[HOST:]PORT", help="The same at this address; away from this machine, with a token."),
]


@contextmanager
def showing(directory: Path, live: bool, at: str | None) -> Iterator[None]:
    """Show the live page of a directory while the block runs, if it is asked for."""
    if not live and at is None:
        yield
        return
    from tertulia.view.pages.live import live_page
    from tertulia.view.watch import watcher

    with live_page(watcher(directory), at or "") as address:
        console.say(f"live page: {address}")
        if address is not None and "?token=" in address:
            console.say(
                "who has this address can read the page; it is not encrypted: use a tunnel, or a proxy with TLS"
            )
        yield
