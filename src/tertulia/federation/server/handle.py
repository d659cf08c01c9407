"""The `Federation` handle: everything that is not the algorithm and not the transport, once for all engines.

It numbers questions, leaves out who is absent, counts bytes, checks the quorum and commits. Replies are added up in
`aggregation`; an engine only carries frames (`Transport`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from tertulia.errors import PartyFailure, QuorumError
from tertulia.federation import faults
from tertulia.federation.engines.base import Transport
from tertulia.federation.messages import BEFORE_ALL, Answer, Place, Question, Verb, WordLists, body
from tertulia.federation.server.aggregation import add_replies, average_replies
from tertulia.federation.server.answers import MOST_DOCUMENTS, Asked, read_answer
from tertulia.federation.server.journal import Commit, Journal
from tertulia.federation.server.membership import Dropouts, Membership
from tertulia.federation.server.packed import Packing
from tertulia.federation.server.pulse import Pulse
from tertulia.federation.types import PartyId, Step, step_name

State = TypeVar("State")
Body = tuple[bytes, WordLists]
_PATIENCE = 3  # how often a party may have lost what it answered, before the run goes on without it
_NEW_RUN = Commit(round=0, state=None, answered={}, history=())


@dataclass(frozen=True)
class Terms:
    """The terms on which parties meet."""

    quorum: float = 0.5  # the share of members whose replies `sum` and `mean` need
    timeout: float | None = None  # seconds for an answer
    on_failure: str = "stop"  # or "skip": a party whose step fails, or whose reply cannot be, counts as absent
    max_documents: int = MOST_DOCUMENTS  # that a party may say it has
    dropouts: Dropouts = field(default_factory=Dropouts)
    membership: Mapping[PartyId, Membership] = field(default_factory=dict)


class RolledBack(Exception):
    """A party lost answers that need not have been durable: it died. One that is merely late keeps them."""


class Handle:
    """The server's side of the federation."""

    def __init__(
        self,
        run: str,
        transport: Transport,
        journal: Journal,
        terms: Terms | None = None,
        observe: Callable[[str, Mapping[str, Any]], None] | None = None,
        plan: str = "",
    ) -> None:
        self.run = run
        self.plan = plan  # the hash of what parties have agreed to
        self.terms = terms or Terms()
        self._transport = transport
        self._journal = journal
        self.observe = observe or (lambda kind, facts: None)
        self._started = time.monotonic()
        self._bytes: dict[PartyId, list[int]] = {}  # party -> [down, up] in this round
        self._weights: dict[PartyId, float] = {}  # in the last mean of this round
        self._durable = 0  # the round of the newest commit on disk
        self._lost: set[PartyId] = set()  # parties for which the run has gone back to that commit
        self._left_out: set[PartyId] = set()  # those that were lost again: they are asked after the next one
        self._packing = Packing()
        self._pulse = Pulse(journal.directory, beats=journal.durable)
        self._has_words: dict[PartyId, set[str]] = {}  # the fingerprints of lists that parties were sent
        self._behind: Counter[PartyId] = Counter()  # how often a party had lost what it answered
        self._silent: dict[PartyId, list[str]] = {}  # why parties did not answer
        self._begin(_NEW_RUN)

    # --- the four verbs -------------------------------------------------------------------------------------------

    @property
    def parties(self) -> list[PartyId]:
        """The members of this round."""
        member = self.terms.membership
        return [p for p in self._transport.parties if member.get(p, Membership()).present(self.round)]

    @property
    def answered(self) -> list[PartyId]:
        """Whose replies the last question got."""
        return self._heard

    @property
    def absent(self) -> dict[PartyId, str]:
        """Parties that have never answered anything, and why not, as far as they said."""
        never = (p for p in self._transport.parties if p not in self._answered)
        return {p: self._silent.get(p, [""])[0] for p in never}

    def sum(self, step: Step, message: Any | Mapping[PartyId, Any]) -> Any:
        """The total of the replies, in 64-bit arithmetic and party order."""
        return add_replies(self._ask_quorum("sum", step, message))

    def mean(self, step: Step, message: Any | Mapping[PartyId, Any]) -> Any:
        """The weighted mean of the replies; parties multiplied by their weights before they answered."""
        replies = self._ask_quorum("mean", step, message)
        self._weights = {party: float(reply.weight) for party, reply in zip(self._heard, replies, strict=True)}
        return average_replies(replies)

    def each(self, step: Step, message: Any | Mapping[PartyId, Any]) -> dict[PartyId, Any]:
        """Single replies from those who answered."""
        return self._ask("each", step, message)

    def commit(self, state: State, *, durable: int = 1, **metrics: Any) -> State:
        """End the round."""
        self.round += 1
        self._ordinal = 0
        facts = {"round": self.round, "seconds": time.monotonic() - self._started, **metrics}
        weights = {"weights": self._weights} if self._weights else {}
        self._history += ({**facts, "bytes": self._bytes, **weights},)
        self._bytes, self._weights, self._started = {}, {}, time.monotonic()
        self._state = state
        self._every = durable
        if self.round % durable == 0:
            self.flush()
        self.observe("round", self._history[-1])
        return state

    # --- commits --------------------------------------------------------------------------------------------------

    @property
    def history(self) -> tuple[Any, ...]:
        """One dict per round: metrics, seconds, bytes by party and direction, and weights of the last mean by party."""
        return self._history

    def restore(self) -> Any:
        """The state of the last commit, or None for a new run."""
        commit, warnings = self._journal.last()
        for text in warnings:
            self.observe("warning", {"text": text})
        self._begin(commit or _NEW_RUN)
        return self._state

    def flush(self) -> None:
        """Commit durably now: first the parties, then the server, so that no party is ever behind."""
        if self._durable == self.round:
            return
        if self._every > 1:
            self._flush_parties()
        self._journal.write(Commit(self.round, self._state, self._answered, self._history))
        self._safe, self._durable = self._durable, self.round
        self._lost, self._left_out = set(), set()

    def _flush_parties(self) -> None:
        """Have the parties put their last answers on disk; one that died since has lost its own."""
        reachable = set(self._transport.parties) - self._left_out - self._given_up
        frames = {
            party: Question(self.run, (self.round, 0), previous, self._safe, True, b"", self.plan).to_bytes()
            for party, previous in self._answered.items()
            if party in reachable
        }
        answers = self._transport.ask(frames, self.terms.timeout)
        behind = [party for party, answer in answers.items() if read_answer(answer).kind == "behind"]
        if behind:
            self._roll_back(behind)

    def _roll_back(self, lost: Sequence[PartyId]) -> NoReturn:
        """Go back to the last durable commit. Who is lost again since that one is left out until the next."""
        for party in lost:
            self._note_behind(party)
            again = party in self._lost
            (self._left_out if again else self._lost).add(party)
            what = f"party '{party}' has lost its answers since round {self._durable}, from which the run begins again"
            then = "; it is left out until the next durable commit: see why it dies, or commit more often"
            self.observe("warning", {"text": what + (then if again else "")})
        raise RolledBack

    @property
    def _given_up(self) -> set[PartyId]:
        """Parties that have lost their place, as they lost their answers again and again, or say so."""
        return {party for party, times in self._behind.items() if times > _PATIENCE}

    def _note_behind(self, party: PartyId) -> None:
        self._behind[party] += 1
        if party in self._given_up:
            what = f"party '{party}' has lost its answers {self._behind[party]} times: the run goes on without it"
            self.observe("warning", {"text": f"{what}; see why, and `tertulia resume` asks it again"})

    def _begin(self, commit: Commit) -> None:
        self.round: int = commit.round
        self._state = commit.state
        self._answered: dict[PartyId, Place] = {p: (r, o) for p, (r, o) in commit.answered.items()}
        self._history: tuple[Any, ...] = commit.history
        self._durable = commit.round
        self._safe = min([commit.round, *self._journal.rounds()])  # the older one that we could fall back to
        self._every = 1
        self._ordinal = 0
        self._heard: list[PartyId] = []
        self._bytes = {}
        self._weights = {}
        self._started = time.monotonic()

    # --- asking ---------------------------------------------------------------------------------------------------

    def _ask(self, verb: Verb, step: Step, message: Any) -> dict[PartyId, Any]:
        absent, out = self.terms.dropouts.absent, self._left_out | self._given_up
        present = [p for p in self.parties if p not in out and not absent(self.round, p)]
        given = message if isinstance(message, Mapping) else dict.fromkeys(present, message)
        messages = {p: given[p] for p in present if p in given}
        different = {id(m): m for m in messages.values()}
        encoded = {key: body(verb, step, m) for key, m in different.items()}  # once for all who are asked the same
        bodies = {p: encoded[id(m)] for p, m in messages.items()}  # and the word lists that they name
        self._pulse.ask(self.round, step.__name__, list(bodies))
        replies = self._exchange(bodies, Asked(verb, step, messages, self.terms.max_documents))
        self._ordinal += 1
        self._heard = [p for p in bodies if p in replies]  # in party order
        self._pulse.hear(self._heard, {p: why[-1] for p, why in self._silent.items()})
        return {p: replies[p] for p in self._heard}

    def _ask_quorum(self, verb: Verb, step: Step, message: Any) -> list[Any]:
        """The replies in party order, if there are enough of them."""
        replies = self._ask(verb, step, message)
        needed = self.terms.quorum * len(self.parties)
        if len(replies) < needed:
            raise QuorumError(
                f"{len(replies)} of {len(self.parties)} parties answered {step.__name__} in round {self.round}, the "
                f"quorum is {needed:.1f}: wait for more parties and resume, or lower `quorum`"
            )
        return list(replies.values())

    def _exchange(self, bodies: Mapping[PartyId, Body], asked: Asked) -> dict[PartyId, Any]:
        step = step_name(asked.step)
        answers = self._send(step, bodies)
        if lacking := {p for p, answer in answers.items() if answer.kind == "lacking"}:  # it was started again
            for party in lacking:
                self._has_words.pop(party, None)
                self._packing.forget(party)
            answers |= self._send(step, {p: bodies[p] for p in lacking})
        fresh = [p for p, answer in answers.items() if answer.kind == "behind"]
        if fresh:
            if self.round > self._durable:
                self._roll_back(fresh)
            for party in fresh:  # it lost its directory: it starts anew, as a party without state does
                self._answered.pop(party, None)
                self.observe("warning", {"text": f"party '{party}' has lost its state and starts anew"})
                self._note_behind(party)
            answers |= self._send(step, {p: bodies[p] for p in fresh})
        answers = asked.judge(answers)
        replies = {}
        for party, answer in answers.items():
            if answer.kind == "ok":
                replies[party] = answer.reply
                self._answered[party] = (self.round, self._ordinal)
            elif answer.kind == "failed" and self.terms.on_failure == "stop":
                raise PartyFailure(f"party '{party}': {answer.text}")
            else:
                self._note_silence(party, answer.text or "it says that it has lost what it answered")
        if not replies:
            reasons = "; ".join(f"{p}: {a.text}" for p, a in answers.items()) or "nobody was there"
            raise QuorumError(f"no party answered in round {self.round} ({reasons})")
        return replies

    def _note_silence(self, party: PartyId, why: str) -> None:
        """Say why a party does not answer, each reason once."""
        if why not in self._silent.setdefault(party, []):
            self._silent[party].append(why)
            self.observe("warning", {"text": f"party '{party}' did not answer: {why}"})

    def _send(self, step: str, bodies: Mapping[PartyId, Body]) -> dict[PartyId, Answer]:
        place = (self.round, self._ordinal)
        durable = self._every == 1
        whole = {p: body for p, (body, _) in bodies.items()}
        packed = self._packing.pack(step, whole)
        frames = {
            p: Question(
                self.run,
                place,
                self._answered.get(p, BEFORE_ALL),
                self._safe,
                durable,
                packed[p],
                self.plan,
                {name: words for name, words in lists.items() if name not in self._has_words.get(p, ())},
                packs=True,
            ).to_bytes()
            for p, (_, lists) in bodies.items()
        }
        faults.point("server.before_ask")
        received = self._transport.ask(frames, self.terms.timeout)
        faults.point("server.after_ask")
        for party, frame in frames.items():
            count = self._bytes.setdefault(party, [0, 0])
            count[0] += len(frame)
            count[1] += len(received.get(party, b""))
        answers = {p: read_answer(received[p]) for p in frames if p in received}
        for party, answer in answers.items():
            if answer.kind == "ok":
                self._has_words.setdefault(party, set()).update(bodies[party][1])
        self._packing.note(step, whole, answers)
        return answers
