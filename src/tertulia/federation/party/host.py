"""A party's side of the federation: it opens the party's directory, documents, ledger and state, and answers frames.

All engines run this code; they differ only in how they deliver a frame of bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from tertulia._disk import Level, atomic_write, private_directory, read_lines, write_line
from tertulia._locks import directory_lock
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.advice import emptied_or_none
from tertulia.errors import ConfigError, FormatError, InputError, PolicyRefusal, TertuliaError
from tertulia.federation import faults
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import Answer, Ask, Exchange, Inquiry, Question, read_frame
from tertulia.federation.method_modules import steps_of
from tertulia.federation.packing import Contents, LackingBase, PartyPacking, size_of, unpack
from tertulia.federation.party import failures
from tertulia.federation.party.answer_log import AnswerLog, note_answer_size
from tertulia.federation.party.context import StepContext
from tertulia.federation.party.document_limits import limit_corpus, parts_of
from tertulia.federation.party.door import Door, policy_path_or_none
from tertulia.federation.party.inquiries import INQUIRIES
from tertulia.federation.party.ledger_heads import HEADS, LedgerHeads
from tertulia.federation.party.reports import CorpusReports
from tertulia.federation.party.secure_member import SecureMember
from tertulia.federation.party.withdrawn_documents import RunWithdrawals
from tertulia.federation.party.word_store import LackingWords
from tertulia.federation.plan import WIDER, WIDER_VERB
from tertulia.federation.secure.rings import TooWide
from tertulia.federation.types import PartyId, Step
from tertulia.privacy.home import Home, open_home
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Derived
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.policy import Policy

_PARTS_KEPT = 4
NO_SUCH_INQUIRY = "this party does not answer this inquiry"
NOT_SECURE = "this run has no secure sums"


@dataclass(frozen=True)
class PartyConfig:
    """The contents of `party.json` in a party's directory."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # applies to `load`

    id: PartyId
    run: str
    seed: int
    methods: tuple[str, ...]  # modules whose steps this party offers; a question cannot import others
    heldout: float = 0.0
    validation: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)  # the party's own choices, such as its number of topics
    source: dict[str, Any] | None = None  # a recipe (`corpus.recipes`), if the party reads its documents itself
    home: str | None = None  # directory of ledger and noise key, if a budget extends over several runs
    hides_words: bool = False  # whether noise hides single words, so that nothing else may tell of them
    noise_key: str | None = None  # a fixed key in hex, for tests; it marks the ledger non-private
    durable: bool = True  # fsync; switched off only for throw-away directories
    owners: str = "one"  # "several": each owner has its own files, and everything fails closed
    plan: dict[str, Any] | None = None  # the agreed plan of the run, a `federation.plan.Plan`

    def save(self, directory: Path) -> None:
        """Write `party.json` into a directory that only the party's user can read."""
        private_directory(directory)
        atomic_write(directory / "party.json", json.dumps(asdict(self), indent=1).encode(), durable=self.durable)

    def home_in(self, directory: Path) -> Path:
        """Return the directory of ledger and noise key: the home, or else the party's directory of this run."""
        return Path(self.home or directory)

    @classmethod
    def load(cls, directory: Path) -> PartyConfig:
        """Read and validate `party.json`; raise `FormatError` if it is damaged."""
        path = directory / "party.json"
        try:
            config = TypeAdapter(cls).validate_json(path.read_bytes(), strict=True)
        except FileNotFoundError:
            raise ConfigError(f"{directory} is not a party's directory: party.json is missing") from None
        except OSError as error:
            raise FormatError(f"cannot read {path} ({error.strerror}): restore it from a backup") from error
        except ValidationError as error:
            wrong = {".".join(map(str, problem["loc"])) or "it": problem["msg"] for problem in error.errors()}
            what = "; ".join(f"{name}: {why}" for name, why in wrong.items())
            raise FormatError(f"{path} is damaged ({what}): restore it from a backup") from error
        if not (0 <= config.heldout < 1 and 0 <= config.validation < 1 and config.heldout + config.validation < 1):
            raise FormatError(f"{path} is damaged (heldout or validation is no share): restore it from a backup")
        if config.home is not None and not Path(config.home).is_absolute():
            raise ConfigError(
                f"{path}: home = '{config.home}' depends on the working directory, and so would the budget: write it "
                "from the root on"
            )
        return config


