"""A party at home: its directory, its documents, its ledger, its memory, and how it answers a question.

Both engines, and every later one, run this same code; they differ only in how a frame of bytes gets here.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import threading
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import ConfigError, InputError, Missed, PolicyRefusal, TertuliaError
from tertulia.federation import faults
from tertulia.federation.codec import encode
from tertulia.federation.messages import Answer, Question
from tertulia.federation.party.answer_log import AnswerLog
from tertulia.federation.party.context import StepContext
from tertulia.federation.types import PartyId, step_named
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.policy import Policy

_PARTS_KEPT = 4


@dataclass(frozen=True)
class PartyConfig:
    """What a party's directory says of it (`party.json`)."""

    id: PartyId
    run: str
    seed: int
    methods: tuple[str, ...]  # the modules whose steps this party offers; a name never imports anything else
    heldout: float = 0.0
    validation: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)  # the party's own choices, such as its number of topics
    source: dict[str, Any] | None = None  # a corpus.recipe, where documents are read at the party
    home: str | None = None  # where ledger and noise key live when they outlast the run, as a budget does
    noise_key: str | None = None  # a fixed key in hex, for tests; it marks the ledger non-private
    durable: bool = True  # fsync; switched off only for throw-away directories

    def save(self, directory: Path) -> None:
        """Write `party.json`."""
        directory.mkdir(parents=True, exist_ok=True)
        atomic_write(directory / "party.json", json.dumps(asdict(self), indent=1).encode(), durable=self.durable)

    def ledger_path(self, directory: Path) -> Path:
        """Where the ledger is, and the noise key beside it."""
        return Path(self.home or directory) / "ledger.sqlite"

    @classmethod
    def load(cls, directory: Path) -> PartyConfig:
        """Read `party.json`."""
        try:
            fields = json.loads((directory / "party.json").read_text())
        except FileNotFoundError:
            raise ConfigError(f"{directory} is not a party's directory: party.json is missing") from None
        return cls(**{**fields, "methods": tuple(fields["methods"])})


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
        self.rules = PartyConfig.load(directory)
        for module in self.rules.methods:
            importlib.import_module(module)
        self.policy = Policy.load(directory / "policy.toml") if (directory / "policy.toml").exists() else Policy()
        self.policy.check_home(self.rules.id, self.rules.home)
        self.answers = AnswerLog(directory / "answers", durable=self.rules.durable)
        self._given = corpus
        self._encoded: dict[tuple[str, str], Corpus] = {}
        self._lock = threading.Lock()  # one question at a time, also when an earlier one has timed out

    @cached_property
    def corpus(self) -> Corpus:
        """The party's documents: read once, then kept as arrays in its directory."""
        if self._given is not None:
            return self._given
        stored = self.directory / "corpus"
        if (stored / "corpus.json").exists():
            return Corpus.load(stored)
        if self.rules.source is None:
            raise InputError(f"party '{self.rules.id}' has no documents: {stored} is missing and no source is given")
        from tertulia.corpus.recipes import read_recipe

        return read_recipe(self.rules.source, stored)

    @cached_property
    def parts(self) -> dict[str, Corpus]:
        """Training, held-out and validation documents, told apart by the hash of their ids."""
        return parts_of(self.corpus, self.rules.heldout, self.rules.validation)

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
        ledger = Ledger(self.rules.ledger_path(self.directory), durable=self.rules.durable)
        if self.rules.noise_key is not None:
            ledger.mark_non_private("the noise key is fixed")
        return ledger

    @cached_property
    def noise_key(self) -> NoiseKey:
        """The secret that all noise is drawn from."""
        if self.rules.noise_key is not None:
            return NoiseKey.fixed(bytes.fromhex(self.rules.noise_key))
        return NoiseKey.load_or_create(self.rules.ledger_path(self.directory).with_name("noise.key"))

    def seed(self, question: Question) -> int:
        """The key of the model's randomness for one question."""
        text = f"{self.rules.seed}/{self.rules.id}/{question.place[0]}/{question.place[1]}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")

    def answer(self, frame: bytes) -> bytes:
        """Answer a question; whatever goes wrong stays in this party's log but for its name."""
        with self._lock:
            try:
                return self._answer(Question.from_bytes(frame))
            except PolicyRefusal as refusal:
                return encode(Answer("refused", str(refusal), None))
            except Missed as missed:
                return encode(Answer("absent", str(missed), None))
            except TertuliaError as error:
                return encode(Answer("failed", f"{type(error).__name__}: {error}", None))
            except Exception as error:  # the text may quote documents, so only its kind leaves
                self._log().exception("a step of party '%s' failed", self.rules.id)
                where = self.directory / "party.log" if self.rules.durable else "the log"
                text = f"{type(error).__name__} in a step; the details are in {where}"
                return encode(Answer("failed", text, None))

    def _answer(self, question: Question) -> bytes:
        if question.run != self.rules.run:
            raise ConfigError(f"party '{self.rules.id}' belongs to run {self.rules.run}, not {question.run}")
        known = self.answers.find(question.place, question.hash)
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
        context = StepContext(self, question, ask)
        faults.point("party.before_step")
        state, reply = step_named(ask.step)(context, self.answers.state, ask.message)
        answer = encode(Answer("ok", "", context.prepare_reply(reply)))
        durable = question.durable or context.charged
        self.answers.add(question.place, question.hash, state, answer, durable=durable)
        faults.point("party.before_reply")
        return answer

    def notice(self, text: str) -> None:
        """Say something on this party's side: on standard error, and in its log."""
        logging.getLogger("tertulia.party").warning("party '%s': %s", self.rules.id, text)
        if self.rules.durable:
            with (self.directory / "party.log").open("a", encoding="utf-8") as log:
                log.write(f"{text}\n")

    def _log(self) -> logging.Logger:
        logger = logging.getLogger(f"tertulia.party.{self.rules.run}.{self.rules.id}")
        if self.rules.durable and not logger.handlers:  # a throw-away directory would take its log with it
            logger.addHandler(logging.FileHandler(self.directory / "party.log", delay=True))
            logger.propagate = False
        return logger
