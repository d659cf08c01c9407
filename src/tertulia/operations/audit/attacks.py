"""The parts of an audit, and their order: mechanisms, structure (a replay), masks, tokens, documents.

Parties with the same promises are attacked once, at the first of them. All lower bounds of an audit hold together: they
share the level.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from tertulia import __version__
from tertulia._arrays import F64, Bool
from tertulia.corpus import Corpus
from tertulia.corpus.recipes import read_recipe
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.federation.party.host import PartyHost
from tertulia.federation.types import PartyId, Planned
from tertulia.operations.audit import canaries, documents, tokens
from tertulia.operations.audit.mechanisms import audit_mechanism
from tertulia.operations.audit.recording import Recording, record
from tertulia.operations.audit.results import Finding, Part, Report, Store, configuration_of, place_of
from tertulia.privacy.accounting import guarantee_of
from tertulia.privacy.audit import one_run, pairs, tradeoff
from tertulia.privacy.audit.inputs import promises
from tertulia.privacy.mechanisms import Adjacency, Mechanism, Randomiser, Unit
from tertulia.privacy.mechanisms.gaussian import epsilon_of
from tertulia.privacy.mechanisms.token_reports import TokenReports
from tertulia.privacy.policy import Policy
from tertulia.runs.budgets import announced
from tertulia.runs.documents import sources_of
from tertulia.runs.one_machine import policy_or_none
from tertulia.runs.replay import NO_PLAN, NOTHING_TO_AUDIT, ReplayReport, replay
from tertulia.runs.settings import PartySettings, RunSettings

KINDS = ("mechanism", "structure", "masks", "tokens", "documents")
_TOKENS = (12_000, 100_000)  # the fewest and the most canary tokens, unless a number is given
_DOCUMENTS = 1_000  # canary documents, unless a number is given
_LISTED = 1_000  # words beside those of canary documents
_DOCUMENTS_PER_USER = 2

Say = Callable[[str], None]


class Effort(NamedTuple):
    """How much an audit does."""

    canaries: int | None = None  # tokens, or documents; None: as many as the claims need, within bounds
    draws: int = 1_000_000  # of each mechanism, at most
    documents: int = 200  # of each party, that are copied
    runs: int = 3  # with canary documents, each with its own coins and noise
    delta: float = 1e-6
    confidence: float = 0.95


class _Promises(NamedTuple):
    """Parties with the same promises."""

    party: PartyId  # the first of them
    planned: list[Planned]

    @property
    def mechanisms(self) -> list[Mechanism]:
        """The different mechanisms with noise."""
        found = {_name(one.mechanism): one.mechanism for one in self.planned if promises(one.mechanism)}
        return list(found.values())

    @property
    def reports(self) -> list[Mechanism]:
        """Those by which tokens are reported, once and for all."""
        return [one for one in self.mechanisms if isinstance(one, Randomiser) and one.by_document]

    @property
    def sums(self) -> list[Mechanism]:
        """Those that add noise to sums over documents; scores are not among them."""
        return [one for one in self.mechanisms if not isinstance(one, Randomiser) and not one.metric]


def audit(
    settings: RunSettings, corpora: Mapping[PartyId, Corpus] | None = None, effort: Effort | None = None, *,
    kinds: Collection[str] = KINDS, say: Say = lambda text: None,
) -> Report:  # fmt: skip
    """Attack a configuration on planted documents; without `corpora`, the parties' documents are read.

    With some kinds of attack alone, nothing is stored.
    """
    effort = effort or Effort()
    if corpora is None:
        corpora = {party: read_recipe(source) for party, source in sources_of(settings).items()}
    groups = _groups(settings, list(corpora))
    copied = canaries.copies(corpora, effort.documents)
    configuration = configuration_of(settings)
    store = Store(place_of(Path(settings.directory)), f"{__version__}/{configuration}/{effort}")
    parts = _parts(settings, groups, copied, effort)
    found = []
    whole = set(kinds) >= set(KINDS)
    for name, work in parts.items():
        if name.split()[0] in kinds:
            say(f"{name}: finished before" if whole and store.holds(name) else name)
            found.append(store.part(name, work) if whole else work())
    findings = tuple(finding for part in found for finding in part.findings)
    report = Report(configuration, effort.confidence, findings, tuple(text for part in found for text in part.untested))
    if whole:
        store.finish(report)
    return report


def _groups(settings: RunSettings, parties: list[PartyId]) -> list[_Promises]:
    """Group the parties by what is promised to them; raise if there is no promise, or a policy forbids canaries."""
    found, plans = dict[str, _Promises](), False
    for party in parties:
        policy = policy_or_none(settings, party) or Policy()
        if not policy.allow_canaries:
            raise PolicyRefusal(
                "allow_canaries", f"party '{party}' forbids made-up documents in its name, even in copies of its own"
            )
        planned = announced(settings, party, policy)
        if any(promises(one.mechanism) for one in planned):
            names = sorted({f"{_name(one.mechanism)}/{one.times}" for one in planned})
            found.setdefault("\n".join(names), _Promises(party, planned))
        plans = plans or bool(planned)
    if not found:
        raise ConfigError(NOTHING_TO_AUDIT if plans else NO_PLAN)
    return list(found.values())


def _name(mechanism: Mechanism) -> str:
    return f"{mechanism.name}/{mechanism.what}/{mechanism.sensitivity}/{json.dumps(mechanism.params(), sort_keys=True)}"


def _parts(
    settings: RunSettings, groups: list[_Promises], corpora: dict[PartyId, Corpus], effort: Effort
) -> dict[str, Callable[[], Part]]:
    """List the parts by name; the names say what was promised, so that a finished part is known again."""
    mechanisms = {_name(one): one for group in groups for one in group.mechanisms}
    tokened = [group for group in groups if group.reports]
    summed = [group for group in groups if group.sums]
    level = (1 - effort.confidence) / (len(mechanisms) + len(tokened) + len(summed))
    _check_canaries(tokened, summed, effort, level)
    run = _Run(settings, corpora, effort, level)
    parts: dict[str, Callable[[], Part]] = {
        f"mechanism {one.what} ({i})": partial(_of_mechanism, one, effort, level)
        for i, one in enumerate(mechanisms.values(), 1)
    }
    parts["structure"] = partial(_of_structure, settings, corpora)
    if settings.federation.secure:
        parts["masks"] = partial(_of_masks, groups[0], run)
    parts |= {f"tokens of {group.party}": partial(_of_tokens, group, run) for group in tokened}
    parts |= {f"documents of {group.party}": partial(_of_documents, group, run) for group in summed}
    return parts


def _check_canaries(tokened: list[_Promises], summed: list[_Promises], effort: Effort, level: float) -> None:
    """Raise `ConfigError` if a given number of canaries could not show that a claim is false."""
    given = effort.canaries
    for group in tokened if given is not None else ():
        claimed = max(_token_claim(one) for one in group.reports)
        if one_run.could_have_shown(given or 0, level) <= claimed:
            needed = one_run.canaries_needed(claimed, level)
            raise ConfigError(
                f"canaries = {given}: not even a perfect attacker could show more than epsilon "
                f"{one_run.could_have_shown(given or 0, level):.2g}, and {claimed:.4g} is claimed for a token: give "
                f"{needed} or more"
            )
    for group in summed if given is not None else ():
        claimed = max((one.claimed.epsilon for one in group.sums if one.claimed), default=0.0)
        needed = _documents_needed(claimed, level, effort.delta)
        if (given or 0) < needed:
            raise ConfigError(
                f"canaries = {given}: not even a perfect attacker could show an epsilon above {claimed:.4g}, which is "
                f"claimed for a document: give {needed} or more"
            )


def _documents_needed(claimed: float, level: float, delta: float) -> int:
    """Return the fewest canary documents of which about half are there, by which a claim could be refuted."""
    needed = 8
    while _shown_by_documents(needed, level, delta) <= claimed and needed < 1 << 20:
        needed += max(1, needed // 8)
    return needed


def _shown_by_documents(number: int, level: float, delta: float) -> float:
    return epsilon_of(pairs.could_have_shown(number // 2, level, of="mu"), delta)


def _of_mechanism(mechanism: Mechanism, effort: Effort, level: float) -> Part:
    found = audit_mechanism(mechanism, effort.delta, level, effort.draws)
    what = mechanism.what
    if found is None:
        return Part(
            untested=(f"{what}: {mechanism.name} draws its noise within a step; the replay compares its inputs",)
        )
    unit = mechanism.unit if not isinstance(mechanism, Randomiser) else Unit.TOKEN
    bounds = (found.claimed, found.lower_bound, found.could_have_shown)
    note = f"one release by {mechanism.name}"
    return Part(
        (
            Finding(
                "mechanism", "", what, unit.value, mechanism.adjacency.value, *bounds, found.delta, found.draws, note
            ),
        )
    )


def _of_structure(settings: RunSettings, corpora: Mapping[PartyId, Corpus]) -> Part:
    """Replay a run on neighbours: what differs without having passed a mechanism shows with certainty."""
    method = settings.method.replace(**settings.method.audited)  # it must not stop because copies are small
    found = replay(settings.replace(method=method), corpora)
    shown = math.inf if found.violations else 0.0
    values = (0.0, shown, math.inf, 0.0, found.compared, "; ".join(_seen(found)))
    return Part((Finding("structure", found.party, "what mechanisms do not see", "any", "any", *values),))


def _seen(found: ReplayReport) -> Iterator[str]:
    """Say what a replay has compared, and which promises do not hold: each kind of violation once."""
    closest = "" if found.violations else f", the closest at {found.closest:.0%} of its declared sensitivity"
    yield f"{found.compared} inputs and derived values on {len(found.neighbours)} neighbours{closest}"
    if found.unpromised:
        yield f"without a promise, and not compared: {', '.join(found.unpromised)}"
    if found.ended:
        yield f"the run ended early: {found.ended}"
    alike: dict[tuple[str, str, str], list[str]] = {}
    for one in found.violations:
        alike.setdefault((one.kind, one.step, one.what), []).append(one.text)
    for texts in alike.values():
        yield texts[0] + (f", and {len(texts) - 1} more times" if len(texts) > 1 else "")


class _Run(NamedTuple):
    """What the attacks on whole runs need."""

    settings: RunSettings
    corpora: dict[PartyId, Corpus]
    effort: Effort
    level: float

    def recorded(
        self, directory: Path, party: PartyId, planted: Corpus, words: tuple[str, ...] | None
    ) -> dict[PartyId, Recording]:
        """Run on copies of the documents, with planted ones at one party."""
        named = {name: self.settings.parties.get(name, PartySettings()) for name in self.corpora}
        settings = self.settings.replace(parties=named)
        return record(canaries.settings_for(settings, directory, words), {**self.corpora, party: planted})


def _of_masks(group: _Promises, run: _Run) -> Part:
    """Look for masks that were used twice: the cells of a masked reply that hold zeros show its mask."""
    with TemporaryDirectory() as place:
        recorded = run.recorded(Path(place), group.party, run.corpora[group.party], _listed(run))
    masks = [mask for one in recorded.values() for mask in one.masks]
    if not masks:
        return Part(untested=("masks of secure sums: no masked reply left in the run on copies",))
    shown = 0.0 if len(set(masks)) == len(masks) else math.inf
    values = (0.0, shown, math.inf, 0.0, len(masks), "masked replies of all parties, to different questions")
    return Part((Finding("masks", group.party, "masks of secure sums", "any", "any", *values),))


def _listed(run: _Run) -> tuple[str, ...] | None:
    """Return a public list for a method that has none; None: it has one."""
    terms = run.settings.method.vocabulary_settings
    return None if terms is None or terms.words else canaries.frequent_words(run.corpora, (), _LISTED)


def _coins(number: int) -> Bool:
    return np.asarray(np.frombuffer(secrets.token_bytes(number), np.uint8) % 2 == 1)


def _token_claim(mechanism: Mechanism) -> float:
    """Return the epsilon of one token's report."""
    return guarantee_of(TokenReports(mechanism.what, channel=getattr(mechanism, "channel"))).epsilon  # noqa: B009


