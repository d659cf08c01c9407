"""`tertulia completion bash`: a script by which a shell completes commands and options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script

completion_init()  # a shell that completes asks this very command, by an environment variable


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Whose script.", metavar="bash|zsh|fish")],
) -> None:
    """Print a completion script: `tertulia completion bash >> ~/.bashrc`, or where your shell looks for them."""
    typer.echo(get_completion_script(prog_name="tertulia", complete_var="_TERTULIA_COMPLETE", shell=shell))
