"""A party's side of the federation: its directory, its documents, its ledger, its state, and how it answers a frame.

Every engine runs this same code; engines differ only in how a frame of bytes gets here.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from tertulia._disk import atomic_write, private_directory
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import ConfigError, FormatError, InputError, Missed, PolicyRefusal, TertuliaError
from tertulia.federation import faults
from tertulia.federation.codec import encode
from tertulia.federation.messages import Answer, Inquiry, Question, read_frame
from tertulia.federation.party.answer_log import AnswerLog
from tertulia.federation.party.context import StepContext
from tertulia.federation.party.inquiries import INQUIRIES
from tertulia.federation.party.steps import steps_of
from tertulia.federation.types import PartyId, Step
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.policy import Policy

_PARTS_KEPT = 4
# Constant texts: what the server sent is not sent back.
NO_SUCH_STEP = "this party does not offer the step: its own config lists the methods whose steps it runs"
NO_SUCH_INQUIRY = "this party does not answer this inquiry"


@dataclass(frozen=True)
class PartyConfig:
    """What a party's directory says of it (`party.json`)."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # of `load`

    id: PartyId
    run: str
    seed: int
    methods: tuple[str, ...]  # the modules whose steps this party offers; a question never imports anything
    heldout: float = 0.0
    validation: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)  # the party's own choices, such as its number of topics
    source: dict[str, Any] | None = None  # a corpus.recipe, where documents are read at the party
    home: str | None = None  # where ledger and noise key live when they outlast the run, as a budget does
    noise_key: str | None = None  # a fixed key in hex, for tests; it marks the ledger non-private
    durable: bool = True  # fsync; switched off only for throw-away directories

    def save(self, directory: Path) -> None:
        """Write `party.json`, in a directory that is the party's alone."""
        private_directory(directory)
        atomic_write(directory / "party.json", json.dumps(asdict(self), indent=1).encode(), durable=self.durable)

    def ledger_path(self, directory: Path) -> Path:
        """Where the ledger is, and the noise key beside it."""
        return Path(self.home or directory) / "ledger.sqlite"

    @classmethod
    def load(cls, directory: Path) -> PartyConfig:
        """Read `party.json`; whatever is in it, either right or `FormatError`."""
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
        return config


def parts_of(corpus: Corpus, heldout: float, validation: float = 0.0) -> dict[str, Corpus]:
    """Training documents, a share that is held out, and one to choose a model by."""
    train, rest = corpus.split(heldout + validation)
    if train.n_documents == 0:  # so few documents that none was left: train on them
        train, rest = rest, train
    chosen_by, scored = rest.split(heldout)
    return {"train": train, "heldout": scored, "validation": chosen_by}


