"""One question being answered: what a step may see of its party, and the door through which its reply leaves."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia._arrays import Array
from tertulia._disk import atomic_write, file_name, private_directory, read_checked, with_checksum
from tertulia._logs import write_line
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import FormatError, Unreleased
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import Ask, Question
from tertulia.federation.party import reports
from tertulia.federation.types import PartyId, Randomness
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism, Public, Randomiser

if TYPE_CHECKING:
    from tertulia.federation.party.host import PartyHost

SCORES = "scores.log"  # what left of scores, for the party's own people: the server's method adds them up


class Released(np.ndarray[Any, np.dtype[Any]]):
    """An array that went through `party.release`. Whatever is computed from it is raw again, until released."""

    release_id: str | None = None

    def __array_finalize__(self, parent: Any) -> None:
        self.release_id = None


class StepContext:
    """The `Party` that a step sees."""

    def __init__(self, host: PartyHost, question: Question, ask: Ask) -> None:
        self._host = host
        self._question = question
        self._ask = ask
        self._count = 0
        self.charged = False  # was noise drawn? Such a reply must survive a crash, for it may not be drawn again

    @property
    def id(self) -> PartyId:
        """The party's name."""
        return self._host.config.id

    @property
    def seed(self) -> int:
        """The key of the model's randomness for this question."""
        return self._host.seed(self._question)

    def documents(self, vocabulary: Vocabulary | None = None, part: str = "train", *, unknown: bool = False) -> Corpus:
        """The training, held-out or validation documents, over an agreed vocabulary or over the party's own words."""
        return self._host.documents(vocabulary, part, unknown=unknown)

    def setting(self, name: str, default: Any) -> Any:
        """The party's own choice, else the server's."""
        return self._host.config.settings.get(name, default)

    @property
    def min_documents_per_cell(self) -> int:
        """What the party's policy says of small cells of tables."""
        return self._host.policy.min_documents_per_cell

    @property
    def min_documents_per_word(self) -> int:
        """How many of its documents must have a word before the party may name it."""
        return self._host.policy.word_minimum(self._host.config.owners)

    @property
    def score_epsilon(self) -> float | None:
        """What the party's policy says of scores."""
        return self._host.policy.score_epsilon

    def release(self, x: Array, mechanism: Mechanism) -> Array:
        """Check the policy, charge the ledger on disk, and only then let `x` through the mechanism."""
        host, question = self._host, self._question
        x = np.asarray(x)
        round_, ordinal = question.place
        # A repeat of this question about the same data gives the same id, hence the same charge and the same noise. A
        # changed question, or other data (a rewound state, a grown corpus), give another: a new charge and new noise.
        contents = host.noise_key.mac_of_array(x)
        release_id = f"{question.run}/{self.id}/{round_}.{ordinal}/{question.hash[:16]}/{self._count}/{contents}"
        self._count += 1
        release = Release.of(
            mechanism, id=release_id, run=question.run, party=self.id, round=round_,
            step=self._ask.step, verb=self._ask.verb, message_hash=question.hash, x=x,
        )  # fmt: skip
        host.door.check_release(release)
        noisy = not isinstance(mechanism, Clear | Public | Derived)
        self._ledger.record(release, host.policy, sync=noisy or question.durable)
        self.charged = self.charged or noisy
        noise = host.noise_key.stream(question.run, release_id, question.hash)
        released = np.array(mechanism.apply(x, noise)).view(Released)
        released.release_id = release_id
        released.flags.writeable = False
        if mechanism.metric and released.ndim == 0 and question.durable and host.config.durable:
            write_line(host.directory / SCORES, "info", mechanism.what, round=round_, value=float(released))
        return released

    def randomise(self, corpus: Corpus, mechanism: Randomiser) -> Randomness:
        """Charge for noisy reports of tokens, once for each ledger, and give the keys that regenerate them."""
        return reports.randomise(self._host, self._ledger, corpus, mechanism)

    @property
    def _ledger(self) -> Ledger:
        """The party's ledger, which notes whom the next releases are for."""
        ledger = self._host.ledger
        ledger.addressee = (f"server of run {self._question.run}", self._question.plan)
        return ledger

    def notice(self, text: str) -> None:
        """Tell the party's own people something."""
        self._host.notice(text)

    def keep(self, name: str, **arrays: Array) -> None:
        """Store arrays in the party's own directory."""
        path = self._kept_file(name)
        private_directory(path.parent)
        atomic_write(path, with_checksum(encode(arrays)), durable=self._host.config.durable)

    def kept(self, name: str) -> dict[str, Array]:
        """What `keep` stored."""
        arrays: dict[str, Array] = decode(read_checked(self._kept_file(name)))
        return arrays

    def _kept_file(self, name: str) -> Path:
        return self._host.directory / "kept" / f"{file_name(name)}.safetensors"

    def prepare_reply(self, reply: Any) -> Any:
        """Make a reply ready to leave: every field released; for `mean`, multiplied by its weight before it leaves."""
        fields = {f.name: getattr(reply, f.name) for f in dataclasses.fields(reply)}
        for name, value in fields.items():
            if not isinstance(value, Released) or value.release_id is None:
                raise Unreleased(f"field '{name}' of {type(reply).__name__} was not released: use `party.release(...)`")
        if self._ask.verb == "mean":
            if "weight" not in fields:
                raise FormatError(f"a reply to `mean` needs a field 'weight', {type(reply).__name__} has none")
            weight = float(fields["weight"])
            scaled = {n: _scale(v, weight) for n, v in fields.items() if n != "weight"}
            return dataclasses.replace(reply, **scaled, weight=np.float64(weight))
        return reply


def _scale(x: Array, weight: float) -> Array:
    """Multiply by a weight; floating numbers keep their width, as half precision is chosen for half the bytes."""
    return np.multiply(x, x.dtype.type(weight) if np.issubdtype(x.dtype, np.floating) else np.float64(weight))
