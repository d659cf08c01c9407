"""The `Federation` handle, which all engines share. It holds everything between the algorithm and the transport.

It numbers questions, skips absent parties, counts bytes, checks the quorum and commits. `aggregation` adds up the
replies; an engine only carries frames (`Transport`).
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from tertulia.errors import ConfigError, PartyFailure, QuorumError
from tertulia.federation import faults
from tertulia.federation.checks import MOST_DOCUMENTS
from tertulia.federation.engines.base import Transport
from tertulia.federation.messages import BEFORE_ALL, Answer, Question, Verb, WordLists, body
from tertulia.federation.packing import ServerPacking
from tertulia.federation.plan import Plan
from tertulia.federation.secure.lists import honest_survivors
from tertulia.federation.server.aggregation import add_replies, average_replies, divide, weight_of
from tertulia.federation.server.answers import Masking, QuestionToAll, read_answer
from tertulia.federation.server.journal import Commit, Journal
from tertulia.federation.server.ledger_heads import exchange_heads
from tertulia.federation.server.live_status import LiveStatus
from tertulia.federation.server.masked_totals import MaskedTotals, Wider, check_hides
from tertulia.federation.server.membership import Dropouts, Membership, Presence
from tertulia.federation.server.notes import relay_notes
from tertulia.federation.server.secure_sums import SecureSums
from tertulia.federation.server.sum_journal import SumJournal
from tertulia.federation.server.tally import Tally
from tertulia.federation.types import PartyId, Place, Step, doing_of, step_name
from tertulia.federation.word_lists import ListWriter

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
        plan: Plan | None = None,
    ) -> None:
        self.run = run
        self.plan = "" if plan is None else plan.hash  # that parties have agreed to
        self.terms = terms or Terms()
        self._transport = transport
        self._journal = journal
        self.observe = observe or (lambda kind, facts: None)
        self._started, self.presence = time.monotonic(), Presence()
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
        self._heard: list[PartyId] = []  # that answered the last question
        self._sums, self._next_heads = None, 1  # the round after which members next exchange heads of their ledgers
        if plan is not None and plan.secure:
            sums = SumJournal(journal.directory / "sums", durable=journal.durable)
            warn = lambda text: self.observe("warning", {"text": text})  # noqa: E731
            self._sums = SecureSums(run, plan, transport, sums, self.terms.timeout, warn, self._count_bytes)
            self._masked = MaskedTotals(self, self._sums)
        self._begin(_NEW_RUN)

    def prepare(self) -> None:
        """Let the members agree on keys and show each other what they hold of their ledgers, if sums are secure."""
        if self._sums is not None:
            self._sums.agree_on_keys()
            exchange_heads(self._sums)

    def finish(self) -> None:
        """Write the last commit, and let the members exchange the heads of their ledgers."""
        self.flush()
        if self._sums is not None:
            exchange_heads(self._sums)

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
        never = (p for p in self._transport.parties if p not in self.tally.known)
        return {p: self._silent.get(p, [""])[0] for p in never}

    @property
    def secure(self) -> bool:
        """Whether sums are masked."""
        return self._sums is not None

    @property
    def noise_shares(self) -> int:
        """The number of parties that add the noise of a sum together."""
        return 1 if self._sums is None else honest_survivors(len(self._sums.members))

    def sum(self, step: Step, message: Any | Mapping[PartyId, Any]) -> Any:
        """Return the total of the replies, in 64-bit arithmetic and party order."""
        if self.secure:
            total, self._heard = self._masked.total("sum", step, message)
            return total
        return add_replies(self._ask_quorum("sum", step, message))

    def mean(self, step: Step, message: Any | Mapping[PartyId, Any]) -> Any:
        """Return the weighted mean of the replies, which the parties have already multiplied by their weights."""
        if self.secure:
            total, self._heard = self._masked.total("mean", step, message)
            return divide(total)
        replies = self._ask_quorum("mean", step, message)
        self._weights = {party: weight_of(reply) for party, reply in zip(self._heard, replies, strict=True)}
        return average_replies(replies)

    def each(self, step: Step, message: Any | Mapping[PartyId, Any]) -> dict[PartyId, Any]:
        """Return the single replies of the parties that answered."""
        if self.secure:
            check_hides(step)
        return self.ask("each", step, message)

    def relay(self, step: Step, message: Any) -> None:
        """Let all members exchange notes."""
        if self._sums is None:
            raise ConfigError("members exchange notes only with secure sums: set secure = true")
        place, question = self.place, hashlib.sha256(body("relay", step, message)[0]).hexdigest()
        relay_notes(self._sums, self.ask("relay", step, message), place, question)

    def commit(self, state: State, *, durable: int = 1, **metrics: Any) -> State:
        """End the round."""
        more = self.presence.close(self.parties) | ({"weights": self._weights} if self._weights else {})
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
        tally = self.tally
        self._journal.write(
            Commit(self.round, self._state, tally.answered, self._history, tally.counted, tally.standing)
        )
        self._safe, self._durable = self._durable, self.round
        if self._sums is not None:
            self._sums.journal.forget_before(self._safe)
        self._lost, self._left_out = set(), set()
        if self._sums is not None and self.round >= self._next_heads:
            exchange_heads(self._sums)
            self._next_heads = 2 * self.round

    def _flush_parties(self) -> None:
        """Make the parties write their last answers to disk; roll back if a party has lost them in a crash."""
        reachable = set(self._transport.parties) - self._left_out - self._given_up
        frames = {
            party: Question(self.run, (self.round, 0), previous, self._safe, True, b"", self.plan).to_bytes()
            for party, previous in self.tally.answered.items()
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
        self.tally = Tally.of(commit)
        self._history: tuple[Any, ...] = commit.history
        self.presence = Presence(commit.history)
        self._durable = commit.round
        self._safe = min([commit.round, *self._journal.rounds()])  # the oldest commit that we may fall back to
        self._every = 1
        self._ordinal = 0
        self._heard = []
        self._bytes = {}
        self._weights = {}
        self._started = time.monotonic()

    # --- asking ---------------------------------------------------------------------------------------------------

    @property
    def place(self) -> Place:
        """The place of the next question."""
        return self.round, self._ordinal

    def skip(self) -> None:
        """Go to the next place without a question."""
        self._ordinal += 1

    def ask(self, verb: Verb, step: Step, message: Any, masking: Masking | None = None) -> dict[PartyId, Any]:
        """Ask the parties; return the replies of those that answered, and go to the next place."""
        absent, excluded = self.terms.dropouts.absent, self._left_out | self._given_up
        given = message if isinstance(message, Mapping) else dict.fromkeys(self.parties, message)
        members = [p for p in self.parties if p in given]
        messages = {p: given[p] for p in members if p not in excluded and not absent(self.round, p)}
        distinct = {id(m): m for m in messages.values()}
        encoded = {key: body(verb, step, m) for key, m in distinct.items()}  # each message once
        bodies = {p: encoded[id(m)] for p, m in messages.items()}  # with their word lists
        self._status.ask(self.round, doing_of(step), list(bodies))
        self.presence.ask(step, members)
        replies = self._exchange(bodies, QuestionToAll(verb, step, messages, self.terms.max_documents, masking))
        self._ordinal += 1
        self._heard = [p for p in bodies if p in replies]  # in party order
        self._status.hear(self._heard, {p: why[-1] for p, why in self._silent.items()})
        return {p: replies[p] for p in self._heard}

    def _ask_quorum(self, verb: Verb, step: Step, message: Any) -> list[Any]:
        """Return the replies in party order; raise `QuorumError` if they are too few."""
        replies = self.ask(verb, step, message)
        needed = self.terms.quorum * len(self.parties)
        if len(replies) < needed:
            raise QuorumError(
                f"{len(replies)} of {len(self.parties)} parties answered {step.__name__} in round {self.round}, the "
                f"quorum is {needed:.1f}: wait for more parties and resume, or lower `quorum`"
            )
        self.tally.count(step_name(step), replies, (self.round, self._ordinal - 1))
        return list(replies.values())

    def _exchange(self, bodies: Mapping[PartyId, Body], asked: QuestionToAll) -> dict[PartyId, Any]:
        step = step_name(asked.step)
        answers = self._send(step, bodies, asked.masking)
        if lacking := {p for p, answer in answers.items() if answer.kind == "lacking"}:  # these parties were restarted
            for party in lacking:
                self._has_words.pop(party, None)
                self._packing.forget(party)
            answers |= self._send(step, {p: bodies[p] for p in lacking}, asked.masking)
        behind = [p for p, answer in answers.items() if answer.kind == "behind"]
        if behind:
            if self.round > self._durable:
                self._roll_back(behind)
            for party in behind:  # it lost its directory: ask it again as a party without state
                self.tally.answered.pop(party, None)
                self.observe("warning", {"text": f"party '{party}' has lost its state"})
                self._note_behind(party)
            answers |= self._send(step, {p: bodies[p] for p in behind}, asked.masking)
        answers = asked.judge(answers)
        if asked.masking is not None and any(answer.kind == "wider" for answer in answers.values()):
            raise Wider
        self.presence.hear(answers)
        replies = {}
        for party, answer in answers.items():
            if answer.kind == "ok":
                replies[party] = answer.reply
                self.tally.answered[party] = self.place
            elif answer.kind == "failed" and self.terms.on_failure == "stop":
                raise PartyFailure(f"party '{party}': {answer.text}")
            else:
                self.note_silence(party, answer.text or "it says that it has lost what it answered")
        if not replies:
            reasons = "; ".join(f"{p}: {a.text}" for p, a in answers.items()) or "nobody was there"
            raise QuorumError(f"no party answered in round {self.round} ({reasons})")
        return replies

    def note_silence(self, party: PartyId, why: str) -> None:
        """Warn that a party did not answer; give each reason once."""
        if why not in self._silent.setdefault(party, []):
            self._silent[party].append(why)
            self.observe("warning", {"text": f"party '{party}' did not answer: {why}"})

    def _send(self, step: str, bodies: Mapping[PartyId, Body], masking: Masking | None) -> dict[PartyId, Answer]:
        durable = self._every == 1 or self.secure  # masked answers are never given twice with other numbers
        whole = {p: body for p, (body, _) in bodies.items()}
        packed = self._packing.pack(step, whole)
        counted, writer = self.tally.counted_of(step), ListWriter()
        frames = {
            p: Question(
                self.run,
                self.place,
                self.tally.last(p),
                self._safe,
                durable,
                packed[p],
                self.plan,
                writer.write({name: words for name, words in lists.items() if name not in self._has_words.get(p, ())}),
                packs=True,
                counted=counted.get(p, BEFORE_ALL),
                attempt=-1 if masking is None else masking.attempt,
                widths=() if masking is None else masking.widths,
            ).to_bytes()
            for p, (_, lists) in bodies.items()
        }
        faults.point("server.before_ask")
        received = self._transport.ask(frames, self.terms.timeout)
        faults.point("server.after_ask")
        for party, frame in frames.items():
            self._count_bytes(party, len(frame), len(received.get(party, b"")))
        answers = {p: read_answer(received[p]) for p in frames if p in received}
        for party, answer in answers.items():
            if answer.kind == "ok":
                self._has_words.setdefault(party, set()).update(bodies[party][1])
        self._packing.note(step, whole, answers)
        return answers

    def _count_bytes(self, party: PartyId, down: int, up: int) -> None:
        count = self._bytes.setdefault(party, [0, 0])
        count[0] += down
        count[1] += up
