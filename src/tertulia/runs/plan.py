"""The plan of a run, which its parties agree to. The server and each party make it by the same code."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from tertulia.corpus import TextOptions, Vocabulary
from tertulia.federation.plan import KEEPS, WIDER, WIDER_VERB, Limit, Plan
from tertulia.federation.secure.lists import check_groups, check_members
from tertulia.federation.types import Planned, step_name
from tertulia.methods.common import model_choice
from tertulia.methods.common.settings import MethodSettings
from tertulia.methods.registry import CustomSettings, entry_of
from tertulia.runs.results import without_paths
from tertulia.runs.settings import RunSettings, TermsSettings, TrainingSettings

KEEPS_OWN_EPSILON = "KEEPS_OWN_EPSILON"  # set by a method of one's own whose steps keep a party's own epsilon


def modules_of(settings: TrainingSettings) -> tuple[str, ...]:
    """Return the modules whose steps a party has to offer."""
    return (entry_of(settings.method).module, *((model_choice.__name__,) if settings.chooses else ()))


def plan_of(
    settings: TrainingSettings, parties: Sequence[str], keys: Mapping[str, str] | None = None, start: str = ""
) -> Plan:
    """Make the plan that the parties of a run agree to.

    Between organisations it holds the members' keys, and no file of the server's. A run that continues an earlier
    model names the model by its hash.
    """
    entry = entry_of(settings.method)
    groups: tuple[tuple[str, ...], ...] = ()
    secure = isinstance(settings, RunSettings) and settings.federation.secure
    if isinstance(settings, RunSettings) and secure:
        check_members(len(parties))
        groups = tuple(map(tuple, _declared(settings, "groups_of")))
        check_groups(groups, parties, settings.federation.min_summed)
    custom = isinstance(settings.method, CustomSettings)
    given: dict[str, Any] = dict(entry.config) if custom else settings.method.model_dump(mode="json")
    if keys and not custom:
        given = without_paths(settings.method)
    agreed = given.get("vocabulary")
    listed = agreed.get("words") if isinstance(agreed, dict) else None
    if isinstance(agreed, dict) and listed:  # long lists are known by their fingerprint
        given = {**given, "vocabulary": {**agreed, "words": []}}
    listed = listed or (_declared(settings, "words_of") if secure else ())
    words = Vocabulary(tuple(listed)).fingerprint if listed else None
    terms = {name: _named_by_hash(value) for name, value in terms_of(settings).items()}
    return Plan(
        settings.method.name, given, words, tuple(parties), _steps(settings), dict(keys or {}), start, terms,
        operator=settings.operator.stated(), groups=groups, limits=_limits(settings),
        noisy_rounds=_noisy_rounds(settings.method),
    )  # fmt: skip


def _noisy_rounds(method: MethodSettings) -> int | None:
    """Return the number of rounds for which a party's own epsilon holds (0: any number); None: nothing follows it."""
    if isinstance(method, CustomSettings):
        return 0 if getattr(importlib.import_module(method.module), KEEPS_OWN_EPSILON, False) else None
    return method.noisy_rounds if method.has_noise else None


def terms_of(settings: TrainingSettings) -> dict[str, Any]:
    """Return the settings beside the method that parties see and plans hold, by their names in TOML.

    They say how texts are cut into words, which documents are trained on, and how many parties must answer.
    """
    text = TextOptions.from_dict(settings.text)
    found = {f"text.{option.name}": getattr(text, option.name) for option in fields(text) if option.metadata}
    found |= {name: getattr(settings, name) for name in ("seed", "heldout", "validation")}
    if isinstance(settings, RunSettings):
        found |= {f"federation.{name}": getattr(settings.federation, name) for name in TermsSettings.model_fields}
    return found


def _named_by_hash(value: Any) -> Any:
    """Replace a list of words by its fingerprint."""
    return Vocabulary(tuple(dict.fromkeys(value))).fingerprint if isinstance(value, tuple) else value


def _declared(settings: TrainingSettings, name: str) -> Sequence[Any]:
    """Return what a method's module declares for masked sums: groups of parties, or words given beforehand."""
    entry = entry_of(settings.method)
    find = getattr(importlib.import_module(entry.module), name, None)
    return () if find is None else tuple(find(entry.config))


def _steps(settings: TrainingSettings) -> tuple[tuple[str, str], ...]:
    """List the steps that the method will ask for, and those that release nothing; empty if it has no plan."""
    entry = entry_of(settings.method)
    first, *others = (importlib.import_module(module) for module in modules_of(settings))
    if not hasattr(first, "plan"):
        return ()
    planned = {(step_name(one.step), one.verb) for one in first.plan(entry.config)}
    kept = [step_name(step) for module in (first, *others) for step in getattr(module, "KEEPING", ())]
    asked = {pair for pair in planned if pair[1] != "reports"}
    return tuple(sorted(asked | {(name, verb) for name in kept for verb in ("each", KEEPS)}))


def _limits(settings: TrainingSettings) -> tuple[Limit, ...]:
    """Count the questions in which each thing may leave, as the method announces it; empty if it has no plan."""
    entry = entry_of(settings.method)
    module = importlib.import_module(entry.module)
    planned = [one for one in (module.plan(entry.config) if hasattr(module, "plan") else ()) if one.verb != "reports"]
    limits = questions_of(planned)  # reports stay at the party, and what is computed from them is announced
    if isinstance(settings, RunSettings) and settings.federation.secure:
        limits |= {(step, WIDER_VERB, WIDER): None for step, verb, _ in limits if verb in ("sum", "mean")}
    return tuple((*thing, most) for thing, most in sorted(limits.items()))


def questions_of(planned: Iterable[Planned]) -> dict[tuple[str, str, str], int | None]:
    """Count the questions in which each thing may leave, by step, verb and thing; None: any number.

    Noise and what is computed from it leave by one question, and count once.
    """
    counted: dict[tuple[str, str, str], dict[str, list[int | None]]] = {}
    for one in planned:
        thing, most = (step_name(one.step), one.verb, one.mechanism.what), one.times if one.most == 0 else one.most
        counted.setdefault(thing, {}).setdefault(one.mechanism.name, []).append(most)
    return {
        thing: None if any(None in several for several in by_name.values()) else max(map(_sum, by_name.values()))
        for thing, by_name in counted.items()
    }


def _sum(several: Sequence[int | None]) -> int:
    return sum(most or 0 for most in several)
