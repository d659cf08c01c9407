"""Bytes on the wire, relative to dense float32: K x V x 4 bytes for each party and round, each way.

Consensus over 23 parties of 300 documents of 20 Newsgroups each (V = 9,900, K = 40, 8 rounds), and over its six
super-groups as parties; the other methods over the six, for information. `bytes_over_dense` is over the rounds in which
parties count together; `with_start` includes the questions before them: words, and the parties' first models. A run
that is scored after each round sends a second model down each time: `consensus_6_scored`.

`packing_ms_per_round` is the median CPU time that one of the 23 parties needs per round to unpack its questions and to
pack its answers. `beyond_tokens_ms` is all of its time in a round except sampling: reading, checking, charging the
ledger, hashing and storing.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np

from benchmarks.common import arguments, finish, newsgroups, say
from benchmarks.federation.parties import natural
from tertulia import FTM, PCTD, Consensus, Corpus, FedLDA, GFedNTM
from tertulia.federation.messages import Question, read_frame
from tertulia.federation.packing import PartyPacking, size_of
from tertulia.federation.party import host
from tertulia.kernels import lda
from tertulia.kernels.lda import blocked
from tertulia.runs.directory import Run

PARTIES, DOCUMENTS, TOPICS, ROUNDS = 23, 300, 40, 8
MANY = {"min_documents": 5, "max_words": 9_900}
FEW = {"min_documents": 10, "max_share": 0.5, "max_words": 8_000}
Figures = dict[str, Any]


def many_parties(corpus: Corpus) -> dict[str, Corpus]:
    """Draw the parties' documents at random."""
    order = np.random.default_rng(0).permutation(corpus.n_documents)
    return {f"p{i:02d}": corpus.select(np.sort(order[i * DOCUMENTS : (i + 1) * DOCUMENTS])) for i in range(PARTIES)}


# --- what is measured ---------------------------------------------------------------------------------------------


class _CountingTransport:
    """A transport that counts the bytes of messages, and the packed bytes that travel for them."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.message = self.wire = 0

    @property
    def parties(self) -> Any:
        return self._transport.parties

    def ask(self, frames: Mapping[str, bytes], timeout: float | None) -> dict[str, bytes]:
        answers: dict[str, bytes] = self._transport.ask(frames, timeout)
        for frame in frames.values():
            asked = read_frame(frame)
            packed = asked.body if isinstance(asked, Question) else b""
            self.message += len(frame) - len(packed) + size_of(packed)
            self.wire += len(frame)
        self.message += sum(map(size_of, answers.values()))
        self.wire += sum(map(len, answers.values()))
        return answers

    def close(self) -> None:
        self._transport.close()


class Clock:
    """CPU seconds of the thread that answers, by kind of work and by question."""

    def __init__(self) -> None:
        self.questions: list[dict[str, float]] = []
        self.running: dict[str, float] = defaultdict(float)

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its time is measured."""

        def run(*given: Any, **named: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*given, **named)
            finally:
                self.running[name] += time.thread_time() - start

        return run

    def by_question(self, answer: Callable[..., bytes]) -> Callable[..., bytes]:
        """Wrap a party's answers so that the times of each question are kept apart."""

        def run(*given: Any) -> bytes:
            self.running.clear()
            try:
                return answer(*given)
            finally:
                self.questions.append(dict(self.running))

        return run

    def of_rounds(self) -> list[dict[str, float]]:
        """Return the times of the questions in which tokens were sampled."""
        return [times for times in self.questions if "sampling" in times]


@contextmanager
def measured() -> Iterator[tuple[list[_CountingTransport], Clock]]:
    """Install the counting transport and the clock in runs of this process."""
    transports: list[_CountingTransport] = []
    clock, transport, answer = Clock(), Run.transport, host.PartyHost.answer
    timed: list[tuple[Any, str]] = [(blocked, "run_beside"), (lda, "init_from_topics")]
    timed += [(PartyPacking, name) for name in ("unpack", "pack", "keep")]
    before = {(place, name): getattr(place, name) for place, name in timed}

    def laid(run: Run, *given: Any) -> Any:
        transports.append(_CountingTransport(transport(run, *given)))
        return transports[-1]

    Run.transport = laid  # type: ignore[assignment, method-assign]
    host.PartyHost.answer = clock.by_question(clock.timed("all", answer))  # type: ignore[method-assign]
    for (place, name), function in before.items():
        setattr(place, name, clock.timed("packing" if place is PartyPacking else "sampling", function))
    try:
        yield transports, clock
    finally:
        Run.transport, host.PartyHost.answer = transport, answer  # type: ignore[method-assign]
        for (place, name), function in before.items():
            setattr(place, name, function)


