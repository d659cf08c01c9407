"""`--live`: a page of a run, as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from tertulia.view import console

Live = Annotated[
    str | None,
    typer.Option(
        "--live",
        metavar="[=[HOST:]PORT]",
        help="Show a page of it, as it goes: on this machine alone, or with a token at another address.",
    ),
]


class LiveCommand(TyperCommand):
    """A command whose option `--live` needs no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; an address is only what stands behind `--live=`."""
        return super().parse_args(ctx, ["--live=" if word == "--live" else word for word in args])


@contextmanager
def showing(directory: Path, live: str | None) -> Iterator[None]:
    """Show the live page of a directory while the block runs, if it is asked for."""
    if live is None:
        yield
        return
    from tertulia.view.pages.live import live_page
    from tertulia.view.watch import watcher

    with live_page(watcher(directory), live) as address:
        console.say(f"live page: {address}")
        if address is not None and "?token=" in address:
            console.say(
                "who has this address can read the page; it is not encrypted: use a tunnel, or a proxy with TLS"
            )
        yield
