"""Hostile questions to every step of every method: questions of a real server with changed numbers, shapes and kinds.

Small federations run once, and every question to one of their parties is recorded. Then these questions are changed and
sent again to the same party, in any order, as a malicious server could do. The host must not raise, a step must not
fail with an unexpected exception (such failures are logged with their traceback), and the process must not die.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import random
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load, save

from benchmarks.door.mutations import holders, mutate, mutate_tree
from tertulia._arrays import Array
from tertulia.corpus import Corpus
from tertulia.federation.codec import decode
from tertulia.federation.messages import Answer, Question, read_frame
from tertulia.federation.packing import PartyPacking
from tertulia.federation.party.host import PartyHost
from tertulia.federation.server.handle import Handle
from tertulia.runs.directory import drive
from tertulia.runs.driver import _method_of, terms_of
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

Case = Callable[[random.Random], str | None]
_PARTY = "a"
_SECONDS = 60  # for one question; a longer one counts as a death
_WORDS = ["rain", "sun", "river", "bridge", "ship", "storm", "harbour", "letter", "winter", "market"]
_LISTED = {"mode": "public", "words": _WORDS}
_SMALL = {"topics": 3, "rounds": 2, "sweeps": 1, "vocabulary": {"min_documents": 1, "max_share": 1.0}}
_SOUND = {**_SMALL, "mode": "sound", "epsilon": 4.0, "vocabulary": _LISTED}
_NEURAL = {"name": "gfedntm", "topics": 3, "hidden": [4, 4], "epochs": 1, "batch_size": 8, "vocabulary": _LISTED}
METHODS: dict[str, dict[str, Any]] = {
    "consensus": {"name": "consensus", **_SMALL},
    "consensus, sound": {"name": "consensus", **_SOUND},
    "ftm": {"name": "ftm", **_SMALL},
    "ftm, sound": {"name": "ftm", **_SOUND},
    "fedlda": {"name": "fedlda", **_SMALL},
    "fedlda, sound": {"name": "fedlda", **_SOUND},
    "pctd": {"name": "pctd", "topics": 3, "rounds": 2, "vocabulary": _SMALL["vocabulary"]},
    "alone": {"name": "alone", "topics": 3, "sweeps": 2, "vocabulary": _SMALL["vocabulary"]},
    "gfedntm": {**_NEURAL, "validation": 0.25},
    "gfedntm, fedavg": {**_NEURAL, "averaging": "fedavg", "local_steps": 2},
    "gfedntm, blocks": {**_NEURAL, "paper": {"keep": 0.5}},
    "gfedntm, alone": {**_NEURAL, "scenario": "alone"},
}


class Recorded(NamedTuple):
    """A party, and the questions to it."""

    host: PartyHost
    questions: list[Question]


class _Recorder:
    """A transport that keeps one party's frames."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.frames: list[bytes] = []

    @property
    def parties(self) -> Any:
        return self._transport.parties

    def ask(self, frames: Mapping[str, bytes], timeout: float | None, enough: int | None = None) -> dict[str, bytes]:
        self.frames += [frames[_PARTY]] if _PARTY in frames else []
        found: dict[str, bytes] = self._transport.ask(frames, timeout)
        return found

    def close(self) -> None:
        self._transport.close()


