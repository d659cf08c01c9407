"""The rounds of a method, and its result.

A method gives a function of one round. After it come callbacks, in their order: `evaluation.Evaluation` scores the
model; a method may have others of its own. Then the round is committed, which makes it durable and shows its metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from tertulia._arrays import Array
from tertulia.federation.types import Federation, PartyId
from tertulia.models import Topics

Metrics = dict[str, Any]


class TopicsSoFar(NamedTuple):
    """The topics in a method's state, for pages that show a run under way (`topics_so_far` of a method's module)."""

    words: tuple[str, ...]
    rows: Array  # [K, V] counts or probabilities; rows need not sum to 1
    sizes: Array | None = None  # [K]
    by_party: Mapping[PartyId, Array] = MappingProxyType({})  # [K_p, V] of single parties, where the server has them


class Rounds(Protocol):
    """Settings with a fixed number of rounds."""

    @property
    def rounds(self) -> int:
        """The number of rounds."""


class Counted(Protocol):
    """A state that knows how many rounds are done."""

    @property
    def round(self) -> int:
        """The number of rounds so far."""


S = TypeVar("S")
C = TypeVar("C", bound=Counted)
OneRound = Callable[[S], tuple[S, Metrics]]
Callback = Callable[[Federation, S], tuple[S, Metrics]]


def run_until(
    fed: Federation,
    finished: Callable[[S], bool],
    state: S,
    one_round: OneRound[S],
    callbacks: Sequence[Callback[S]] = (),
    *,
    durable: int = 1,
) -> S:
    """Run rounds from a state on until it is finished; every `durable` rounds the state is written to disk."""
    while not finished(state):
        state, metrics = one_round(state)
        for callback in callbacks:
            state, more = callback(fed, state)
            metrics |= more
        state = fed.commit(state, durable=durable, **metrics)
    return state


def run_rounds(
    fed: Federation, config: Rounds, state: C, one_round: OneRound[C], callbacks: Sequence[Callback[C]] = ()
) -> C:
    """Run as many rounds as the settings say."""
    return run_until(fed, lambda state: state.round >= config.rounds, state, one_round, callbacks)


@dataclass(frozen=True)
class Trained:
    """The shared model, and each party's own."""

    topics: Topics
    local: dict[PartyId, Topics]
