"""The modules of methods: which of them may be imported, and the steps that they offer.

A directory never decides what is imported. The person who starts a run names the modules of users' own methods, on the
command line or in a config, and each is pinned by the hash of its source: a module that has changed is not run.

A method's module lists its steps in `STEPS`, including those that it imports from elsewhere. A party offers the steps
of the methods that its own config lists, and no others, even if other modules are loaded in the process.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tertulia.errors import ConfigError
from tertulia.federation.types import Step, step_name

OURS = "tertulia."


def pins_of(modules: Iterable[str]) -> dict[str, str]:
    """Return the hash of the source of each module that is not part of Tertulia."""
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
    """Return the folders from which these modules are imported; another process needs them in its path."""
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


_MOVED = "if an earlier, unreleased version began the run, begin it again"


def steps_of(methods: Iterable[str], pins: Mapping[str, str] | None = None) -> Mapping[str, Step]:
    """Return the steps of these modules by name; with `pins`, refuse modules that are not pinned."""
    if pins is not None:
        check_pins(methods, pins)
    found: dict[str, Step] = {}
    for name in methods:
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:
            raise ConfigError(f"there is no module '{name}': {_MOVED}") from error
        if not hasattr(module, "STEPS"):
            remedy = _MOVED if name.startswith(OURS) else "add `STEPS = (...)` with every step that it asks for"
            raise ConfigError(f"module '{name}' lists no steps: {remedy}")
        found |= {step_name(step): step for step in module.STEPS}
    return found
