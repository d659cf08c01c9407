"""A package's public names, loaded when they are first used: importing the package costs next to nothing.

The names stand once, in the stub `__init__.pyi` beside the package's `__init__.py`, a line for each:
`from module import Name as Name`. Type checkers read the stub as it is.
"""

from collections.abc import Callable
from importlib import import_module


def public_names(package: str, init_file: str) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Make `__all__`, `__getattr__` and `__dir__` of a package, given its `__name__` and `__file__`."""
    with open(f"{init_file}i", encoding="utf-8") as stub:  # noqa: PTH123 - pathlib takes longer to import than all this
        imports = [line.split() for line in stub if line.startswith("from ")]
    homes = {name: module for _, module, _, name, *_ in imports}

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(homes[name]), name)

    names = sorted(homes)
    return names, load, lambda: names
