"""What a set of releases really costs: dp-accounting composes, and we never guess where it does not know.

Privacy loss distributions (PLD) where every event has one; Rényi divergences (RDP) for concentrated DP; where both
occur, the better of RDP for all, and of each for its own with half of delta. Whatever cannot be converted to the unit
that is asked for costs infinity. dp-accounting takes seconds to import, so only functions that need it do.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tertulia.privacy.adjacency import Bounds, multiplicity
from tertulia.privacy.events import concentrated_rho, flatten, from_data, pure_epsilon
from tertulia.privacy.mechanisms import Adjacency, EventData, Unit

if TYPE_CHECKING:
    from tertulia.privacy.mechanisms import Mechanism
    from tertulia.privacy.releases import Release

_FINEST, _GRID = 1e-4, 500_000  # PLDs are rounded up to a grid: this fine, but of no more points than that
_WIDEST = 1e6  # losses that reach farther have so coarse a grid that one step of it is beyond float64's exp
_LONGEST_SHIFT = 2000
_LARGEST = 300.0  # above it exp(epsilon) nears the end of float64, and nobody cares


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
    def rho(self) -> float:
        """The concentrated DP of one such event."""
        return self.group**2 * concentrated_rho(self.event, self.adjacency)

    @property
    def has_pld(self) -> bool:
        """Whether dp-accounting knows its privacy loss distribution."""
        return self.rho < math.inf and (self.event["type"] == "GaussianDpEvent" or self.pure <= _LARGEST)


def no_guarantee(delta: float, reasons: Iterable[str], *, tight: bool = True) -> Guarantee:
    """No guarantee at all, and why."""
    return Guarantee(math.inf, delta, "none", tuple(reasons), tight)


def guarantee_of(mechanism: Mechanism, delta: float = 0.0, copies: int = 1) -> Guarantee:
    """What so many independent releases by one mechanism cost together, such as the reports of a document's tokens."""
    events = flatten(mechanism.charge() or {"type": "NoOpDpEvent"})
    return compose([Loss(event, mechanism.adjacency, 1, count * copies) for event, count in events], delta)


def cost(
    releases: Sequence[Release], unit: Unit, adjacency: Adjacency, delta: float, bounds: Bounds | None = None
) -> Guarantee:
    """The guarantee that all these releases together give to one unit."""
    assumptions = list(dict.fromkeys(a for r in releases for a in r.assumptions))
    clear = sorted({r.what for r in releases if r.non_private})
    if clear:
        return no_guarantee(delta, [*assumptions, *(f"{what} left in the clear" for what in clear)])
    kinds: Counter[tuple[str, Adjacency, int]] = Counter()
    for r in releases:
        many = multiplicity((r.unit, r.adjacency), (unit, adjacency), bounds or Bounds(), local=r.local)
        for event, count in flatten(r.event) if r.event else []:
            if many.why_not:
                return no_guarantee(delta, [*assumptions, f"{r.what}: {many.why_not}"], tight=False)
            assumptions += [a for a in many.assumptions if a not in assumptions]
            own = _count_of_unit(r, unit, bounds or Bounds(), count)
            kinds[json.dumps(event, sort_keys=True), r.adjacency, many.group] += own * many.copies
    losses = [Loss(json.loads(event), how, group, count) for (event, how, group), count in kinds.items()]
    return compose(losses, delta, tuple(assumptions))


def _count_of_unit(release: Release, unit: Unit, bounds: Bounds, count: int) -> int:
    """Of a user's reports, each drawn from one token alone, those that a unit has: a token one, a document its own."""
    reports = release.params.get("tokens") if release.name == "user-reports" else None
    if reports is None or unit not in (Unit.TOKEN, Unit.DOCUMENT):
        return count
    own = 1 if unit is Unit.TOKEN else min(reports, bounds.tokens_per_document or reports)
    return count // int(reports) * own


def compose(losses: Sequence[Loss], delta: float, assumptions: tuple[str, ...] = ()) -> Guarantee:
    """The smallest epsilon that an accountant can vouch for."""
    candidates = [(sum((loss.count * loss.pure for loss in losses), 0.0), "pure composition")]
    if losses and delta > 0:
        smooth = [loss for loss in losses if not loss.has_pld]
        rest = [loss for loss in losses if loss.has_pld]
        if sum(map(_width, rest)) > _WIDEST:
            smooth, rest = list(losses), []
        if not smooth:
            candidates.append((_pld_epsilon(losses, delta), "PLD"))
        else:
            candidates.append((_rdp_epsilon(losses, delta), "RDP"))
        if smooth and rest:
            candidates.append((_pld_epsilon(rest, delta / 2) + _rdp_epsilon(smooth, delta / 2), "PLD + RDP"))
    epsilon, accountant = min(candidates)
    if epsilon == math.inf:
        kinds = sorted({loss.event["type"] for loss in losses})
        return no_guarantee(delta, [*assumptions, f"no finite epsilon at delta {delta:g} for {kinds}"], tight=False)
    tight = accountant in ("PLD", "pure composition") and all(loss.group == 1 for loss in losses)
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
    interval = max(_FINEST, sum(_width(loss) for loss in losses) / _GRID)
    total = None
    for loss in losses:
        pld = _pld(loss, interval)
        total = pld if total is None else total.compose(pld)
    return float(total.get_epsilon_for_delta(delta)) if total else 0.0


def _width(loss: Loss) -> float:
    """How far the privacy loss reaches, about."""
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
    """The privacy loss distribution of all `count` events; a group moves noisy numbers `group` times as far."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.privacy_accountant import NeighboringRelation

    event, group, grid = loss.event, loss.group, {"value_discretization_interval": interval}
    match event["type"]:
        case "GaussianDpEvent":
            scale = event["noise_multiplier"] / group / math.sqrt(loss.count)
            return pld.from_gaussian_mechanism(scale, **grid)
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