def _of_tokens(group: _Promises, run: _Run) -> Part:
    """Plant tokens that are one of two words, and guess which."""
    effort, claimed = run.effort, max(_token_claim(one) for one in group.reports)
    wanted = 2 * one_run.canaries_needed(min(claimed, 20.0), run.level)
    number = effort.canaries or min(max(wanted, _TOKENS[0]), _TOKENS[1])
    terms = run.settings.method.vocabulary_settings
    allowed = terms.words if terms is not None else ()
    listed = canaries.frequent_words(run.corpora, allowed, _LISTED)
    background = run.corpora[group.party]
    caps = [getattr(one, "tokens", tokens.LONG) for one in group.reports]
    planted = tokens.canary_tokens(number, background, (listed[0], listed[1]), _coins(number), min(caps))
    with TemporaryDirectory() as place:
        whole = Corpus.concatenate([background, *planted.corpora])
        recording = run.recorded(Path(place), group.party, whole, None if allowed else listed)[group.party]
        scores = tokens.scores_of(recording.drawn, planted)
    bound = one_run.bound(planted.coins, scores, run.level)
    most = one_run.could_have_shown(len(planted.coins), run.level)
    note = "one run: reports as the steps drew them"
    what, adjacency = group.reports[0].what, Adjacency.SUBSTITUTE.value
    values = (claimed, bound, most, 0.0, len(planted.coins))
    return Part((Finding("tokens", group.party, what, Unit.TOKEN.value, adjacency, *values, note),))


