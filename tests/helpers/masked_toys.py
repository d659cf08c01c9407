"""A tiny method with secure sums, and a run of it: what a party contributes depends on its name and on the round."""

import dataclasses
from typing import Annotated

import numpy as np

from tertulia._arrays import Array
from tertulia.corpus import Corpus
from tertulia.errors import FormatError
from tertulia.federation import fields
from tertulia.federation.party.host import PartyConfig
from tertulia.federation.server.handle import Handle, Terms
from tertulia.federation.server.sum_journal import SumJournal
from tertulia.federation.types import Nothing, Planned, message, step
from tertulia.methods.common.contributions import counted_or_none
from tertulia.privacy.mechanisms import Clear, Public
from tertulia.runs.directory import Run, drive
from tertulia.runs.driver import settings_of, terms_of
from tertulia.runs.one_machine import begin
from tertulia.runs.plan import plan_of
from tertulia.runs.settings import RunSettings

CELLS = 23


@message
class Task:
    round: Annotated[int, fields.Capped("max_rounds")]
    size: Annotated[int, fields.Between(0, 1 << 62)] = 100  # of the largest number


@message
class Numbers:
    counts: Annotated[Array, fields.Numbers(("*",), "iu")]
    shares: Annotated[Array, fields.Numbers(("*", "*"), "f", scale=20)]
    one: fields.Scalar


@message
class Mean:
    value: fields.Gradient
    weight: fields.ReplyWeight


@message
class Sent:
    place: tuple
    counts: Array


@message
class Kept:
    latest: Sent
    counted: Sent | None


@message
class Change:
    counts: fields.LengthChange


@message
class Score:
    value: fields.Scalar


@message
class State:
    round: int
    totals: tuple
    counts: Array


def numbers_of(name: str, round_: int, size: int = 100):
    """What a party holds in a round."""
    rng = np.random.default_rng([round_, *name.encode()])
    counts = rng.integers(-size, size, CELLS, endpoint=True)
    return counts, rng.normal(size=(3, 4)), float(len(name)) + round_


@step
def contribute(party, state, ask: Task) -> tuple[object, Numbers]:
    counts, shares, one = numbers_of(party.id, ask.round, ask.size)
    what = Clear("numbers")
    return state, Numbers(party.release(counts, what), party.release(shares, what), party.release(np.array(one), what))


@step
def average(party, state, ask: Task) -> tuple[object, Mean]:
    counts, _, _ = numbers_of(party.id, ask.round)
    weight = np.array(float(2 + len(party.id)))
    return state, Mean(
        party.release(counts / 8, Clear("numbers")), party.release(weight, Public("number of documents"))
    )


@step(replies="changes")
def change(party, state, ask: Task) -> tuple[Kept, Change]:
    held = counted_or_none(party, state)
    counts = np.abs(numbers_of(party.id, ask.round)[0])
    before = np.zeros_like(counts) if held is None else held.counts
    return Kept(Sent(party.place, counts), held), Change(party.release(counts - before, Clear("changes")))


@step(metric=True, replies="standing")
def rate(party, state, ask: Task) -> tuple[object, Score]:
    return state, Score(party.release(np.array(numbers_of(party.id, ask.round)[2]), Clear("scores", metric=True)))


@step
def tell(party, state, ask: Task) -> tuple[object, Change]:
    return state, Change(party.release(np.abs(numbers_of(party.id, ask.round)[0]), Clear("notes")))


@step(names_words=True)
def read_notes(party, state, ask: Nothing) -> tuple[object, Change]:
    total = sum(note.counts for note in party.notes(tell).values())
    return state, Change(party.release(total, Clear("notes")))


@step
def show(party, state, ask: Task) -> tuple[object, Change]:
    return state, Change(party.release(numbers_of(party.id, ask.round)[0], Clear("numbers")))


@step
def keep_task(party, state, ask: Task) -> tuple[Kept, Change]:
    """Keep the task in the party's state, as gFedNTM keeps its weights."""
    return Kept(Sent(party.place, np.array([ask.round])), None), Change(
        party.release(np.zeros(CELLS, np.int64), Clear("changes"))
    )


@step
def contribute_kept(party, state, ask: Nothing) -> tuple[object, Change]:
    """Send numbers that depend on the task in the party's state; the question says nothing."""
    counts = np.abs(numbers_of(party.id, int(state.latest.counts[0]))[0])
    return state, Change(party.release(counts, Clear("changes")))


STEPS = (keep_task, contribute_kept, contribute, average, change, rate, tell, read_notes, show)


def plan(config) -> list[Planned]:
    sums = [(contribute, "sum", "numbers"), (change, "sum", "changes"), (tell, "relay", "notes")]
    sums += [(keep_task, "sum", "changes"), (contribute_kept, "sum", "changes")]
    each = [(read_notes, "each", "notes")]
    return [
        *(Planned(one, verb, Clear(what), 40) for one, verb, what in (*sums, *each)),
        Planned(rate, "sum", Clear("scores", metric=True), 40),
        Planned(average, "mean", Clear("numbers"), 40),
        Planned(average, "mean", Public("number of documents"), 40),
    ]


def train(fed, config, state):
    """In each round three sums, and a mean."""
    if state is None:
        fed.relay(tell, Task(0))
        notes = {reply.counts.tobytes() for reply in fed.each(read_notes, Nothing()).values()}
        if len(notes) != 1:
            raise FormatError("notes differ")
        state = fed.commit(State(0, (), np.zeros(CELLS, np.int64)), durable=config.get("durable", 1))
    while state.round < config["rounds"]:
        task = Task(state.round)
        total, counts = fed.sum(contribute, task), fed.sum(change, task).counts
        mean, score = fed.mean(average, task).value, float(fed.sum(rate, task).value)
        totals = (*state.totals, (total.counts, total.shares, total.one, mean, score, tuple(fed.answered)))
        state = State(state.round + 1, totals, state.counts + counts)
        state = fed.commit(state, durable=config.get("durable", 1))
    return state


def begun(directory, n=5, *, rounds=3, durable=1, **settings) -> Run:
    """A run of n parties with secure sums that has not started."""
    corpora = {name: Corpus.from_texts(["a b", "b c"]) for name in names(n)}
    method = {"name": "custom", "module": __name__, "config": {"rounds": rounds, "durable": durable}}
    federation = {"secure": True, "quorum": 0.1, **settings.pop("federation", {})}
    run = begin(RunSettings(directory=str(directory), method=method, federation=federation, **settings), corpora)
    for party in run.parties:  # so that ledgers can be compared
        home = run.party_directory(party)
        dataclasses.replace(PartyConfig.load(home), noise_key="42" * 32).save(home)
    return run


def names(n):
    return [f"party{'x' * (i % 3)}{i}" for i in range(n)]


def sums_of(run) -> SumJournal:
    """The server's journal of masked sums of a run."""
    return SumJournal(run.directory / "server" / "sums", durable=False)


def handle_of(run, transport, **terms) -> Handle:
    """The server's handle of a run, after the members have agreed on keys."""
    settings = settings_of(run)
    handle = Handle(
        run.id, transport, run.journal(), terms_of(settings) if not terms else Terms(**terms),
        plan=plan_of(settings, run.parties, run.keys),
    )  # fmt: skip
    handle.prepare()
    return handle


def finished(run, transport=None):
    """Drive a run to its end; the last state."""
    transport = transport or run.transport("local", 1)
    try:
        return drive(handle_of(run, transport), train, settings_of(run).method.config)
    finally:
        transport.close()
