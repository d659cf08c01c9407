"""The real cost of a set of releases: dp-accounting composes, and we never guess where it does not know.

The closed form where all noise is Gaussian; privacy loss distributions (PLD) where every event has one; Rényi
divergences (RDP) for concentrated DP; where both occur, the better of RDP for all, and of each for its own with half of
delta. A loss that cannot be converted to the unit that is asked for costs infinity. `claim_table` sets claimed beside
real. dp-accounting takes seconds to import, so only functions that need it do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tertulia.privacy import user_totals
from tertulia.privacy.adjacency import Bounds, common_level, multiplicity
from tertulia.privacy.events import concentrated_rho, failure_or_none, flatten, from_data, pure_epsilon
from tertulia.privacy.mechanisms import Adjacency, Claim, EventData, Unit
from tertulia.privacy.mechanisms.gaussian import epsilon_of
from tertulia.privacy.reach import AS_CHARGED, Reach, spread_of
from tertulia.privacy.sampled import distribution_of, sampled_or_none, width_of

if TYPE_CHECKING:
    from tertulia.privacy.mechanisms import Mechanism
    from tertulia.privacy.releases import Release

_FINEST, _GRID = 1e-4, 500_000  # PLDs are rounded up to a grid: this fine, but of no more points than that
_WIDEST = 1e6  # losses that reach farther have so coarse a grid that one step of it is beyond float64's exp
_LONGEST_SHIFT = 2000
PURE = "pure composition"  # holds at any delta
_HOW = {False: "in the clear", True: "masked, without noise"}
_LARGEST = 300.0  # above it exp(epsilon) nears the end of float64, and no such epsilon protects


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-DP under assumptions; `tight` if the mechanisms are known to be no better than that."""

    epsilon: float
    delta: float
    accountant: str
    assumptions: tuple[str, ...]
    tight: bool


@dataclass(frozen=True)
class Loss:
    """One kind of privacy loss: an event that hits `group` units at once, under an adjacency, `count` times."""

    event: EventData
    adjacency: Adjacency
    group: int
    count: int

    @property
    def pure(self) -> float:
        """The epsilon of one such event at delta = 0."""
        return self.group * pure_epsilon(self.event, self.adjacency)

    @property
    def failure(self) -> float | None:
        """The probability with which the mechanism gives no guarantee at all, None for other losses."""
        chance = failure_or_none(self.event)
        return chance if chance is None or self.group == 1 else math.inf

    @property
    def rho(self) -> float:
        """The concentrated DP of one such event."""
        return self.group**2 * concentrated_rho(self.event, self.adjacency)

    @property
    def has_pld(self) -> bool:
        """Whether dp-accounting knows its privacy loss distribution."""
        gaussian = self.event["type"] == "GaussianDpEvent" or sampled_or_none(self.event) is not None
        return self.rho < math.inf and (gaussian or self.pure <= _LARGEST)


def no_guarantee(delta: float, reasons: Iterable[str], *, tight: bool = True) -> Guarantee:
    """Return no guarantee at all, and the reasons."""
    return Guarantee(math.inf, delta, "none", tuple(reasons), tight)


def guarantee_of(mechanism: Mechanism, delta: float = 0.0, copies: int = 1) -> Guarantee:
    """Compute the cost of `copies` independent releases by one mechanism: reports of a document's tokens, say."""
    events = flatten(mechanism.charge() or {"type": "NoOpDpEvent"})
    return compose([Loss(event, mechanism.adjacency, 1, count * copies) for event, count in events], delta)


