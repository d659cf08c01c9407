"""Recording what mechanisms are fed at a party, and replaying its steps on neighbours of its documents.

A `RecordedHost` gives its steps contexts that note the input of every mechanism. When a step ends, it runs again for
each neighbour, in a context that returns the outputs of the recording. So all that a step sees of earlier releases is
the same on both data sets, and so are questions, seeds and secret samples: what still differs comes from the documents.
Nothing is charged for a replay, and nothing leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.corpus import Corpus
from tertulia.federation.messages import Ask, Question
from tertulia.federation.party import reports
from tertulia.federation.party.context import Released, StepContext
from tertulia.federation.party.host import PartyHost
from tertulia.federation.types import PartyId, Place, Randomness, Step
from tertulia.privacy.audit.inputs import Difference, Fed, Found, Violation, promises
from tertulia.privacy.home import Home
from tertulia.privacy.mechanisms import Derived, Mechanism, Public, Randomiser

if TYPE_CHECKING:
    from tertulia.federation.party.secure_member import SecureMember


@dataclass(frozen=True)
class Neighbour:
    """Another data set of a party, and how it differs."""

    name: str
    corpus: Corpus
    difference: Difference


class Recorded(NamedTuple):
    """One use of a mechanism, and what came out of it."""

    fed: Fed
    outcome: Any  # a released array, or the keys of reports


class _Sample(NamedTuple):
    """The units of a secret sample, and the number of units it was drawn from."""

    chosen: Array
    units: int


class _Diverged(Exception):
    """A replay that can go no further."""


SAMPLE = "a secret sample"


class RecordingContext(StepContext):
    """The context of a step that notes what its mechanisms are fed."""

    def __init__(self, recorder: Recorder, host: PartyHost, question: Question, ask: Ask) -> None:
        super().__init__(host, question, ask)
        self._recorder = recorder
        self.uses: list[Recorded] = []
        self.samples: list[_Sample] = []
        self.members_notes: dict[Step, dict[PartyId, Any]] = {}
        self.reply: Any = None

    def release(self, x: Array, mechanism: Mechanism) -> Array:
        """Release, and note the input."""
        released = super().release(x, mechanism)
        fed = Fed(mechanism, (np.array(x),), self.source_of(released), self._recorder.is_promised(mechanism))
        self._recorder.note(fed, self.source_of(released))
        self.uses.append(Recorded(fed, released))
        return released

    def randomise(
        self, corpus: Corpus, mechanism: Randomiser, drawn_from: tuple[Array, ...] | None = None
    ) -> Randomness:
        """Charge for reports, and note what they are drawn from."""
        made = super().randomise(corpus, mechanism, drawn_from)
        noise = _noise_of(corpus, self._host)
        fed = Fed(mechanism, tuple(map(np.array, made.drawn_from)), noise, promises(mechanism))
        self._recorder.note(fed, *made.parents)
        self.uses.append(Recorded(fed, made))
        return made

    def sample(self, rate: float, contents: Sequence[Array], n: int) -> Array:
        """Choose units, and note them."""
        chosen = super().sample(rate, contents, n)
        self.samples.append(_Sample(chosen, n))
        return chosen

    def notes(self, step: Step) -> dict[PartyId, Any]:
        """Return the members' notes, which the host may forget later."""
        self.members_notes[step] = super().notes(step)
        return self.members_notes[step]

    def prepare_reply(self, reply: Any) -> Any:
        """Check the reply, then run the step for all neighbours."""
        prepared = super().prepare_reply(reply)
        self.reply = reply
        self._recorder.replay(self, self._question, self._ask, self._host.steps[self._ask.step])
        return prepared


