"""Tiny methods for tests of the federation itself."""

import time
from pathlib import Path

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import Missed
from tertulia.federation.fields import ReplyWeight
from tertulia.federation.types import Nothing, message, step
from tertulia.privacy.mechanisms import Clear, DiscreteLaplace, Public


@message
class Number:
    value: Array


@message
class Late:
    """A party that is late, and by how many seconds."""

    party: str
    seconds: float


Ask = Nothing | Number


@message
class Weighted:
    value: object
    weight: ReplyWeight


@message
class Total:
    round: int
    totals: tuple


@message
class Memory:
    seen: int
    noise: object


@step
def accumulate(party, state, ask: Ask):
    """Stateful and noisy: what it answers depends on all questions before it and on the party's key."""
    seen = (state.seen if state else 0) + 1
    count = np.array([seen * 100 + party.seed % 97, party.documents().n_documents])
    released = party.release(count, DiscreteLaplace("count", sensitivity=1, epsilon=0.5))
    return Memory(seen, np.asarray(released)), Number(released)


@step
def count_free(party, state, ask: Ask):
    """Stateful, free of charge."""
    seen = (state.seen if state else 0) + 1
    return Memory(seen, None), Number(party.release(np.array(seen), Clear("count")))


@step
def weigh(party, state, ask: Ask):
    n = party.documents().n_documents
    return state, Weighted(
        party.release(np.full(2, float(n)), Clear("size")), party.release(np.float64(n), Public("number of documents"))
    )


@step
def weigh_narrow(party, state, ask: Ask):
    """As `weigh`, with many small numbers in half precision."""
    n = party.documents().n_documents
    values = np.full(10_000, n, dtype=np.float16)
    return state, Weighted(
        party.release(values, Clear("size")), party.release(np.float64(n), Public("number of documents"))
    )


@step
def leak(party, state, ask: Ask):
    return state, Number(np.array(party.documents().n_documents))


@step
def leak_after(party, state, ask: Ask):
    return state, Number(party.release(np.array([1, 2]), Clear("count")) + 0)


@step
def crash(party, state, ask: Ask):
    raise ValueError("the patient is called Mary")


@step
def dawdle(party, state, ask: Late):
    if party.id == ask.party:
        time.sleep(ask.seconds)
    return count_free(party, state, ask)


@step
def keep_secret(party, state, ask: Ask):
    party.keep("diary", x=np.arange(3))
    return state, Nothing()


@step
def build_on(party, state, ask: Number):
    """Only who holds the state that the question builds on can answer."""
    if state is None or state.seen != ask.value:
        raise Missed("it has not seen so much")
    return state, Number(party.release(np.array(state.seen), Clear("count")))


@step
def send_back(party, state, ask: Number):
    """What the server sends, as it is."""
    return state, Number(party.release(ask.value, Clear("what was sent")))


@step
def stay_private(party, state, ask: Ask):
    """A step that no party offers, as it is not listed."""
    return state, Nothing()


STEPS = (
    accumulate, count_free, weigh, weigh_narrow, leak, leak_after, crash, dawdle, keep_secret, build_on, send_back,
)  # fmt: skip


def train(fed, config, state):
    """Rounds of two noisy sums; the state is the list of totals."""
    state = state or fed.commit(Total(0, ()))
    while state.round < config["rounds"]:
        first = fed.sum(accumulate, Number(np.array(state.round)))
        second = fed.sum(accumulate, Number(np.array([*first.value, len(state.totals)])))
        state = fed.commit(
            Total(state.round + 1, (*state.totals, first.value, second.value)), durable=config.get("durable", 1)
        )
    return state


def train_held(fed, config, state):
    """As `train`, once the file `barrier` exists; the file `ready` says that it waits."""
    if "barrier" in config:
        Path(config["ready"]).touch()
        for _ in range(3000):
            if Path(config["barrier"]).exists():
                break
            time.sleep(0.02)
    return train(fed, config, state)


def train_free(fed, config, state):
    """Many tiny rounds that need no disk each."""
    state = state or fed.commit(Total(0, ()), durable=config["durable"])
    while state.round < config["rounds"]:
        late = state.round in config.get("late", ())
        total = fed.sum(dawdle, Late("b", 5.0)) if late else fed.sum(count_free, Nothing())
        if state.round == config.get("die_at") and config["deaths"]:
            config["deaths"] -= 1
            config["kill"]()
        state = fed.commit(Total(state.round + 1, (*state.totals, total.value)), durable=config["durable"])
    return state