def cost(
    releases: Sequence[Release], unit: Unit, adjacency: Adjacency, delta: float, bounds: Bounds | None = None, *,
    tokens: int | None = None, reach: Reach = AS_CHARGED,
) -> Guarantee:  # fmt: skip
    """Compute the guarantee that all these releases together give to one unit.

    Charges are converted by the limits that were in force then, planned releases by `bounds`. With `tokens`, the unit
    is a document that has no more tokens than that. `reach` says what a reader sees, by default of this party alone,
    and totals where masked.
    """
    assumptions = user_totals.assumed(releases, unit, reach)
    clear = sorted({f"{r.what} left {_HOW[r.masked]}" for r in releases if r.non_private})
    if clear:
        return no_guarantee(delta, [*assumptions, *clear])
    now, kinds, covered = bounds or Bounds(), user_totals.Kinds(), list[user_totals.Covered]()
    for r in releases:
        limits = (now.refined(r.limits) if r.charged is None else r.charged.limits(now)).of_a_document(tokens)
        users = user_totals.users_or_none(r, unit)
        of = unit if users is None or r.unit is Unit.USER else Unit.DOCUMENT  # each of a user's documents by itself
        many = multiplicity((r.unit, r.adjacency), (of, adjacency), limits, local=r.local)
        own = user_totals.Kinds()
        assumptions += [a for a in user_totals.assumptions(r, unit) if a not in assumptions]
        for event, count in flatten(r.event) if r.event else []:
            seen = spread_of(r, event, reach)
            if why_not := many.why_not or user_totals.why_not(r, unit) or seen.why_not:
                return no_guarantee(delta, [*assumptions, f"{r.what}: {why_not}"], tight=False)
            assumptions += [a for a in many.assumptions if a not in assumptions]
            count = _count_of_unit(r, unit, limits, count) * many.copies * seen.copies
            # A unit that becomes another fails as one that is added: in both data sets nothing else fails.
            group = many.group if failure_or_none(event) is None else many.units
            how = r.adjacency if many.group == many.units or sampled_or_none(event) is None else adjacency
            own[json.dumps(seen.event, sort_keys=True), how, group] += count
        if users is None:
            kinds += user_totals.repeated(own, user_totals.documents_of_user(r, unit, now) or 1)
        else:
            covered.append((users, own))
    return _worst(kinds, covered, delta, assumptions)


def _worst(
    kinds: user_totals.Kinds, covered: Sequence[user_totals.Covered], delta: float, assumptions: list[str]
) -> Guarantee:
    """Compose what hits all users with the reports of the user who was charged most."""
    found = []
    for documents, own in user_totals.heaviest(covered) or [(0, user_totals.Kinds())]:
        losses = [Loss(json.loads(event), how, group, n) for (event, how, group), n in (kinds + own).items()]
        said = [f"a user has had {documents} documents reported at most"] if documents > 1 else []
        found.append(compose(losses, delta, (*assumptions, *said)))
    return max(found, key=lambda one: one.epsilon)


def _count_of_unit(release: Release, unit: Unit, bounds: Bounds, count: int) -> int:
    """Count a unit's part of a user's reports, each drawn from one token alone: a token has one, a document its own."""
    reports = release.params.get("tokens") if release.name == "user-reports" else None
    if reports is None or unit not in (Unit.TOKEN, Unit.DOCUMENT):
        return count
    own = 1 if unit is Unit.TOKEN else min(reports, bounds.tokens_per_document or reports)
    return count // int(reports) * own


def compose(losses: Sequence[Loss], delta: float, assumptions: tuple[str, ...] = ()) -> Guarantee:
    """Return the smallest epsilon that an accountant supports; chances of failure use up a part of delta."""
    failures = [loss for loss in losses if loss.failure is not None]
    if failures:
        spent = sum(loss.count * (loss.failure or 0.0) for loss in failures)
        if spent >= delta:
            return no_guarantee(delta, [*assumptions, f"mechanisms fail with probability {spent:.2g} in all"])
        without = compose([loss for loss in losses if loss.failure is None], delta - spent, assumptions)
        return replace(without, delta=delta, tight=False)
    candidates = [(sum((loss.count * loss.pure for loss in losses), 0.0), PURE)]
    if losses and delta > 0:
        smooth = [loss for loss in losses if not loss.has_pld]
        rest = [loss for loss in losses if loss.has_pld]
        if sum(map(_width, rest)) > _WIDEST:
            smooth, rest = list(losses), []
        if not smooth and all(loss.event["type"] == "GaussianDpEvent" for loss in losses):
            candidates.append((_gaussian_epsilon(losses, delta), "Gaussian"))
        elif not smooth:
            candidates.append((_pld_epsilon(losses, delta), "PLD"))
        else:
            candidates.append((_rdp_epsilon(losses, delta), "RDP"))
        if smooth and rest:
            candidates.append((_pld_epsilon(rest, delta / 2) + _rdp_epsilon(smooth, delta / 2), "PLD + RDP"))
    epsilon, accountant = min(candidates)
    if epsilon == math.inf:
        kinds = sorted({loss.event["type"] for loss in losses})
        return no_guarantee(delta, [*assumptions, f"no finite epsilon at delta {delta:g} for {kinds}"], tight=False)
    tight = accountant in ("PLD", "Gaussian", PURE) and all(loss.group == 1 for loss in losses)
    return Guarantee(epsilon, delta, accountant, assumptions, tight)