class _ReplayContext(StepContext):
    """The context of a step on a neighbour's documents: its releases are those of the recording."""

    def __init__(self, shadow: Shadow, recording: RecordingContext) -> None:
        super().__init__(shadow.host, recording._question, recording._ask)
        self._shadow, self._recording = shadow, recording
        self._uses, self._samples = iter(recording.uses), iter(recording.samples)

    def release(self, x: Array, mechanism: Mechanism) -> Array:
        """Compare the input, and return the recorded output."""
        x = np.asarray(x)
        known = self._next(mechanism)
        self._compare(known.fed, Fed(mechanism, (x,), self._release_id(x, mechanism)))
        self._count += 1
        return _fitted(known.outcome, len(x)) if mechanism.grows else known.outcome

    def randomise(
        self, corpus: Corpus, mechanism: Randomiser, drawn_from: tuple[Array, ...] | None = None
    ) -> Randomness:
        """Compare what reports would be drawn from, and return the keys and the inputs of the recording."""
        given = (corpus.words, corpus.documents) if drawn_from is None else drawn_from
        known = self._next(mechanism)
        noise = _noise_of(corpus, self._host)
        self._compare(known.fed, Fed(mechanism, given, noise))
        made: Randomness = known.outcome
        return made

    def sample(self, rate: float, contents: Sequence[Array], n: int) -> Array:
        """Choose the same units; those that only the neighbour has take part, so that they count."""
        known = next(self._samples, None)
        if known is None:
            self.note(Found("releases"), SAMPLE)
            raise _Diverged
        return np.concatenate([known.chosen[known.chosen < n], np.arange(min(known.units, n), n)])

    def notes(self, step: Step) -> dict[PartyId, Any]:
        """Return the recorded notes."""
        return self._recording.members_notes[step]

    def agree_to_words(self, tags: Array) -> None:
        """Record nothing: the recorded step has."""

    def keep(self, name: str, **arrays: Array) -> None:
        """Store arrays in memory."""
        self._shadow.kept[name] = {key: np.array(value) for key, value in arrays.items()}

    def kept(self, name: str) -> dict[str, Array]:
        """Return the arrays that `keep` stored."""
        return self._shadow.kept[name]

    def check_end(self, reply: Any) -> None:
        """Raise unless everything that was recorded was asked for, and stands in the same fields."""
        left = next(self._uses, None)
        if left is not None:
            self.note(Found("releases"), left.fed.mechanism.what)
            raise _Diverged
        self.prepare_reply(reply)
        for name, value in vars(self._recording.reply).items():
            if getattr(getattr(reply, name, None), "release_id", None) != value.release_id:
                self.note(Found("reply"), name)

    def _next(self, mechanism: Mechanism) -> Recorded:
        known = next(self._uses, None)
        if known is None or (known.fed.mechanism.name, known.fed.mechanism.what) != (mechanism.name, mechanism.what):
            self.note(Found("releases"), mechanism.what)
            raise _Diverged
        return known

    def note(self, found: Found, what: str) -> None:
        """Note a difference that no promise allows."""
        self._shadow.note(found, self.place[0], self._ask.step.rpartition(".")[2], what)

    def _compare(self, known: Fed, found: Fed) -> None:
        how = self._shadow.neighbour.difference
        for unpromised in known.compare(found, how):
            self.note(unpromised, found.mechanism.what)
        self._shadow.recorder.count(*known.distances(found, how), known)


class Shadow:
    """A party on a neighbour of its documents, beside the recorded run."""

    def __init__(self, recorder: Recorder, host: PartyHost, neighbour: Neighbour) -> None:
        self.recorder, self.neighbour = recorder, neighbour
        self.host = _ShadowHost(host, neighbour.corpus)
        self.kept: dict[str, dict[str, Array]] = {}
        self._states: dict[Place, Any] = {}
        self._ended = False

    def run(self, recording: RecordingContext, step: Step, question: Question, message: Any) -> None:
        """Run a step on the neighbour's documents, with the state that the neighbour has by then."""
        if self._ended:
            return
        self._states = {place: state for place, state in self._states.items() if place <= question.previous}
        before = self._states[max(self._states)] if self._states else None
        context = _ReplayContext(self, recording)
        try:
            self._states[question.place], reply = step(context, before, message)
            context.check_end(reply)
        except _Diverged:
            self._ended = True
        except Exception as error:
            context.note(Found("failure"), type(error).__name__)
            self._ended = True

    def note(self, found: Found, round_: int, step: str, what: str) -> None:
        """Note a violation."""
        name = self.neighbour.name
        self.recorder.violations.append(Violation(found.kind, name, step, what, round_, *found[1:]))