class PartyHost:
    """A party's side of the federation."""

    def __init__(self, directory: Path, corpus: Corpus | None = None, contents: Contents | None = None) -> None:
        self.directory = directory
        self.config = PartyConfig.load(directory)
        self.policy = self._find_policy()
        self.policy.check_home(self.config.id, self.config.home)
        self.pins: Mapping[str, str] | None = None  # by an engine: foreign modules that may be imported -> hash
        self._given = corpus
        self._encoded: dict[tuple[str, str, bool], Corpus] = {}
        self.fingerprints: WeakKeyDictionary[Corpus, CorpusReports] = WeakKeyDictionary()
        self._lock = threading.Lock()  # one question at a time, even if an earlier one has timed out
        self.door = Door(self)
        self._withdrawals = RunWithdrawals(self)
        self._packing = PartyPacking(contents)
        self._last: Answer | None = None  # to the question that is being answered, in a run with secure sums

    def _find_policy(self) -> Policy:
        """Load the policy; without a file, allow everything in a simulation, and no clear data with several owners."""
        config = self.config
        path = policy_path_or_none(self.directory, config.home, config.owners)
        if path is not None:
            return Policy.load(path)
        return Policy.closed() if config.owners == "several" else Policy()

    @cached_property
    def steps(self) -> Mapping[str, Step]:
        """The steps that this party offers: those of its own methods."""
        return steps_of(self.config.methods, self.pins)

    @cached_property
    def answers(self) -> AnswerLog:
        """The log of earlier answers, with the party's state. The method modules define the classes of states."""
        _ = self.steps
        durable = self.config.durable
        return AnswerLog(self.directory / "answers", durable=durable, on_disk=durable or not self._packing.shares)

    @cached_property
    def corpus(self) -> Corpus:
        """The party's documents: read once, then kept as arrays in its directory."""
        if self._given is not None:
            return self._given
        stored = self.directory / "corpus"
        if (stored / "corpus.json").exists():
            return Corpus.load(stored)
        if self.config.source is None:
            raise InputError(f"party '{self.config.id}' has no documents: {stored} is missing and no source is given")
        return self._withdrawals.read(self.config.source, stored)

    @cached_property
    def parts(self) -> dict[str, Corpus]:
        """Training, held-out and validation documents, split by a hash of their ids, within the policy's limits.

        Withdrawn documents are in none of them.
        """
        corpus = limit_corpus(self._withdrawals.leave_out(self.corpus), self.policy.bounds)
        config = self.config
        return parts_of(corpus, config.heldout, config.validation, hides_words=config.hides_words)

    def documents(self, vocabulary: Vocabulary | None, part: str, *, unknown: bool = False) -> Corpus:
        """Return one part over an agreed vocabulary, from a small cache: every round asks for the same."""
        if vocabulary is None:
            return self.parts[part]
        key = (vocabulary.fingerprint, part, unknown)
        if key not in self._encoded:
            if len(self._encoded) >= _PARTS_KEPT:
                self._encoded.pop(next(iter(self._encoded)))
            self._encoded[key] = self.parts[part].encode(vocabulary, unknown=unknown)
            if part == "train" and (text := emptied_or_none(self.parts[part], self._encoded[key])):
                self.notice(text)
        return self._encoded[key]

    @property
    def user_at(self) -> int | None:
        """At how many members one user may have documents, by the plan; None without a plan."""
        return None if self.door.plan is None else self.door.plan.user_at

    @cached_property
    def home(self) -> Home:
        """Ledger and noise key, which belong together."""
        config = self.config
        place, known = config.home_in(self.directory), self.door.home
        return open_home(place, fixed_key=config.noise_key, durable=config.durable, identity=known)

    @property
    def ledger(self) -> Ledger:
        """The ledger of everything that has left this party."""
        return self.home.ledger

    @property
    def noise_key(self) -> NoiseKey:
        """The secret that all noise is drawn from."""
        return self.home.key

    def seed(self, question: Question) -> int:
        """Derive the seed of the model's randomness for one question."""
        text = f"{self.config.seed}/{self.config.id}/{question.place[0]}/{question.place[1]}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")

    def answer(self, frame: bytes) -> bytes:
        """Answer any frame, even a malformed one. Errors go to the party's log, and into the answer if allowed."""
        with self._lock:
            try:
                self.door.check_length(len(frame))
                asked = read_frame(frame)
                self.door.check_run(asked)
                if isinstance(asked, Inquiry):
                    return self._inform(asked)
                if isinstance(asked, Exchange):
                    return self._exchange(asked)
                with self._alone_at_home():
                    return self._answer(asked)
            except (LackingWords, LackingBase):
                return encode(Answer("lacking", "", None))
            except Exception as error:
                return self._fail(error)

    def _fail(self, error: Exception) -> bytes:
        """Return an answer that reports an error; it gives the details only if one owner has all parties."""
        try:
            if isinstance(error, PolicyRefusal):
                self._note_refusal(error.rule)
            if self.door.closed:
                reason = failures.describe(error, details=self.policy.log_details)
                level: Level = "warning" if isinstance(error, PolicyRefusal) else "error"
                write_line(self.directory / failures.LOG, level, reason)
                return encode(failures.constant_answer(error, self.policy.rules))
            log = self.directory / failures.LOG if self.config.durable else None
            if not isinstance(error, TertuliaError):  # its text may quote documents
                self._log_failure(error, log)
            return encode(failures.full_answer(error, log))
        except Exception:  # a text that cannot be encoded, a log that cannot be written
            return failures.ENCODED_FAILURE

    def _alone_at_home(self) -> AbstractContextManager[None]:
        """Lock the home, which other runs may use at the same time; the directory of a run is locked already."""
        return nullcontext() if self.config.home is None else directory_lock(Path(self.config.home), wait=self.notice)

    def _inform(self, inquiry: Inquiry) -> bytes:
        """Answer an inquiry: no step runs, nothing is charged, and neither the state nor the answer log changes."""
        if inquiry.about not in INQUIRIES:
            raise FormatError(NO_SUCH_INQUIRY)
        return encode(Answer("ok", "", INQUIRIES[inquiry.about](self.ledger, inquiry)))

    def _exchange(self, asked: Exchange) -> bytes:
        """Answer a message of secure sums: no step runs, and nothing is charged."""
        self.door.check_plan(asked.plan)
        if self.secure is None:
            raise FormatError(NOT_SECURE)
        message = decode(asked.body)
        if self.heads is None or not isinstance(message, HEADS):
            return encode(Answer("ok", "", self.secure.exchange(message)))
        with self._alone_at_home():
            return encode(Answer("ok", "", self.heads.exchange(message)))

    @cached_property
    def secure(self) -> SecureMember | None:
        """The party's half of secure sums, None if the plan has none."""
        plan = self.door.plan
        if plan is None or not plan.secure:
            return None
        return SecureMember(self.directory, self.config.id, self.config.run, plan, durable=self.config.durable)

    @cached_property
    def heads(self) -> LedgerHeads | None:
        """The party's half of the exchange of ledger heads, None if the plan has no secure sums."""
        plan, secure = self.door.plan, self.secure
        return None if plan is None or secure is None else LedgerHeads(self, secure.keys, plan.keys)

    def _answer(self, packed: Question) -> bytes:
        """Answer a question, packed if the server accepts that. The plan is checked before anything is unpacked."""
        self.door.check_envelope(packed)
        self.door.check_length(size_of(packed.body))
        question = self._packing.unpack(packed)
        if self.secure is not None and question.body:
            return self._answer_hidden(self.secure, question)
        if question.attempt >= 0:
            raise FormatError(NOT_SECURE)
        answer = self._find_answer(question)
        return answer if packed.packs else unpack(answer)

    def _answer_hidden(self, secure: SecureMember, question: Question) -> bytes:
        """Answer a question of a run with secure sums: by a masked reply, or a commitment to a note."""
        if self.heads is not None:
            self.heads.check_shown()
        _ = self.steps  # their modules define the classes of messages
        ask, step = self.door.admit(question)
        secure.check_question(question, step, ask.verb)
        self._last = None
        answer = self._find_answer(question)
        found = self._last if self._last is not None else decode(answer)
        if found.kind != "ok":
            return answer
        try:
            hidden = encode(Answer("ok", "", secure.hide(question, step, ask.verb, found.reply)))
        except TooWide:
            self._release_wider(question, ask)
            return encode(Answer("wider", "", None))
        note_answer_size(self.directory, question, len(hidden), keep=self.config.durable)
        return hidden

    def _release_wider(self, question: Question, ask: Ask) -> None:
        """Record in the ledger that the server learns that a number of this party does not fit the ring."""
        releases = [r for r in self.ledger.releases() if (r.run, r.message_hash) == (question.run, question.hash)]
        sources = [release.id for release in releases if release.verb != WIDER_VERB]
        wider = Derived(WIDER, parents=tuple(sources))
        StepContext(self, question, dataclasses.replace(ask, verb=WIDER_VERB)).release(np.array(True), wider)

    def _find_answer(self, question: Question) -> bytes:
        known = self.answers.find_or_none(question.place, question.key)
        if known is not None:
            return known
        admitted = self.door.admit(question) if question.body else None  # checked before any answer is deleted
        self.answers.forget_after(question.previous)
        self.answers.forget_before(question.safe)
        if self.secure is not None:
            self.secure.forget_before(question.safe)
        if self.answers.latest < question.previous:
            return encode(Answer("behind", "", None))
        if admitted is None:  # an empty body: the server is about to commit
            self.ledger.sync()
            self.answers.flush()
            return encode(Answer("ok", "", None))
        return self._run(question, *admitted)

    def _run(self, question: Question, ask: Ask, step: Step) -> bytes:
        self.door.pin_home(self.home)
        self._withdrawals.check()
        context = self.context(question, ask)
        faults.point("party.before_step")
        state, reply = step(context, self.answers.state, ask.message)
        found = Answer("ok", "", context.prepare_reply(reply))
        answer = encode(found)
        if self.secure is None:
            answer = self._packing.pack(answer, question)
        else:  # it is stored as it is, and hidden before it leaves
            self._last = found
        durable = question.durable or context.charged or self.secure is not None
        self.answers.add(question.place, question.key, state, bytes(answer), durable=durable)
        self._packing.keep(question, ask)
        if self.secure is None:
            note_answer_size(self.directory, question, len(answer), keep=self.config.durable)
        faults.point("party.before_reply")
        return answer

    def context(self, question: Question, ask: Ask) -> StepContext:
        """Return the context in which a step answers."""
        return StepContext(self, question, ask)

    def refusals(self) -> list[str]:
        """Return the policy rules that have refused a question or release in this run, in order."""
        return [line["text"] for line in read_lines(self.directory / failures.REFUSALS)]

    def _note_refusal(self, rule: str) -> None:
        if self.config.durable:
            write_line(self.directory / failures.REFUSALS, "warning", rule)

    def notice(self, text: str) -> None:
        """Write a text to this party's log and, if one owner has all parties, to standard error."""
        if not self.door.closed:
            logging.getLogger("tertulia.party").warning("party '%s': %s", self.config.id, text)
        if self.config.durable or self.door.closed:
            write_line(self.directory / failures.LOG, "info", text)

    def _log_failure(self, error: Exception, log: Path | None) -> None:
        """Log the traceback: to a file, or to standard error if the directory is temporary."""
        if log is not None:
            write_line(log, "error", failures.describe(error, details=True))
        else:
            logging.getLogger("tertulia.party").error("a step of party '%s' failed", self.config.id, exc_info=error)
