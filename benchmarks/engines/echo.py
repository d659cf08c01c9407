"""A method that only exchanges messages: the server sends numbers, and every party sends as many back.

Values are random, so that packing cannot compress them. The time of a round is that of the federation's own layers and
of the engine: frames, ledger, answer log, commit.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.privacy.mechanisms import Clear

ECHO = "echo"


@message
class Load:
    """Numbers."""

    values: Array


@message
class Rounds:
    """The seconds of each round so far."""

    seconds: tuple[float, ...]


@step
def echo(party: Party, state: Any, ask: Load) -> tuple[Any, Load]:
    """Send numbers back, each changed by one bit."""
    return state, Load(party.release(np.bitwise_xor(ask.values, 1), Clear(ECHO)))


STEPS = (echo,)


def train(fed: Federation, config: dict[str, Any], state: Rounds | None = None) -> Rounds:
    """Exchange for a number of rounds; return the seconds of each."""
    state = state or Rounds(())
    rng = np.random.default_rng(len(state.seconds))
    loads = [Load(rng.integers(2**31, size=config["bytes"] // 8)) for _ in range(2)]
    for number in range(len(state.seconds), config["rounds"]):
        started = time.monotonic()
        fed.sum(echo, loads[number % 2])
        state = fed.commit(Rounds((*state.seconds, time.monotonic() - started)), durable=config.get("durable", 1))
    return state


def plan(config: dict[str, Any]) -> list[Planned]:
    """List all that will leave a party."""
    return [Planned(echo, "sum", Clear(ECHO), config["rounds"])]
