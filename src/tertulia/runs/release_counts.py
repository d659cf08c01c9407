"""Counts of a party's releases in a run, for all pages: questions, arrays and bytes, beside the plan's counts.

*Times* counts questions: an answer with several arrays of a kind counts once, and a repeated question does not count.
*Bytes* are those that travelled. An answer is packed as a whole, so its bytes are divided among its arrays by their
sizes before packing; the parts add up to the bytes that were sent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tertulia.errors import ConfigError
from tertulia.federation.party.answer_log import answer_sizes
from tertulia.federation.party.host import PartyHost
from tertulia.federation.party.inquiries import releases_for, sources_of
from tertulia.federation.party.release_limits import occasion_of_release
from tertulia.federation.party.reports import REPORTS
from tertulia.federation.plan import Plan
from tertulia.federation.types import Planned
from tertulia.methods.registry import METHODS
from tertulia.privacy.mechanisms import Claim
from tertulia.privacy.releases import Release
from tertulia.runs.budgets import announced
from tertulia.runs.plan import questions_of
from tertulia.runs.settings import RunSettings

Kind = tuple[str, str, Claim | None]  # what, the mechanism's name, what is claimed


@dataclass(frozen=True)
class Left:
    """One kind of thing that left a party in a run."""

    what: str
    mechanism: str
    verb: str  # REPORTS where it stays at the party
    rounds: tuple[int, ...]
    times: int  # questions
    arrays: int
    bytes: int | None  # as they travelled; None: not recorded
    before_packing: int
    masked: bool = False  # whether only its sum with those of other parties reaches the server


def left_of_host(host: PartyHost) -> dict[Kind, Left]:
    """Count the releases of a party in its run."""
    return left_in(host.ledger.releases(), host.config.run, answer_sizes(host.directory))


class Disclosed(NamedTuple):
    """One release of a run, or reports behind it, with the sizes of its array."""

    release: Release
    bytes: int | None  # as they travelled; None: not recorded
    before_packing: int
    stays: bool  # whether it only serves to compute other releases


def disclosed_by(host: PartyHost) -> list[Disclosed]:
    """List a party's releases in its run, in order."""
    shares = travelled(host.ledger.releases(), host.config.run, answer_sizes(host.directory))
    releases = releases_for(host.ledger, host.config.run)
    sources = sources_of(releases)
    return [
        Disclosed(release, 0, 0, True)
        if release.verb == REPORTS or release.id in sources
        else Disclosed(release, shares.get(release.id), release.nbytes, False)
        for release in releases
    ]


def left_in(releases: Sequence[Release], run: str, answers: Mapping[tuple[str, str], int]) -> dict[Kind, Left]:
    """Count a run's releases by kind, with the reports that they were computed from, also of earlier runs."""
    kinds: dict[Kind, list[Release]] = defaultdict(list)
    counted = releases_of(releases, run)
    for release in counted:
        kinds[release.what, release.name, release.claimed].append(release)
    shares, sources = travelled(releases, run, answers), sources_of(counted)
    return {kind: _left(some, shares, sources) for kind, some in kinds.items()}


def _left(some: Sequence[Release], shares: Mapping[str, int], sources: set[str]) -> Left:
    one, stays = some[0], all(release.verb == REPORTS or release.id in sources for release in some)
    known = stays or all(release.id in shares for release in some)
    return Left(
        one.what, one.name, REPORTS if stays else one.verb, tuple(sorted({release.round for release in some})),
        len({occasion(release) for release in some}), 0 if stays else len(some),
        sum(shares.get(release.id, 0) for release in some) if known else None,
        0 if stays else sum(release.nbytes for release in some),
        not stays and all(release.masked for release in some),
    )  # fmt: skip


def releases_of(releases: Sequence[Release], run: str) -> list[Release]:
    """Select a run's releases, and the reports that they are computed from."""
    own = [release for release in releases if release.run == run]
    sources = {parent for release in own for parent in release.parents}
    return [release for release in releases if release.run == run or release.id in sources]


def occasion(release: Release) -> tuple[str, ...]:
    """Return the key of what counts once: a question, or the reports of one kind over all versions of documents."""
    if release.verb == REPORTS:
        return (release.id.partition("/version ")[0],)
    return (release.step, *occasion_of_release(release))


def travelled(releases: Sequence[Release], run: str, answers: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Return the bytes that travelled of each release's array, by its id; a release that did not leave has none."""
    found: dict[str, int] = {}
    together: dict[tuple[str, str], list[Release]] = defaultdict(list)
    for release in releases:
        if release.run == run and (where := occasion_of_release(release)) in answers:
            together[where].append(release)
    for where, some in together.items():
        sent = [release for release in some if release.id not in _noise_of(some)]
        whole, before, used = sum(release.nbytes for release in sent), 0, 0
        for release in some:
            before += release.nbytes if release in sent else 0
            share = answers[where] * before // whole if whole else 0
            found[release.id], used = share - used, share
    return found


def _noise_of(some: Sequence[Release]) -> set[str]:
    """Return the releases of an answer that only serve to compute others of it."""
    return {parent for release in some for parent in release.parents}


class Compared(NamedTuple):
    """A kind of release: its count in the plan, and its count in the ledger."""

    what: str
    announced: int
    took_place: int


def plan_and_fact_or_none(host: PartyHost) -> list[Compared] | None:
    """Compare the plan's counts with the ledger's, by kind; None without a plan that counts releases."""
    settings = None if host.door.plan is None else settings_or_none(host.door.plan)
    if settings is None:
        return None
    times: Counter[str] = Counter()
    for (*_, what), number in _planned_questions(announced(settings, host.config.id, host.policy), settings).items():
        times[what] += number
    found: Counter[str] = Counter()
    for what, questions in _questions(releases_of(host.ledger.releases(), host.config.run)).items():
        found[what] = len(questions)
    shown = dict.fromkeys([*times, *found])
    return [Compared(what, times[what], found[what]) for what in shown]


def _planned_questions(planned: Sequence[Planned], settings: RunSettings) -> dict[tuple[str, str, str], int]:
    """Count the questions that a plan announces; some things leave only in runs with secure sums."""
    secure = settings.federation.secure
    certain = [one._replace(most=0) for one in planned if one.times]
    possible = [one for one in planned if not one.times and secure]
    return {thing: number or 0 for thing, number in questions_of([*certain, *possible]).items()}


def settings_or_none(plan: Plan) -> RunSettings | None:
    """Rebuild a run's settings from its plan; None for a method of the user's own, or of another version."""
    if plan.method not in METHODS:
        return None
    try:
        return RunSettings(method=_method(plan), federation={"secure": plan.secure}, start_from=plan.start or None)
    except ConfigError:
        return None


def _method(plan: Plan) -> dict[str, object]:
    """Rebuild the method's settings. A plan has only the fingerprint of a word list; its length changes no count."""
    given = {**plan.settings, "name": plan.method}
    if plan.words is not None and isinstance(given.get("vocabulary"), dict):
        given["vocabulary"] = {**given["vocabulary"], "words": ["word"]}
    return given


def _questions(releases: Sequence[Release]) -> dict[str, set[tuple[str, ...]]]:
    """Group the keys of questions by kind of release."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for release in releases:
        found.setdefault(release.what, set()).add(occasion(release))
    return found