class _Guessed(NamedTuple):
    """Scores of the canary documents of some runs, and what is claimed for one run."""

    scores: F64
    mu: F64
    coins: Bool
    claimed: float


def _of_documents(group: _Promises, run: _Run) -> Part:
    """Plant documents that are there or not, and guess which."""
    delta, unit = run.effort.delta, group.sums[0].unit
    number = run.effort.canaries or _DOCUMENTS
    guessed = [_guess_documents(group, run, number) for _ in range(run.effort.runs)]
    found = [one for one in guessed if one is not None]
    if not found:
        return Part(untested=(f"documents of {group.party}: no sum left in the run on planted documents",))
    scores, coins = (np.concatenate(column) for column in zip(*((one.scores, one.coins) for one in found), strict=True))
    bound = pairs.bound(scores[coins], scores[~coins], run.level, of="mu")
    most = pairs.could_have_shown(min(int(coins.sum()), int((~coins).sum())), run.level, of="mu")
    formal = epsilon_of(tradeoff.bound(coins, _centred(scores, found), run.level), delta)
    shown = epsilon_of(float(np.mean([one.mu for one in found])), delta)
    note = (
        f"all noisy tables of a run; by its inputs alone a canary would be worth epsilon {shown:.3g}; without the "
        f"assumption that scores of canaries are independent, the lower bound is {formal:.3g}"
    )
    values = (found[0].claimed, epsilon_of(bound, delta), epsilon_of(most, delta), delta, len(coins))
    finding = Finding("documents", group.party, "the whole run", unit.value, Adjacency.ADD_REMOVE.value, *values, note)
    return Part((finding,))