class PartyHost:
    """A party's side of the federation."""

    def __init__(self, directory: Path, corpus: Corpus | None = None) -> None:
        self.directory = directory
        self.config = PartyConfig.load(directory)
        self.policy = Policy.load(directory / "policy.toml") if (directory / "policy.toml").exists() else Policy()
        self.policy.check_home(self.config.id, self.config.home)
        self.pins: Mapping[str, str] | None = None  # by an engine: which modules besides our own it may import
        self._given = corpus
        self._encoded: dict[tuple[str, str], Corpus] = {}
        self._lock = threading.Lock()  # one question at a time, also when an earlier one has timed out

    @cached_property
    def steps(self) -> Mapping[str, Step]:
        """What this party offers: the steps of its own methods."""
        return steps_of(self.config.methods, self.pins)

    @cached_property
    def answers(self) -> AnswerLog:
        """What this party answered before, and its state since; methods define what states are made of."""
        _ = self.steps
        return AnswerLog(self.directory / "answers", durable=self.config.durable)

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
        from tertulia.corpus.recipes import read_recipe

        return read_recipe(self.config.source, stored)

    @cached_property
    def parts(self) -> dict[str, Corpus]:
        """Training, held-out and validation documents, told apart by the hash of their ids."""
        return parts_of(self.corpus, self.config.heldout, self.config.validation)

    def documents(self, vocabulary: Vocabulary | None, part: str) -> Corpus:
        """One part over an agreed vocabulary; the last few are kept, as every round asks for the same."""
        if vocabulary is None:
            return self.parts[part]
        key = (vocabulary.fingerprint, part)
        if key not in self._encoded:
            if len(self._encoded) >= _PARTS_KEPT:
                self._encoded.pop(next(iter(self._encoded)))
            self._encoded[key] = self.parts[part].encode(vocabulary)
        return self._encoded[key]

    @cached_property
    def ledger(self) -> Ledger:
        """What left this party."""
        ledger = Ledger(self.config.ledger_path(self.directory), durable=self.config.durable)
        if self.config.noise_key is not None:
            ledger.mark_non_private("the noise key is fixed")
        return ledger

    @cached_property
    def noise_key(self) -> NoiseKey:
        """The secret that all noise is drawn from."""
        if self.config.noise_key is not None:
            return NoiseKey.fixed(bytes.fromhex(self.config.noise_key))
        return NoiseKey.load_or_create(self.config.ledger_path(self.directory).with_name("noise.key"))

    def seed(self, question: Question) -> int:
        """The key of the model's randomness for one question."""
        text = f"{self.config.seed}/{self.config.id}/{question.place[0]}/{question.place[1]}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")

    def answer(self, frame: bytes) -> bytes:
        """Answer a frame; whatever goes wrong stays in this party's log but for its name."""
        with self._lock:
            try:
                asked = read_frame(frame)
                if asked.run != self.config.run:
                    raise ConfigError(f"party '{self.config.id}' belongs to run {self.config.run}, not {asked.run}")
                return self._answer(asked) if isinstance(asked, Question) else self._inform(asked)
            except PolicyRefusal as refusal:
                return encode(Answer("refused", str(refusal), None))
            except Missed as missed:
                return encode(Answer("absent", str(missed), None))
            except TertuliaError as error:
                return encode(Answer("failed", f"{type(error).__name__}: {error}", None))
            except Exception as error:  # the text may quote documents, so only its kind leaves
                self._log().exception("a step of party '%s' failed", self.config.id)
                where = self.directory / "party.log" if self.config.durable else "the log"
                text = f"{type(error).__name__} in a step; the details are in {where}"
                return encode(Answer("failed", text, None))

    def _inform(self, inquiry: Inquiry) -> bytes:
        """Answer an inquiry: no step runs, nothing is charged, and neither state nor answer log move."""
        if inquiry.about not in INQUIRIES:
            raise FormatError(NO_SUCH_INQUIRY)
        return encode(Answer("ok", "", INQUIRIES[inquiry.about](self.ledger, self.config.run)))

    def _answer(self, question: Question) -> bytes:
        known = self.answers.find_or_none(question.place, question.hash)
        if known is not None:
            return known
        self.answers.forget_after(question.previous)
        self.answers.forget_before(question.safe)
        if self.answers.latest < question.previous:
            return encode(Answer("behind", "", None))
        if not question.body:  # the server is about to commit
            self.ledger.sync()
            self.answers.flush()
            return encode(Answer("ok", "", None))
        return self._run(question)

    def _run(self, question: Question) -> bytes:
        ask = question.ask()
        step = self.steps.get(ask.step)
        if step is None:
            self.notice(f"was asked for {ask.step!r}, which is no step of its methods {', '.join(self.config.methods)}")
            raise FormatError(NO_SUCH_STEP)
        context = StepContext(self, question, ask)
        faults.point("party.before_step")
        state, reply = step(context, self.answers.state, ask.message)
        answer = encode(Answer("ok", "", context.prepare_reply(reply)))
        durable = question.durable or context.charged
        self.answers.add(question.place, question.hash, state, answer, durable=durable)
        faults.point("party.before_reply")
        return answer

    def notice(self, text: str) -> None:
        """Say something on this party's side: on standard error, and in its log."""
        logging.getLogger("tertulia.party").warning("party '%s': %s", self.config.id, text)
        if self.config.durable:
            with (self.directory / "party.log").open("a", encoding="utf-8") as log:
                log.write(f"{text}\n")

    def _log(self) -> logging.Logger:
        logger = logging.getLogger(f"tertulia.party.{self.config.run}.{self.config.id}")
        if self.config.durable and not logger.handlers:  # a throw-away directory would take its log with it
            logger.addHandler(logging.FileHandler(self.directory / "party.log", delay=True))
            logger.propagate = False
        return logger
