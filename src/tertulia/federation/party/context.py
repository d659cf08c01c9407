"""The context of a step: the data that the step may read at its party, and the release of its reply."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia._arrays import Array
from tertulia._disk import atomic_write, file_name, private_directory, read_checked, with_checksum, write_line
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import ConfigError, FormatError, PolicyRefusal, Unreleased
from tertulia.federation.codec import decode, encode
from tertulia.federation.fields import Weight, field_with
from tertulia.federation.messages import BEFORE_ALL, Ask, Question
from tertulia.federation.party import reports
from tertulia.federation.party.failures import NGRAMS
from tertulia.federation.party.member_keys import RULE
from tertulia.federation.secure.sum_tags import CELLS, is_tag_of, tag_of
from tertulia.federation.types import PartyId, Randomness, Step, min_holders
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism, Public, Randomiser, Unit
from tertulia.privacy.policy import RARE

if TYPE_CHECKING:
    from tertulia.federation.party.host import PartyHost
    from tertulia.federation.party.secure_member import SecureMember

UNTRUE = (
    "the numbers of a question are not the members' total: the server has made them up, or a member has sent a wrong "
    "tag. Ask the operator and the other members before the run goes on"
)
_WITHOUT_NOISE = (Clear, Public, Derived)
_TAG = "tag of "
SCORES = "scores.log"  # released scores, for the party's own staff; the server gets them added up


class Released(np.ndarray[Any, np.dtype[Any]]):
    """An array that `party.release` returned. An array computed from it is not released."""

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
        self.charged = False  # was noise drawn? Then the reply must survive a crash: noise is not drawn twice

    @property
    def id(self) -> PartyId:
        """The party's name."""
        return self._host.config.id

    @property
    def seed(self) -> int:
        """The seed of the model's randomness for this question."""
        return self._host.seed(self._question)

    @property
    def place(self) -> tuple[int, int]:
        """The place of this question in the run: round, and number within the round."""
        return self._question.place

    @property
    def counted(self) -> tuple[int, int] | None:
        """The place of this party's last reply to this step that is in a sum; None before the first."""
        return None if self._question.counted == BEFORE_ALL else self._question.counted

    def documents(self, vocabulary: Vocabulary | None = None, part: str = "train", *, unknown: bool = False) -> Corpus:
        """Return training, held-out or validation documents, over an agreed vocabulary or the party's own words."""
        return self._host.documents(vocabulary, part, unknown=unknown)

    def setting(self, name: str, default: Any) -> Any:
        """Return the party's own value of a setting, or else `default`."""
        return self._host.config.settings.get(name, default)

    @property
    def min_documents_per_cell(self) -> int:
        """The minimum number of documents in a cell of a table, by the party's policy."""
        return self._host.policy.min_documents_per_cell

    @property
    def min_documents_per_word(self) -> int:
        """The minimum number of documents that must contain a word before the party may disclose it."""
        return self._host.policy.word_minimum(self._host.config.owners)

    @property
    def min_documents_per_topic(self) -> int:
        """The minimum number of documents that must have a topic before its counts leave in a masked sum."""
        return RARE if self._host.secure is not None else 1

    @property
    def noise_shares(self) -> int:
        """The number of parties whose noise is in every sum and is known to nobody who could subtract it."""
        plan = self._host.door.plan
        return 1 if plan is None else plan.noise_shares

    def sample(self, rate: float, contents: Sequence[Array], n: int) -> Array:
        """Choose units 0 to n - 1, each with probability `rate`, by secret coins of this question and its contents."""
        host, question = self._host, self._question
        macs = "/".join(map(host.noise_key.mac_of_array, contents))
        place = f"{question.run}/{self.id}/{question.place[0]}.{question.place[1]}/sample/{macs}"
        coins = host.noise_key.stream(question.run, place, question.hash).words(n)
        most = int(rate * 2**64)  # words below it: rounded down, so that no unit takes part more often
        return np.flatnonzero(coins < np.uint64(most)) if most < 2**64 else np.arange(n)

    @property
    def score_epsilon(self) -> float | None:
        """The epsilon of a score by the party's policy; None: scores are exact."""
        return self._host.policy.score_epsilon

    def release(self, x: Array, mechanism: Mechanism) -> Array:
        """Check the policy, charge the ledger on disk, and only then apply the mechanism to `x`."""
        host, question = self._host, self._question
        x = np.asarray(x)
        round_ = question.place[0]
        noisy = not isinstance(mechanism, _WITHOUT_NOISE)
        if noisy and mechanism.unit is Unit.TOKEN:
            _check_words_are_tokens(host.corpus)
        release_id = self._release_id(x, mechanism)
        self._count += 1
        release = Release.of(
            mechanism, id=release_id, run=question.run, party=self.id, round=round_,
            step=self._ask.step, verb=self._ask.verb, message_hash=question.hash, x=x,
            masked=host.secure is not None and self._ask.verb in ("sum", "mean"),
            agreed=host.secure is not None and self._ask.verb == "each",  # the door lets nothing else pass by `each`
            user_at=host.user_at,
        )  # fmt: skip
        host.door.check_release(release)
        self._ledger.record(release, host.policy, sync=noisy or question.durable)
        host.door.note_release(release)
        self.charged = self.charged or noisy
        noise = host.noise_key.stream(question.run, release_id, question.hash)
        released = np.array(mechanism.apply(x, noise)).view(Released)
        released.release_id = release_id
        released.flags.writeable = False
        if mechanism.metric and released.ndim == 0 and question.durable and host.config.durable:
            write_line(host.directory / SCORES, "info", mechanism.what, round=round_, value=float(released))
        return released

    def _release_id(self, x: Array, mechanism: Mechanism) -> str:
        """Name the next release. Noise depends on the name, and so on the MAC of all numbers.

        If the same question is repeated on the same data, the name is the same, and so are charge and noise. Another
        question, or other data (after a rollback, or in a larger corpus), gets a new name, a new charge and new noise.
        """
        question = self._question
        contents = self._host.noise_key.mac_of_array(x, sparse=isinstance(mechanism, _WITHOUT_NOISE))
        round_, ordinal = question.place
        return f"{question.run}/{self.id}/{round_}.{ordinal}/{question.hash[:16]}/{self._count}/{contents}"

    def source_of(self, released: Array) -> str:
        """Return the id of a release."""
        if not isinstance(released, Released) or released.release_id is None:
            raise Unreleased("only an array that `party.release` returned has a source")
        return released.release_id

    def randomise(
        self, corpus: Corpus, mechanism: Randomiser, drawn_from: tuple[Array, ...] | None = None
    ) -> Randomness:
        """Charge for noisy reports of tokens, once per ledger, and return the keys that regenerate them."""
        _check_words_are_tokens(corpus)
        given = (corpus.words, corpus.documents) if drawn_from is None else drawn_from
        return reports.randomise(self._host, self._ledger, corpus, mechanism)._replace(drawn_from=given)

    @property
    def _ledger(self) -> Ledger:
        """The party's ledger, with the recipient of the next releases set."""
        ledger = self._host.ledger
        ledger.addressee = (f"server of run {self._question.run}", self._question.plan)
        return ledger

    def sum_tag(self, name: str, *released: Array) -> Array:
        """Return a tag of released numbers. It is a function of them under a key of the members: no other release."""
        ids = [self.source_of(array) for array in released]
        secure = self._host.secure
        tag = np.zeros(CELLS, np.int64) if secure is None else tag_of(secure.keys.members_key(_TAG + name), released)
        found = tag.view(Released)
        found.release_id = ids[0]
        found.flags.writeable = False
        return found

    def check_sum(self, name: str, tag: Array, *numbers: Array) -> None:
        """Refuse numbers in a question that are no total of what members sent by this name."""
        secure = self._host.secure
        if secure is not None and not is_tag_of(tag, secure.keys.members_key(_TAG + name), numbers):
            raise PolicyRefusal(RULE, UNTRUE)

    @property
    def continues(self) -> bool:
        """Whether the run continues an earlier model."""
        plan = self._host.door.plan
        return plan is not None and bool(plan.start)

    @property
    def min_holders(self) -> int:
        """The number of members that must have a word before the server learns it."""
        return min_holders(len(self._secure.keys.members))

    def word_tags(self, words: Sequence[str], purpose: str = "words") -> Array:
        """Return a tag for each word that only members can make."""
        return self._secure.words.tags_of(words, purpose)

    def check_words(self, words: Sequence[str]) -> None:
        """Raise an error unless the members have agreed on all these words."""
        self._secure.words.check(words)

    def agree_to_words(self, tags: Array) -> None:
        """Record the tags of the words that the members have agreed on."""
        self._secure.words.agree(tags)

    def notes(self, step: Step) -> dict[PartyId, Any]:
        """Return all members' notes of a step."""
        return self._secure.notes.agreed(step)

    @property
    def _secure(self) -> SecureMember:
        if self._host.secure is None:
            raise ConfigError("this needs secure sums, which the run does not have: set secure = true")
        return self._host.secure

    def notice(self, text: str) -> None:
        """Inform the party's own staff."""
        self._host.notice(text)

    def keep(self, name: str, **arrays: Array) -> None:
        """Store arrays in the party's own directory."""
        path = self._kept_file(name)
        private_directory(path.parent)
        atomic_write(path, with_checksum(encode(arrays)), durable=self._host.config.durable)

    def kept(self, name: str) -> dict[str, Array]:
        """Return the arrays that `keep` stored."""
        arrays: dict[str, Array] = decode(read_checked(self._kept_file(name)))
        return arrays

    def _kept_file(self, name: str) -> Path:
        return self._host.directory / "kept" / f"{file_name(name)}.safetensors"

    def prepare_reply(self, reply: Any) -> Any:
        """Check that every field of a reply was released; for `mean`, multiply the fields by the reply's weight."""
        fields = {f.name: getattr(reply, f.name) for f in dataclasses.fields(reply)}
        for name, value in fields.items():
            if not isinstance(value, Released) or value.release_id is None:
                raise Unreleased(f"field '{name}' of {type(reply).__name__} was not released: use `party.release(...)`")
        if self._ask.verb == "mean":
            weighted_by = field_with(type(reply), Weight)
            if weighted_by is None:
                raise FormatError(
                    f"a reply to `mean` needs a field marked as its weight, {type(reply).__name__} has none"
                )
            weight = float(fields[weighted_by])
            scaled = {n: _scale(v, weight) for n, v in fields.items() if n != weighted_by}
            return dataclasses.replace(reply, **scaled, **{weighted_by: np.float64(weight)})
        return reply


def _check_words_are_tokens(corpus: Corpus) -> None:
    """Refuse n-grams: one word is in several of them, and noise that hides one token would not hide the word."""
    if (n := corpus.options.ngrams) > 1:
        most = n * (n + 1) // 2
        raise PolicyRefusal(NGRAMS, f"a word is in up to {most} tokens, and noise is for one: leave `ngrams` out")


def _scale(x: Array, weight: float) -> Array:
    """Multiply by a weight. Floating-point numbers keep their width, because float16 was chosen to halve the bytes."""
    return np.multiply(x, x.dtype.type(weight) if np.issubdtype(x.dtype, np.floating) else np.float64(weight))
