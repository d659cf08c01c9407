"""The steps that a party offers: those of the methods that its own config lists, and no others.

A method's module names its steps in `STEPS`, those that it takes over from elsewhere included. The list is kept per
party: what other parties in this process offer, or what else has been imported, makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from tertulia.errors import ConfigError
from tertulia.federation.custom import OURS, check_pins
from tertulia.federation.types import Step, step_name

_MOVED = "if an earlier version began the run, `tertulia upgrade RUN` names the module as it is called now"


def steps_of(methods: Iterable[str], pins: Mapping[str, str] | None = None) -> Mapping[str, Step]:
    """The steps of these modules, by the name under which they are asked for; with `pins`, of no other modules."""
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
