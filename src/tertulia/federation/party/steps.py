"""The steps that a party offers: those of the methods that its own config lists, and no others.

A method's module names its steps in `STEPS`, those that it takes over from elsewhere included. The list is kept per
party: what other parties in this process offer, or what else has been imported, makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from tertulia.errors import ConfigError
from tertulia.federation.custom import check_pins
from tertulia.federation.types import Step, step_name


def steps_of(methods: Iterable[str], pins: Mapping[str, str] | None = None) -> Mapping[str, Step]:
    """The steps of these modules, by the name under which they are asked for; with `pins`, of no other modules."""
    if pins is not None:
        check_pins(methods, pins)
    found: dict[str, Step] = {}
    for name in methods:
        module = import_module(name)
        if not hasattr(module, "STEPS"):
            raise ConfigError(f"module '{name}' lists no steps: add `STEPS = (...)` with every step that it asks for")
        found |= {step_name(step): step for step in module.STEPS}
    return found