def vacuity_or_none(
    guarantee: Guarantee, adjacency: Adjacency, population: int | None = None, words: int | None = None
) -> str | None:
    """Say why a guarantee means nothing, if it does.

    >>> vacuity_or_none(Guarantee(8.0, 1e-6, "PLD", (), True), Adjacency.NULL_REPLACE, words=2949)
    'epsilon >= ln 2949: publishing almost every word verbatim satisfies it'
    """
    if guarantee.epsilon == math.inf:
        return None  # it does not even claim to mean something
    if population is not None and guarantee.delta >= 1 / max(population, 1):
        return f"delta >= 1/{population}: publishing one unit picked at random satisfies it"
    if words is not None and adjacency is Adjacency.NULL_REPLACE and guarantee.epsilon >= math.log(words):
        return f"epsilon >= ln {words}: publishing almost every word verbatim satisfies it"
    return None


def _gaussian_epsilon(losses: Sequence[Loss], delta: float) -> float:
    """Return the exact epsilon of Gaussian noise alone, in milliseconds where its PLD takes seconds: mu² = 2 rho."""
    return epsilon_of(math.sqrt(2 * sum(loss.count * loss.rho for loss in losses)), delta)


def _rdp_epsilon(losses: Sequence[Loss], delta: float) -> float:
    rho = sum(loss.count * loss.rho for loss in losses)
    if rho in (0, math.inf):
        return rho
    from dp_accounting.rdp import RdpAccountant

    # The best order is 1 + sqrt(ln(1/delta)/rho), about; the library's default orders end before small rho needs it.
    best = 1 + math.sqrt(math.log(1 / delta) / rho)
    orders = [1 + (best - 1) * 2 ** (i / 8) for i in range(-24, 25)]
    accountant = RdpAccountant(orders).compose(from_data({"type": "ZCDpEvent", "rho": rho}))
    return float(accountant.get_epsilon(delta))


def _pld_epsilon(losses: Sequence[Loss], delta: float) -> float:
    events = tuple(json.dumps(loss.event, sort_keys=True) for loss in losses)
    return _composed_epsilon(events, tuple((loss.adjacency, loss.group, loss.count) for loss in losses), delta)


@lru_cache  # the same for all parties and pages, and dp-accounting takes up to half a second for Gaussian noise
def _composed_epsilon(events: tuple[str, ...], hits: tuple[tuple[Adjacency, int, int], ...], delta: float) -> float:
    losses = [Loss(json.loads(event), *hit) for event, hit in zip(events, hits, strict=True)]
    interval = max(_FINEST, sum(_width(loss) for loss in losses) / _GRID)
    total = None
    for loss in losses:
        pld = _pld(loss, interval)
        total = pld if total is None else total.compose(pld)
    return float(total.get_epsilon_for_delta(delta)) if total else 0.0


def _width(loss: Loss) -> float:
    """Estimate how far the privacy loss reaches."""
    if (sampled := sampled_or_none(loss.event)) is not None:
        return width_of(sampled, loss.group, loss.count)
    if loss.pure < math.inf:
        return loss.count * loss.pure
    rho = loss.count * loss.rho
    return rho + 20 * math.sqrt(rho)