class _Watch(logging.Handler):
    """Handler that keeps the exceptions that a host has logged."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0] is not None:
            trace = record.exc_info[2]
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else ""
            self.seen.append(f"{record.exc_info[0].__name__} at {where}: {record.exc_info[1]}"[:200])


def warm_up(target: str) -> None:
    """Make the allocations that last, before memory is limited."""
    warnings.simplefilter("ignore")
    import tertulia.models.neural.network  # noqa: F401


def prepare(target: str, folder: Path, methods: tuple[str, ...] = tuple(METHODS)) -> Case:
    """Return a function that asks one hostile question and returns what went wrong, or None."""
    logging.disable(logging.NOTSET)
    watch, party_log = _Watch(), logging.getLogger("tertulia.party")
    party_log.addHandler(watch)
    party_log.propagate = False
    recorded = [record(name, folder / str(i)) for i, name in enumerate(methods)]
    ordinal = [0]

    def case(rng: random.Random) -> str | None:
        one = rng.choice(recorded)
        question = rng.choice(one.questions)
        ordinal[0] += 1
        place = (1000, ordinal[0] % 900_000)
        body = change_body(question.body, rng)
        frame = Question(question.run, place, one.host.answers.latest, 0, False, body).to_bytes()
        watch.seen.clear()
        faulthandler.dump_traceback_later(_SECONDS, exit=True)
        try:
            answer = decode(one.host.answer(frame))
        except Exception as error:
            return f"{type(error).__name__} out of the host: {error}"
        finally:
            faulthandler.cancel_dump_traceback_later()
        if not isinstance(answer, Answer):
            return f"a {type(answer).__name__} for an answer"
        return f"{json.loads(_tree(question.body))['fields']['step']}: {watch.seen[0]}" if watch.seen else None

    return case


def record(name: str, folder: Path) -> Recorded:
    """Run a small federation, and record the questions to one party."""
    corpora = {party: Corpus.from_texts(_texts(i)) for i, party in enumerate("ab")}
    settings = RunSettings(directory=str(folder), method=METHODS[name], heldout=0.2, seed=1)
    run = begin(settings, corpora, durable=False)
    with closing(run.transport("local", 1, corpora)) as transport:
        recorder = _Recorder(transport)
        train, config = _method_of(settings)
        drive(Handle(run.id, recorder, run.journal(), terms_of(settings)), train, config)
    asked, packing = [], PartyPacking()
    for frame in recorder.frames:
        question = read_frame(frame)
        if isinstance(question, Question) and question.body:
            asked.append(packing.unpack(question))
            packing.keep(asked[-1], asked[-1].content.ask())
    host = PartyHost(run.party_directory(_PARTY), corpora[_PARTY])
    host.__dict__["answers"] = transport.hosts[_PARTY].answers  # type: ignore[attr-defined]
    return Recorded(host, asked)


def _texts(party: int) -> list[str]:
    rng = random.Random(party)
    return [" ".join(rng.choices(_WORDS, k=12)) + "." for _ in range(24)]


def change_body(body: bytes, rng: random.Random) -> bytes:
    """Change a question's message: its tree, its arrays, or its bytes."""
    way = rng.random()
    if way < 0.05:
        return mutate(body, rng)
    tensors = {name: np.array(array) for name, array in load(body).items()}
    tree = _tree(body)
    if way < 0.25 and tensors:
        tree, tensors = _change_together(json.loads(tree), tensors, rng)
    elif way < 0.6 or not tensors:
        tree = json.dumps(mutate_tree(json.loads(tree), rng))
    if way > 0.5 and tensors:
        name = rng.choice(list(tensors))
        tensors[name] = _change_array(tensors[name], rng)
    return bytes(save(tensors, metadata={"tertulia": tree}))


def _change_together(tree: Any, tensors: dict[str, Array], rng: random.Random) -> tuple[str, dict[str, Array]]:
    """Change a question so that its parts still match: more or fewer topics or words, other magnitudes."""
    length = rng.choice([size for array in tensors.values() for size in array.shape] or [1])
    other = rng.randrange(1, length + 4)
    for name, array in tensors.items():
        for axis, size in enumerate(array.shape):
            array = np.take(array, np.arange(other) % size, axis=axis) if size == length and size else array
        tensors[name] = np.ascontiguousarray(_scaled(array, rng) if rng.random() < 0.3 else array)
    for holder, key in list(holders(tree)):
        if key == "words" and isinstance(holder[key], list) and len(holder[key]) == length:
            holder[key] = [*holder[key], "snow", "ice", "fog"][:other]
        elif key == "topics" and holder[key] == length:
            holder[key] = other
    return json.dumps(tree), tensors


def _scaled(array: Array, rng: random.Random) -> Array:
    """Return the same kind of numbers, but empty, tiny or huge."""
    if array.dtype.kind != "f":
        return np.full_like(array, rng.choice((0, 1, min(2**30, np.iinfo(array.dtype).max))))
    with np.errstate(over="ignore"):
        found: Array = array * np.array(rng.choice((0.0, 1e-300, 1e-30, 1e9, 1e30, 1e300, -1.0))).astype(array.dtype)
    return found


def _tree(body: bytes) -> str:
    size = int.from_bytes(body[:8], "little")
    return str(json.loads(body[8 : 8 + size])["__metadata__"]["tertulia"])


def _change_array(array: Array, rng: random.Random) -> Array:
    """Return an array of another shape or kind, or with other numbers."""
    way = rng.randrange(7)
    if way == 0:
        return np.ascontiguousarray(array.T)
    if way == 1:
        return np.ascontiguousarray(array[..., : rng.randrange(max(array.shape[-1], 1))]) if array.ndim else array[None]
    if way == 2:
        return np.concatenate([array, array], axis=rng.randrange(array.ndim)) if array.ndim else np.zeros(0)
    if way == 3:
        return array.astype(rng.choice((np.int8, np.int32, np.int64, np.uint64, np.float16, np.float64, np.bool_)))
    if way == 4:
        return rng.choice((np.zeros(0), np.zeros((0, 3)), np.array(3.0), np.zeros((1, 1, 1)), array.ravel()))
    found = array.astype(np.float64 if way == 5 else array.dtype).ravel()
    odd = (np.nan, np.inf, -1.0, 1e300, -1e300, 2.0**40) if way == 5 else (-1, 127, 0, 1)
    for _ in range(rng.choice((1, 3, found.size)) if found.size else 0):
        found[rng.randrange(found.size)] = np.array(rng.choice(odd)).astype(found.dtype)
    return found.reshape(array.shape)