def _centred(scores: F64, found: Sequence[_Guessed]) -> F64:
    """Return scores that are above 0 where the canary is likelier there than not."""
    return scores - np.concatenate([one.mu for one in found]) / 2


def _guess_documents(group: _Promises, run: _Run, number: int) -> _Guessed | None:
    """Run once on planted documents, and score each; None if nothing left under noise."""
    background, unit = run.corpora[group.party], group.sums[0].unit
    planted = canaries.canary_documents(number, background, _DOCUMENTS_PER_USER if unit is Unit.USER else 1)
    terms = run.settings.method.vocabulary_settings
    words = canaries.frequent_words(run.corpora, terms.words if terms is not None else (), _LISTED)
    coins = _coins(number)
    with TemporaryDirectory() as place:
        there = canaries.join(background, planted, coins)
        recorded = run.recorded(Path(place), group.party, there, words + planted.words)
        own = recorded[group.party]
        if not own.noisy:
            return None
        base, moves = documents.directions(own, background, planted)
        secure = run.settings.federation.secure
        others = [one for name, one in recorded.items() if secure and name != group.party]
        found = documents.scores_of(own, others, base, moves, number)
        with closing(PartyHost(own.directory, background).ledger) as ledger:
            claims = [one.claimed.epsilon for one in group.sums if one.claimed]
            claimed = min([*claims, ledger.cost(unit, Adjacency.ADD_REMOVE, run.effort.delta).epsilon])
    return _Guessed(found.scores, found.mu, coins, claimed)
