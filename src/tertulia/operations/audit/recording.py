"""A run whose parties record what their mechanisms are fed, what leaves them, and which reports are drawn.

All of it happens in a directory that is thrown away: parties have other homes there, other keys and other ledgers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.corpus import Corpus
from tertulia.errors import InputError
from tertulia.federation.codec import decode
from tertulia.federation.engines.local import LocalTransport
from tertulia.federation.messages import Ask, Question
from tertulia.federation.party.context import Released, StepContext
from tertulia.federation.party.host import PartyHost
from tertulia.federation.secure.messages import MaskedReply
from tertulia.federation.types import PartyId, Randomness
from tertulia.privacy.audit.inputs import promises
from tertulia.privacy.mechanisms import Mechanism, Randomiser
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings


class Noisy(NamedTuple):
    """One release under noise: what the mechanism was fed, and what left."""

    mechanism: Mechanism
    fed: Array
    left: Array


class Drawn(NamedTuple):
    """Reports of tokens that a step has drawn: from which documents, by which keys."""

    mechanism: Randomiser
    corpus: Corpus
    randomness: Randomness


@dataclass
class Recording:
    """Everything that happened at one party, in order."""

    directory: Path
    asked: list[tuple[Question, Ask]] = field(default_factory=list)
    noisy: list[Noisy] = field(default_factory=list)
    drawn: list[Drawn] = field(default_factory=list)
    masks: list[bytes] = field(default_factory=list)  # of masked replies, to different questions


class _RecordingContext(StepContext):
    """A step's context that also records."""

    recording: Recording

    def release(self, x: Array, mechanism: Mechanism) -> Array:
        """Release, and record what is noisy."""
        left = super().release(x, mechanism)
        if promises(mechanism):
            self.recording.noisy.append(Noisy(mechanism, np.array(x), np.array(left)))
        return left

    def randomise(
        self, corpus: Corpus, mechanism: Randomiser, drawn_from: tuple[Array, ...] | None = None
    ) -> Randomness:
        """Draw reports, and record them."""
        randomness = super().randomise(corpus, mechanism, drawn_from)
        self.recording.drawn.append(Drawn(mechanism, corpus, randomness))
        return randomness


class RecordingHost(PartyHost):
    """A party that records."""

    def __init__(self, directory: Path, corpus: Corpus) -> None:
        super().__init__(directory, corpus)
        self.recording = Recording(directory)
        self._answered: set[bytes] = set()

    def context(self, question: Question, ask: Ask) -> StepContext:
        """Return a context that records."""
        self.recording.asked.append((question, ask))
        found = _RecordingContext(self, question, ask)
        found.recording = self.recording
        return found

    def answer(self, frame: bytes) -> bytes:
        """Answer, and record the mask where zeros are masked."""
        answer = super().answer(frame)
        if self.secure is not None:
            masked = decode(answer).reply
            if isinstance(masked, MaskedReply) and masked.digest.tobytes() not in self._answered:
                self._answered.add(masked.digest.tobytes())
                self.recording.masks.append(masked.zeros.tobytes())
        return answer


class _Dry(StepContext):
    """A step's context in which nothing leaves: it keeps what mechanisms are fed, and all units are sampled."""

    fed: list[Array]

    def release(self, x: Array, mechanism: Mechanism) -> Array:
        """Keep the input of a noisy mechanism; return the array itself."""
        if promises(mechanism):
            self.fed.append(np.array(x))
        found = np.array(x).view(Released)
        found.release_id = "dry"
        return found

    def sample(self, rate: float, contents: Sequence[Array], n: int) -> Array:
        """Choose all units: a step is linear in those that take part."""
        return np.arange(n)

    def keep(self, name: str, **arrays: Array) -> None:
        """Keep nothing."""

    def notice(self, text: str) -> None:
        """Say nothing."""


def record(settings: RunSettings, corpora: Mapping[PartyId, Corpus]) -> dict[PartyId, Recording]:
    """Run a federation on these documents in `settings.directory`, and return what each party recorded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about a model that nobody will use
        run = begin(settings, corpora, durable=False)
        hosts = [RecordingHost(run.party_directory(party), corpora[party]) for party in run.parties]
        try:
            finish(run, corpora, transport=LocalTransport(hosts))
        except InputError:  # nothing can be learned from so few documents: what left until then is audited
            if not any(host.recording.asked for host in hosts):
                raise
    return {host.config.id: host.recording for host in hosts}


def inputs_of(recording: Recording, corpus: Corpus) -> list[Array]:
    """Ask the recorded questions of a party that has other documents; return what its noisy mechanisms are fed."""
    host, fed = PartyHost(recording.directory, corpus), list[Array]()
    state: Any = None
    for question, ask in recording.asked:
        context = _Dry(host, question, ask)
        context.fed = fed
        state, _ = host.steps[ask.step](context, state, ask.message)
    return fed
