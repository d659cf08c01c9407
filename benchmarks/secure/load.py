"""A method that only sums numbers: the server sends some, and every party sends as many back.

Values are random, so that packing cannot compress them. They fit a ring of 32 bits for up to a hundred parties, so the
plain sum and the masked one send the same bytes.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np

from tertulia._arrays import Array
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.privacy.mechanisms import Clear

LOAD = "numbers"
MOST = 2**24


@message
class Load:
    """Numbers."""

    values: Annotated[Array, fields.Numbers(("cells",), "iu")]


@message
class Rounds:
    """The seconds of each round so far, and the last total."""

    seconds: tuple[float, ...]
    total: Array


@step
def change(party: Party, state: Any, ask: Load) -> tuple[Any, Load]:
    """Send numbers back, each changed by one bit."""
    return state, Load(party.release(np.bitwise_xor(ask.values, 1), Clear(LOAD)))


STEPS = (change,)


def train(fed: Federation, config: dict[str, Any], state: Rounds | None = None) -> Rounds:
    """Sum for a number of rounds; return the seconds of each."""
    state = state or Rounds((), np.zeros(0, np.int64))
    rng = np.random.default_rng(7)
    loads = [Load(rng.integers(-MOST, MOST, size=config["bytes"] // 4).astype(np.int32)) for _ in range(2)]
    for number in range(len(state.seconds), config["rounds"]):
        started = time.monotonic()
        total = fed.sum(change, loads[number % 2]).values
        state = fed.commit(Rounds((*state.seconds, time.monotonic() - started), total))
        if not np.array_equal(total, len(fed.answered) * np.bitwise_xor(loads[number % 2].values, 1).astype(np.int64)):
            raise AssertionError("the total is wrong")
    return state


def plan(config: dict[str, Any]) -> list[Planned]:
    """List all that will leave a party."""
    return [Planned(change, "sum", Clear(LOAD), config["rounds"])]
