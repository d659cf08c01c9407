"""The plan of a run, made in the same way by its server and by whoever lays a party out: what parties agree to."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from tertulia.corpus import Vocabulary
from tertulia.federation.plan import KEEPS, Plan
from tertulia.federation.types import step_name
from tertulia.methods import CustomSettings, entry_of
from tertulia.methods.common import choosing
from tertulia.runs.config import TrainingSettings
from tertulia.runs.provenance import without_paths


def modules_of(settings: TrainingSettings) -> tuple[str, ...]:
    """The modules whose steps a party has to offer."""
    return (entry_of(settings.method).module, *((choosing.__name__,) if settings.chooses else ()))


def plan_of(
    settings: TrainingSettings, parties: Sequence[str], keys: Mapping[str, str] | None = None, start: str = ""
) -> Plan:
    """What the parties of a run agree to; between houses with their keys, and without files of the server's own.

    A run that goes on from an earlier model names that by its hash.
    """
    entry = entry_of(settings.method)
    custom = isinstance(settings.method, CustomSettings)
    given: dict[str, Any] = dict(entry.config) if custom else settings.method.model_dump(mode="json")
    if keys and not custom:
        given = without_paths(settings.method)
    terms = given.get("vocabulary")
    listed = terms.get("words") if isinstance(terms, dict) else None
    if isinstance(terms, dict) and listed:  # long lists are known by their fingerprint
        given = {**given, "vocabulary": {**terms, "words": []}}
    words = Vocabulary(tuple(listed)).fingerprint if listed else None
    return Plan(settings.method.name, given, words, tuple(parties), _steps(settings), dict(keys or {}), start)


def _steps(settings: TrainingSettings) -> tuple[tuple[str, str], ...]:
    """Whatever the method plans to ask for, and the steps by which nothing leaves; empty if it has no plan."""
    entry = entry_of(settings.method)
    first, *others = (importlib.import_module(module) for module in modules_of(settings))
    if not hasattr(first, "plan"):
        return ()
    planned = {(step_name(one.step), one.verb) for one in first.plan(entry.config)}
    kept = [step_name(step) for module in (first, *others) for step in getattr(module, "KEEPING", ())]
    asked = {pair for pair in planned if pair[1] != "reports"}
    return tuple(sorted(asked | {(name, verb) for name in kept for verb in ("each", KEEPS)}))
