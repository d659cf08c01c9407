"""A party's side of the federation: its directory, its documents, its ledger, its state, and how it answers a frame.

Every engine runs this same code; engines differ only in how a frame of bytes gets here.
"""

from __future__ import annotations

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

from tertulia._disk import atomic_write
from tertulia._locks import holding
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import ConfigError, FormatError, InputError, Missed, PolicyRefusal, TertuliaError
from tertulia.federation import faults
from tertulia.federation.codec import encode
from tertulia.federation.messages import Answer, Inquiry, Question, read_frame
from tertulia.federation.party.answer_log import AnswerLog
from tertulia.federation.party.context import StepContext
from tertulia.federation.party.inquiries import INQUIRIES
from tertulia.federation.party.limits import limited
from tertulia.federation.party.reports import Known
from tertulia.federation.party.steps import steps_of
from tertulia.federation.types import PartyId, Step
from tertulia.privacy.home import Home, open_home
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
        """Write `party.json`."""
        directory.mkdir(parents=True, exist_ok=True)
        atomic_write(directory / "party.json", json.dumps(asdict(self), indent=1).encode(), durable=self.durable)

    def home_in(self, directory: Path) -> Path:
        """Where ledger and noise key are: at home, or in the party's directory of a run."""
        return Path(self.home or directory)

    @classmethod
    def load(cls, directory: Path) -> PartyConfig:
        """Read `party.json`."""
        try:
            fields = json.loads((directory / "party.json").read_text())
        except FileNotFoundError:
            raise ConfigError(f"{directory} is not a party's directory: party.json is missing") from None
        config = cls(**{**fields, "methods": tuple(fields["methods"])})
        if config.home is not None and not Path(config.home).is_absolute():
            raise ConfigError(
                f"{directory / 'party.json'}: home = '{config.home}' depends on the working directory, and so would "
                "the budget: write it from the root on"
            )
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
        self._given = corpus
        self.fingerprints: WeakKeyDictionary[Corpus, Known] = WeakKeyDictionary()
        self._encoded: dict[tuple[str, str], Corpus] = {}
        self._lock = threading.Lock()  # one question at a time, also when an earlier one has timed out

    @cached_property
    def steps(self) -> Mapping[str, Step]:
        """What this party offers: the steps of its own methods."""
        return steps_of(self.config.methods)

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
        """Training, held-out and validation documents, told apart by a hash of ids, within the policy's limits."""
        return parts_of(limited(self.corpus, self.policy.bounds), self.config.heldout, self.config.validation)

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
    def home(self) -> Home:
        """Ledger and noise key, which belong together."""
        config = self.config
        return open_home(config.home_in(self.directory), fixed_key=config.noise_key, durable=config.durable)

    @property
    def ledger(self) -> Ledger:
        """What left this party."""
        return self.home.ledger

    @property
    def noise_key(self) -> NoiseKey:
        """The secret that all noise is drawn from."""
        return self.home.key

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
                if not isinstance(asked, Question):
                    return self._inform(asked)
                with self._alone_at_home():
                    return self._answer(asked)
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

    def _alone_at_home(self) -> AbstractContextManager[None]:
        """Wait while another run's question is answered from this home; a run's own directory has its lock already."""
        return nullcontext() if self.config.home is None else holding(Path(self.config.home), wait=self.notice)

    def _inform(self, inquiry: Inquiry) -> bytes:
        """Answer an inquiry: no step runs, nothing is charged, and neither state nor answer log move."""
        if inquiry.about not in INQUIRIES:
            raise FormatError(NO_SUCH_INQUIRY)
        return encode(Answer("ok", "", INQUIRIES[inquiry.about](self.ledger, inquiry)))

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
