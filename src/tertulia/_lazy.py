"""Lazy imports: a public name is loaded when it is first used, so importing the package is cheap.

The stub `__init__.pyi` beside a package's `__init__.py` lists its public names, one per line:
`from module import Name as Name`. Type checkers read the same stub.

A view draws or writes a model or a result. Views lie above models and applications, because they also read runs and
ledgers. So a model asks for a view by a name, and the top-level package registers the place of each view.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

TYPE_CHECKING = False  # type checkers know it; importing `typing` takes longer than this module
if TYPE_CHECKING:
    from typing import Any

_VIEWS: dict[str, str] = {}


def register_views(**places: str) -> None:
    """Register views: names, each with its `module:name`."""
    _VIEWS.update(places)


def view(name: str) -> Any:
    """Load a registered view."""
    module, _, attribute = _VIEWS[name].partition(":")
    return getattr(import_module(module), attribute)


def public_names(package: str, init_file: str) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Make `__all__`, `__getattr__` and `__dir__` of a package, given its `__name__` and `__file__`."""
    with open(f"{init_file}i", encoding="utf-8") as stub:  # noqa: PTH123 - importing pathlib takes longer
        imports = [line.split() for line in stub if line.startswith("from ")]
    homes = {name: module for _, module, _, name, *_ in imports}

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(homes[name]), name)

    names = sorted(homes)
    return names, load, lambda: names