def _coarsen(rate: float, shift: int) -> tuple[float, int]:
    """Bound a discrete Laplace by one on a coarser grid, for the library's time grows with the shift.

    A geometric variable is k times one of rate k * rate, plus an independent remainder; so is a difference of two, and
    the finer noise is the coarser one post-processed. Rounding the shift up moves epsilon by 1/2000 at most.
    """
    k = max(1, shift // _LONGEST_SHIFT)
    return rate * k, -(-shift // k)


def _pld(loss: Loss, interval: float) -> Any:
    """Return the privacy loss distribution of all `count` events; a group moves noisy numbers `group` times as far."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.privacy_accountant import NeighboringRelation

    event, group, grid = loss.event, loss.group, {"value_discretization_interval": interval}
    match event["type"]:
        case "GaussianDpEvent":
            scale = event["noise_multiplier"] / group / math.sqrt(loss.count)
            return pld.from_gaussian_mechanism(scale, **grid)
        case "PoissonSampledDpEvent" if (sampled := sampled_or_none(event)) is not None:
            one = distribution_of(sampled, loss.adjacency, group, interval)
        case "LaplaceDpEvent":
            one = pld.from_laplace_mechanism(event["noise_multiplier"] / group, **grid)
        case "DiscreteLaplaceDpEvent":
            one = pld.from_discrete_laplace_mechanism(
                *_coarsen(event["noise_parameter"], group * event["sensitivity"]), **grid
            )
        case "RandomizedResponseDpEvent" if group == 1 and 0 < event["noise_parameter"] < 1:
            null = loss.adjacency is Adjacency.NULL_REPLACE
            relation = NeighboringRelation.REPLACE_SPECIAL if null else NeighboringRelation.REPLACE_ONE
            p, k = event["noise_parameter"], event["num_buckets"]
            one = pld.from_randomized_response(p, k, neighboring_relation=relation, **grid)
        case _:  # no more is known of it than its epsilon
            one = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(loss.pure, 0), interval)
    return one.self_compose(loss.count)


@dataclass(frozen=True)
class ClaimRow:
    """Claimed beside real, for all releases of one thing by one mechanism.

    A derived thing has the unit, adjacency and cost of the releases that it is computed from, its `sources`. They were
    charged once: costs of rows must not be added up.
    """

    what: str
    mechanism: str
    unit: Unit
    adjacency: Adjacency
    releases: int
    nbytes: int
    claimed: Claim | None
    real: Guarantee
    vacuous: str | None  # why the real value means nothing, if so
    finding: str | None = None  # what a mechanism found out about itself, with the data at hand, when it was last used
    sources: tuple[str, ...] = ()  # what a derived thing is computed from


@dataclass(frozen=True)
class Extent:
    """The amount of data to protect, where it is known: `population` units, `words` in all."""

    population: int | None = None
    words: int | None = None


def claim_table(
    releases: Mapping[str, Release], real: Callable[[Sequence[Release], Unit, Adjacency], Guarantee], extent: Extent
) -> list[ClaimRow]:
    """Make a row for each thing, unit, mechanism and claim; `real` computes what some releases cost together."""
    groups: dict[tuple[str, str, Unit, Adjacency, Claim | None], list[Release]] = {}
    for r in releases.values():
        groups.setdefault((r.what, r.name, r.unit, r.adjacency, r.claimed), []).append(r)
    rows = []
    for (what, name, _, _, claimed), group in groups.items():
        charged = _sources(group, releases)
        unit, adjacency = common_level((r.unit, r.adjacency) for r in charging_or_all(charged) or group)
        derived = [r for r in group if r.event is None]  # they cost nothing, but may assume something
        found = real([*charged, *derived], unit, adjacency)
        vacuous = vacuity_or_none(found, adjacency, extent.population, extent.words)
        nbytes = sum(r.nbytes for r in group)
        finding = group[-1].params.get("finding")
        sources = tuple(sorted({r.what for r in charged})) if any(r.event is None for r in group) else ()
        rows.append(
            ClaimRow(what, name, unit, adjacency, len(group), nbytes, claimed, found, vacuous, finding, sources)
        )
    return rows


def _sources(releases: Iterable[Release], known: Mapping[str, Release]) -> list[Release]:
    """Return the releases, but in place of derived ones all that these are computed from."""
    found: dict[str, Release] = {}
    waiting = list(releases)[::-1]
    while waiting:
        release = waiting.pop()
        if release.event is not None:
            found[release.id] = release
        else:
            waiting += [known[parent] for parent in release.parents]
    return list(found.values())


def charging_or_all(sources: list[Release]) -> list[Release]:
    """Return the releases whose unit and adjacency a cost is stated in: those that charge, if there are any."""
    return [release for release in sources if release.charges] or sources
