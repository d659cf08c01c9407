"""The `Federation` handle, which all engines share. It holds everything between the algorithm and the transport.

It numbers questions, skips absent parties, counts bytes, checks the quorum and commits. `aggregation` adds up the
replies; an engine only carries frames (`Transport`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from tertulia.errors import PartyFailure, QuorumError
from tertulia.federation import faults
from tertulia.federation.checks import MOST_DOCUMENTS
from tertulia.federation.engines.base import Transport
from tertulia.federation.messages import BEFORE_ALL, Answer, Question, Verb, WordLists, body
from tertulia.federation.packing import ServerPacking
from tertulia.federation.server.aggregation import add_replies, average_replies, weight_of
from tertulia.federation.server.answers import QuestionToAll, read_answer
from tertulia.federation.server.journal import Commit, Journal
from tertulia.federation.server.live_status import LiveStatus
from tertulia.federation.server.membership import Dropouts, Membership, Presence
from tertulia.federation.types import PartyId, Place, Step, doing_of, step_name

State = TypeVar("State")
Body = tuple[bytes, WordLists]
_PATIENCE = 3  # how often a party may lose its answers before the run continues without it
_NEW_RUN = Commit(round=0, state=None, answered={}, history=())


@dataclass(frozen=True)
class Terms:
    """The terms of participation in a run."""

    quorum: float = 0.5  # the share of members whose replies `sum` and `mean` need
    timeout: float | None = None  # seconds for an answer
    on_failure: str = "stop"  # or "skip": a party whose step fails, or whose reply is invalid, counts as absent
    max_documents: int = MOST_DOCUMENTS  # the largest number that a party may declare
    dropouts: Dropouts = field(default_factory=Dropouts)
    membership: Mapping[PartyId, Membership] = field(default_factory=dict)


class RolledBack(Exception):
    """Raised when a party has crashed and lost answers of rounds since the last durable commit.

    A party that is only late keeps its answers.
    """


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
        self.plan = plan  # the hash of the plan that parties have agreed to
        self.terms = terms or Terms()
        self._transport = transport
        self._journal = journal
        self.observe = observe or (lambda kind, facts: None)
        self._started, self._presence = time.monotonic(), Presence()
        self._bytes: dict[PartyId, list[int]] = {}  # party -> [down, up] in this round
        self._weights: dict[PartyId, float] = {}  # in the last mean of this round
        self._durable = 0  # the round of the newest commit on disk
        self._lost: set[PartyId] = set()  # parties that made the run go back to that commit
        self._left_out: set[PartyId] = set()  # parties that did so twice: not asked until the next durable commit
        self._packing = ServerPacking()
        self._status = LiveStatus(journal.directory, enabled=journal.durable)
        self._has_words: dict[PartyId, set[str]] = {}  # fingerprints of the lists that each party has received
        self._behind: Counter[PartyId] = Counter()  # how often each party has lost its answers
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
        """The parties whose replies to the last question arrived, in party order."""
        return self._heard

    @property
    def absent(self) -> dict[PartyId, str]:
        """Parties that have never answered a question, each with the first reason that it gave, or an empty one."""
        heard = self._answered.keys() | {party for places in self._counted.values() for party in places}
        never = (p for p in self._transport.parties if p not in heard)
        return {p: self._silent.get(p, [""])[0] for p in never}

    def sum(self, step: Step, message: Any | Mapping[PartyId, Any]) -> Any:
        """Return the total of the replies, in 64-bit arithmetic and party order."""
        return add_replies(self._ask_quorum("sum", step, message))

    def mean(self, step: Step, message: Any | Mapping[PartyId, Any]) -> Any:
        """Return the weighted mean of the replies, which the parties have already multiplied by their weights."""
        replies = self._ask_quorum("mean", step, message)
        self._weights = {party: weight_of(reply) for party, reply in zip(self._heard, replies, strict=True)}
        return average_replies(replies)

    def each(self, step: Step, message: Any | Mapping[PartyId, Any]) -> dict[PartyId, Any]:
        """Return the single replies of the parties that answered."""
        return self._ask("each", step, message)

    def commit(self, state: State, *, durable: int = 1, **metrics: Any) -> State:
        """End the round."""
        more = self._presence.close(self.parties) | ({"weights": self._weights} if self._weights else {})
        self.round += 1
        self._ordinal = 0
        facts = {"round": self.round, "seconds": time.monotonic() - self._started, **metrics}
        self._history += ({**facts, "bytes": self._bytes, **more},)
        self._bytes, self._weights, self._started = {}, {}, time.monotonic()
        self._state, self._every = state, durable
        if self.round % durable == 0:
            self.flush()
        self.observe("round", self._history[-1])
        return state

    # --- commits --------------------------------------------------------------------------------------------------

    @property
    def history(self) -> tuple[Any, ...]:
        """One dict per round: metrics, seconds, bytes, weights of the last mean, and `took_part` if it has changed."""
        return self._history

    def restore(self) -> Any:
        """Go to the last commit on disk and return its state, None for a new run."""
        commit, warnings = self._journal.last()
        for text in warnings:
            self.observe("warning", {"text": text})
        self._begin(commit or _NEW_RUN)
        return self._state

    def flush(self) -> None:
        """Write a commit to disk now: first at the parties, then at the server, so that no party is behind it."""
        if self._durable == self.round:
            return
        if self._every > 1:
            self._flush_parties()
        self._journal.write(Commit(self.round, self._state, self._answered, self._history, self._counted))
        self._safe, self._durable = self._durable, self.round
        self._lost, self._left_out = set(), set()

    def _flush_parties(self) -> None:
        """Make the parties write their last answers to disk; roll back if a party has lost them in a crash."""
        reachable = set(self._transport.parties) - self._left_out - self._given_up
        frames = {
            party: Question(self.run, (self.round, 0), previous, self._safe, True, b"", self.plan).to_bytes()
            for party, previous in self._answered.items()
            if party in reachable
        }
        answers = self._transport.ask(frames, self.terms.timeout)
        if behind := [party for party, answer in answers.items() if read_answer(answer).kind == "behind"]:
            self._roll_back(behind)

    def _roll_back(self, lost: Sequence[PartyId]) -> NoReturn:
        """Go back to the last durable commit; leave out a party that has caused this twice until the next one."""
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
        """Parties that the run continues without: they lost their answers too often, or claim that they did."""
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
        self._counted: dict[str, dict[PartyId, Place]] = {  # step -> party -> place of its last reply in a sum
            step: {p: (r, o) for p, (r, o) in places.items()} for step, places in commit.counted.items()
        }
        self._history: tuple[Any, ...] = commit.history
        self._presence = Presence(commit.history)
        self._durable = commit.round
        self._safe = min([commit.round, *self._journal.rounds()])  # the oldest commit that we may fall back to
        self._every = 1
        self._ordinal = 0
        self._heard: list[PartyId] = []
        self._bytes = {}
        self._weights = {}
        self._started = time.monotonic()

    # --- asking ---------------------------------------------------------------------------------------------------

    def _ask(self, verb: Verb, step: Step, message: Any) -> dict[PartyId, Any]:
        absent, excluded = self.terms.dropouts.absent, self._left_out | self._given_up
        given = message if isinstance(message, Mapping) else dict.fromkeys(self.parties, message)
        members = [p for p in self.parties if p in given]
        messages = {p: given[p] for p in members if p not in excluded and not absent(self.round, p)}
        distinct = {id(m): m for m in messages.values()}
        encoded = {key: body(verb, step, m) for key, m in distinct.items()}  # each message once
        bodies = {p: encoded[id(m)] for p, m in messages.items()}  # with their word lists
        self._status.ask(self.round, doing_of(step), list(bodies))
        self._presence.ask(step, members)
        replies = self._exchange(bodies, QuestionToAll(verb, step, messages, self.terms.max_documents))
        self._ordinal += 1
        self._heard = [p for p in bodies if p in replies]  # in party order
        self._status.hear(self._heard, {p: why[-1] for p, why in self._silent.items()})
        return {p: replies[p] for p in self._heard}

    def _ask_quorum(self, verb: Verb, step: Step, message: Any) -> list[Any]:
        """Return the replies in party order; raise `QuorumError` if they are too few."""
        replies = self._ask(verb, step, message)
        needed = self.terms.quorum * len(self.parties)
        if len(replies) < needed:
            raise QuorumError(
                f"{len(replies)} of {len(self.parties)} parties answered {step.__name__} in round {self.round}, the "
                f"quorum is {needed:.1f}: wait for more parties and resume, or lower `quorum`"
            )
        self._counted.setdefault(step_name(step), {}).update(dict.fromkeys(replies, (self.round, self._ordinal - 1)))
        return list(replies.values())

    def _exchange(self, bodies: Mapping[PartyId, Body], asked: QuestionToAll) -> dict[PartyId, Any]:
        step = step_name(asked.step)
        answers = self._send(step, bodies)
        if lacking := {p for p, answer in answers.items() if answer.kind == "lacking"}:  # these parties were restarted
            for party in lacking:
                self._has_words.pop(party, None)
                self._packing.forget(party)
            answers |= self._send(step, {p: bodies[p] for p in lacking})
        behind = [p for p, answer in answers.items() if answer.kind == "behind"]
        if behind:
            if self.round > self._durable:
                self._roll_back(behind)
            for party in behind:  # it lost its directory: ask it again as a party without state
                self._answered.pop(party, None)
                self.observe("warning", {"text": f"party '{party}' has lost its state"})
                self._note_behind(party)
            answers |= self._send(step, {p: bodies[p] for p in behind})
        answers = asked.judge(answers)
        self._presence.hear(answers)
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
        """Warn that a party did not answer; give each reason once."""
        if why not in self._silent.setdefault(party, []):
            self._silent[party].append(why)
            self.observe("warning", {"text": f"party '{party}' did not answer: {why}"})

    def _send(self, step: str, bodies: Mapping[PartyId, Body]) -> dict[PartyId, Answer]:
        place = (self.round, self._ordinal)
        durable = self._every == 1
        whole = {p: body for p, (body, _) in bodies.items()}
        packed = self._packing.pack(step, whole)
        counted = self._counted.get(step, {})
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
                counted=counted.get(p, BEFORE_ALL),
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
