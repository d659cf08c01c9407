"""Modules of users' own methods: which of them may be imported, and whether they are what they were.

A directory never says what to import. The name of such a module comes from who starts the run, on the command line or
in a config, and its source is pinned by its hash: a module that has changed since is not run.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from tertulia.errors import ConfigError

OURS = "tertulia."


def pins_of(modules: Iterable[str]) -> dict[str, str]:
    """The hash of the source of each module that is not part of Tertulia."""
    return {module: _pin(module) for module in modules if not module.startswith(OURS)}


def check_pins(modules: Iterable[str], pins: Mapping[str, str]) -> None:
    """Raise `ConfigError` unless each module is part of Tertulia, or is pinned and unchanged."""
    for module in modules:
        if module.startswith(OURS):
            continue
        if module not in pins:
            raise ConfigError(
                f"'{module}' is no part of Tertulia, and a directory alone does not decide what is run: if you trust "
                f"this module, name it yourself, `tertulia resume RUN --method {module}`"
            )
        if pins[module] != _pin(module):
            raise ConfigError(f"module '{module}' has changed since the run began: restore it, or begin a new run")


def folders_of(pins: Mapping[str, str]) -> list[str]:
    """The folders in which these modules' names begin: another process must look there, too."""
    files = {module: _file(module) for module in pins}
    return list(dict.fromkeys(str(_root(module, file)) for module, file in files.items()))


def _root(module: str, file: Path) -> Path:
    package = file.name == "__init__.py"
    return file.parents[module.count(".") + package]


def _pin(module: str) -> str:
    return hashlib.sha256(_file(module).read_bytes()).hexdigest()


def _file(module: str) -> Path:
    loaded = getattr(sys.modules.get(module), "__file__", None)
    try:
        spec = None if loaded else find_spec(module)
    except (ImportError, ValueError):
        spec = None
    origin = loaded or (spec.origin if spec else None)
    if origin is None or not Path(origin).is_file():
        raise ConfigError(f"there is no module '{module}' with a file of its own: put it where Python finds it")
    return Path(origin).resolve()
