"""How files are read, the same options for all commands that read any."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

Text = Annotated[str, typer.Option("--text", help="The column that holds the text.")]
Encoding = Annotated[str | None, typer.Option(help="Of text files, such as cp1252; without, it is guessed.")]
Separator = Annotated[str | None, typer.Option(help="Of CSV fields: one character, or tab; without, it is guessed.")]
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "text": (Text, "text"), "encoding": (Encoding, None), "separator": (Separator, None),
}  # fmt: skip


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading, which it gets as one argument, `source`: keywords of `corpus.read`."""

    @wraps(command)
    def run(**given: Any) -> None:
        source = {name: given.pop(name) for name in _OPTIONS}
        command(**given, source=source)

    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "source"]
    kind = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(name, kind, default=usual, annotation=what) for name, (what, usual) in _OPTIONS.items()]
    every = [parameter.replace(kind=kind) for parameter in own] + more
    run.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return run