def measure(name: str, method: Any, parties: Mapping[str, Corpus], start: int = 1, **run: Any) -> Figures:
    """Measure one run: bytes up and down over dense float32, after the first `start` commits and with them."""
    with measured() as (transports, clock):
        model = method.fit(parties, seed=1, **{"heldout": 0.0, **run})
    dense = 4.0 * model.topic_word.size
    rounds = [facts["bytes"].values() for facts in model.history]
    each = [[[b[way] / dense for b in one] for one in rounds] for way in (1, 0)]  # up, down
    counted = len(rounds) - start
    found: Figures = {
        "over_dense": [float(np.mean([share for one in way[start:] for share in one])) for way in each],
        "with_start": [float(sum(map(sum, one)) / len(parties) / counted) for one in each],
        "worst_round": [float(max(map(max, one[start:]))) for one in each],
        "words": model.topic_word.shape[1],
        "megabytes": [model.communication.bytes_up / 1e6, model.communication.bytes_down / 1e6],
        "wire_over_message": transports[0].wire / transports[0].message,
    }
    if times := clock.of_rounds():
        found["packing_ms"] = 1e3 * median(one.get("packing", 0.0) for one in times)
        found["beyond_tokens_ms"] = 1e3 * median(one["all"] - one["sampling"] for one in times)
    up, down = found["over_dense"]
    say(f"{name}: {up:.3f} of dense up, {down:.3f} down, {found['wire_over_message']:.3f} of the messages; {found}")
    return found


# --- the runs -----------------------------------------------------------------------------------------------------


def run(quick: bool) -> Figures:
    """Measure; `quick` takes fewer documents for all but the 23 parties, whose size the bound is for."""
    corpus = newsgroups(min_documents=1, max_share=1.0, label="party")
    six = natural(corpus.split(0.25, seed=1)[1] if quick else corpus)
    fewer = natural(corpus.split(0.1, seed=1)[1])
    counting: Figures = {"topics": TOPICS, "rounds": ROUNDS, "evaluate": False}
    found = {
        "consensus_23": measure("consensus_23", Consensus(**counting, vocabulary=MANY), many_parties(corpus)),
        "consensus_6": measure("consensus_6", Consensus(**counting, vocabulary=FEW), six),
        "consensus_6_scored": measure(
            "consensus_6_scored", Consensus(**{**counting, "evaluate": True}, vocabulary=FEW), six, heldout=0.15
        ),
        "ftm_6": measure("ftm_6", FTM(topics=20, rounds=3, sweeps=10, vocabulary=FEW, evaluate=False), six),
        "fedlda_6": measure("fedlda_6", FedLDA(topics=20, rounds=5, vocabulary=FEW, evaluate=False), fewer),
        "pctd_6": measure("pctd_6", PCTD(topics=20, rounds=5, vocabulary=FEW, evaluate=False), fewer),
        "gfedntm_6": measure("gfedntm_6", GFedNTM(topics=20, rounds=12, vocabulary=FEW), fewer),
    }
    return {
        "bytes_over_dense": {name: one["over_dense"] for name, one in found.items()},
        "bytes_over_dense_with_start": {name: one["with_start"] for name, one in found.items()},
        "bytes_over_dense_worst_round": {name: one["worst_round"] for name, one in found.items()},
        "wire_over_message": found["consensus_23"]["wire_over_message"],
        "wire_over_message_by_run": {name: one["wire_over_message"] for name, one in found.items()},
        "packing_ms_per_round": found["consensus_23"]["packing_ms"],
        "beyond_tokens_ms_per_round": found["consensus_23"]["beyond_tokens_ms"],
        "megabytes": {name: one["megabytes"] for name, one in found.items()},
    }


if __name__ == "__main__":
    finish({"benchmark": "engines_bytes", **run(arguments("What travels, beside dense float32").quick)})
