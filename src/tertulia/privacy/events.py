"""Privacy events as data: dp-accounting's events written as JSON, so that a ledger outlives the program that wrote it.

Only `from_data` imports dp-accounting, which takes seconds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tertulia.errors import FormatError
from tertulia.privacy.mechanisms import Adjacency, EventData

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

_LARGEST = 700.0  # of an exponent in float64


def from_data(data: EventData) -> DpEvent:
    """Build the dp-accounting event that the data describe.

    >>> from_data({"type": "GaussianDpEvent", "noise_multiplier": 2.0})
    GaussianDpEvent(noise_multiplier=2.0)
    """
    from dp_accounting import dp_event

    kind = getattr(dp_event, str(data.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, dp_event.DpEvent)):
        raise FormatError(f"'{data.get('type')}' is no event of dp-accounting: the ledger is newer, or damaged")
    return kind(**{name: _from_value(value) for name, value in data.items() if name != "type"})


def _from_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_value(v) for v in value]
    return from_data(value) if isinstance(value, dict) else value


def flatten(data: EventData, count: int = 1) -> list[tuple[EventData, int]]:
    """List the single events in a composition, and how often each happens."""
    match data["type"]:
        case "NoOpDpEvent":
            return []
        case "ComposedDpEvent":
            return [leaf for event in data["events"] for leaf in flatten(event, count)]
        case "SelfComposedDpEvent":
            return flatten(data["event"], count * data["count"])
        case _:
            return [(data, count)]


def failure_or_none(data: EventData) -> float | None:
    """Return the chance that a mechanism gives no guarantee for one unit; None for an event that always gives one."""
    if data["type"] != "EpsilonDeltaDpEvent" or data["epsilon"]:
        return None
    return float(data["delta"])


def pure_epsilon(data: EventData, adjacency: Adjacency) -> float:
    """Return the event's epsilon at delta = 0: infinite for Gaussian noise."""
    match data["type"]:
        case "LaplaceDpEvent":
            return 1 / float(data["noise_multiplier"])
        case "DiscreteLaplaceDpEvent":
            return float(data["noise_parameter"] * data["sensitivity"])
        case "RandomizedResponseDpEvent":
            p, k = data["noise_parameter"], data["num_buckets"]  # P(o|x) = p/k, but P(x|x) = 1 - p + p/k
            if p in (0, 1) or k == 1:
                return 0.0 if p == 1 or k == 1 else math.inf
            if adjacency is Adjacency.NULL_REPLACE:  # the null is answered uniformly: P(o|null) = 1/k
                return max(math.log(k * (1 - p) + p), -math.log(p))
            return math.log1p(k * (1 - p) / p)
        case "PoissonSampledDpEvent":  # it protects more only if the rest is the same with and without the unit
            within, q = pure_epsilon(data["event"], adjacency), data["sampling_probability"]
            amplified = adjacency is Adjacency.ADD_REMOVE and within < _LARGEST
            return math.log1p(q * math.expm1(within)) if amplified else within
        case _:
            return math.inf


def concentrated_rho(data: EventData, adjacency: Adjacency) -> float:
    """Return the event's rho of zero-concentrated DP; epsilon-DP has epsilon²/2 (Bun, Steinke 2016, prop. 3.3)."""
    match data["type"]:
        case "ZCDpEvent" if data.get("xi", 0) == 0:
            return float(data["rho"])
        case "GaussianDpEvent":
            return math.inf if data["noise_multiplier"] == 0 else 1 / (2 * data["noise_multiplier"] ** 2)
        case "PoissonSampledDpEvent":  # no more than without sampling, for divergences are quasi-convex
            return concentrated_rho(data["event"], adjacency)
        case _:
            return pure_epsilon(data, adjacency) ** 2 / 2
