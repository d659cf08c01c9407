"""What was announced of a run beside what its ledger holds: a party that keeps both can see whether they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tertulia.errors import ConfigError
from tertulia.federation.party.host import PartyHost
from tertulia.federation.party.reports import REPORTS
from tertulia.federation.plan import Plan
from tertulia.methods import METHODS
from tertulia.privacy.releases import Release
from tertulia.runs.budgets import announced
from tertulia.runs.config import RunSettings


class Compared(NamedTuple):
    """One kind of thing: how often it was to leave, and how often it did."""

    what: str
    announced: int
    took_place: int


def plan_and_fact_or_none(host: PartyHost) -> list[Compared] | None:
    """Kind by kind, what a party agreed to and what left it; None where no plan was made that counts releases."""
    settings = None if host.door.plan is None else settings_or_none(host.door.plan)
    if settings is None:
        return None
    times: Counter[str] = Counter()
    for one in announced(settings, host.config.id, host.policy):
        times[one.mechanism.what] += one.times
    # Reports are drawn once and stand for all later runs from the same home: they are of no single one.
    releases = [r for r in host.ledger.releases() if r.run == host.config.run or r.verb == REPORTS]
    found = occasions(releases)
    shown = dict.fromkeys([*times, *found])
    return [Compared(what, times[what], found[what]) for what in shown]


def settings_or_none(plan: Plan) -> RunSettings | None:
    """A run's settings as far as its plan has them; None for a method of the user's own, or of another version."""
    if plan.method not in METHODS:
        return None
    try:
        return RunSettings(method=_method(plan))
    except ConfigError:
        return None


def _method(plan: Plan) -> dict[str, object]:
    """The method's settings; a word list is known by its fingerprint alone, and how long it is changes no count."""
    given = {**plan.settings, "name": plan.method}
    if plan.words is not None and isinstance(given.get("vocabulary"), dict):
        given["vocabulary"] = {**given["vocabulary"], "words": ["word"]}
    return given


def occasions(releases: Sequence[Release]) -> Counter[str]:
    """How often each kind of thing left: an answer that holds several arrays of a kind is one occasion."""
    seen = {
        (one.what, one.verb) if one.verb == REPORTS else (one.what, one.run, one.round, one.step, one.message_hash)
        for one in releases
    }
    return Counter(what for what, *_ in seen)