class Recorder:
    """The record of one party's run, and of its replays on neighbours."""

    def __init__(self, host: RecordedHost, neighbours: Sequence[Neighbour], *, exposed: bool = False) -> None:
        self._exposed = exposed  # does the run send documents' contents without noise? Then nothing is public of them
        self.violations: list[Violation] = []
        self.unpromised: set[str] = set()  # what leaves without noise
        self.compared = 0
        self.closest = 0.0  # the largest part of a declared sensitivity that an input has moved
        self._promised: dict[str, bool] = {}  # release id -> whether noise protects it
        self._shadows = [Shadow(self, host, neighbour) for neighbour in neighbours]
        host.recorder = self

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The names of the neighbours."""
        return tuple(shadow.neighbour.name for shadow in self._shadows)

    def is_promised(self, mechanism: Mechanism) -> bool:
        """Return whether a promise speaks of the input of a release."""
        if isinstance(mechanism, Derived):
            ids = (str(getattr(parent, "release_id", parent)) for parent in mechanism.parents)
            return all(self._promised.get(id_, True) for id_ in ids)
        return not self._exposed if isinstance(mechanism, Public) else promises(mechanism)

    def note(self, fed: Fed, *ids: str) -> None:
        """Note a use of a mechanism, by the names of what came out of it."""
        self._promised |= dict.fromkeys(ids, fed.promised)
        if not fed.promised and fed.mechanism.charge() is not None:
            self.unpromised.add(fed.mechanism.what)

    def count(self, declared: float, observed: float, known: Fed) -> None:
        """Count a comparison."""
        self.compared += known.promised
        if known.promised and declared > 0:
            self.closest = max(self.closest, observed / declared)

    def replay(self, recording: RecordingContext, question: Question, ask: Ask, step: Step) -> None:
        """Run a step that has ended for all neighbours."""
        for shadow in self._shadows:
            shadow.run(recording, step, question, ask.message)


class RecordedHost(PartyHost):
    """A party's host that records, once it has a recorder."""

    recorder: Recorder | None = None

    def context(self, question: Question, ask: Ask) -> StepContext:
        """Return a context that records."""
        found = super().context(question, ask)
        return found if self.recorder is None else RecordingContext(self.recorder, self, question, ask)


class _ShadowHost(PartyHost):
    """A party's host with other documents: it has the recorded party's home and secrets, and charges nothing."""

    def __init__(self, host: PartyHost, corpus: Corpus) -> None:
        super().__init__(host.directory, corpus)
        self.pins = host.pins
        self._recorded = host

    @property
    def home(self) -> Home:
        """The recorded party's home, of which only the key is used."""
        return self._recorded.home

    @property
    def secure(self) -> SecureMember | None:
        """The recorded party's half of secure sums."""
        return self._recorded.secure

    def notice(self, text: str) -> None:
        """Write nothing: the recorded party has."""


def _noise_of(corpus: Corpus, host: PartyHost) -> str:
    """Return a name for the noise of reports of a corpus."""
    key = host.noise_key
    return reports.contents_name(reports.fingerprints_of(corpus, key), key)


def _fitted(released: Array, size: int) -> Array:
    """Return a release with a number for each of another data set's words; words that it lacks were not named."""
    fitted = np.zeros(size, released.dtype)
    fitted[: min(size, len(released))] = released[:size]
    found = fitted.view(Released)
    found.release_id = getattr(released, "release_id", None)
    return found
