"""The contract between methods and engines: messages, steps, the `Federation` handle and the `Party` in a step.

Methods import nothing else of this package; engines know no method.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, dataclass_transform

from pydantic import BaseModel

from tertulia._arrays import Array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import FormatError
from tertulia.privacy.mechanisms import Mechanism, Randomiser

PartyId = str
_T = TypeVar("_T")
_MESSAGES: dict[str, type] = {}
_STEP = "__tertulia_step__"  # marks a function that may be asked for


@dataclass_transform(frozen_default=True)
def message(cls: type[_T]) -> type[_T]:
    """Make a class a message that the codec can carry, known by its qualified name: a frozen dataclass.

    A pydantic model, such as a method's settings, stays what it is; its values are checked again where it arrives.
    """
    settings = issubclass(cls, BaseModel)
    _MESSAGES[_name(cls)] = cls if settings else dataclasses.dataclass(frozen=True, eq=False)(cls)
    return cls


def message_name(value: Any) -> str:
    """The name under which a message travels."""
    name = _name(type(value))
    if name not in _MESSAGES:
        raise FormatError(f"{name} is not a message: decorate the class with @message")
    return name


def message_type(name: str) -> type:
    """The class of a message that arrived, if this side knows it."""
    if name not in _MESSAGES:
        raise FormatError(f"unknown message '{name}': import the module that defines it (both sides need one version)")
    return _MESSAGES[name]


def step(function: _S) -> _S:
    """Make a function a party step. Only its name travels; a party runs it if one of its methods has it in `STEPS`."""
    setattr(function, _STEP, True)
    return function


def step_name(function: Step) -> str:
    """The name under which a step is asked for: its module and its own."""
    name = _name(function)
    if not getattr(function, _STEP, False):
        raise FormatError(f"{name} is not a step: decorate the function with @step")
    return name


def _name(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


@message
class Nothing:
    """The empty message or reply."""


class Randomness(NamedTuple):
    """The right to regenerate a corpus's noisy reports, once they are charged. Its keys are secret and never leave."""

    parents: tuple[str, ...]  # the charges: parents of everything that is computed from the reports
    key: bytes  # 32 bytes, for noise that belongs to the whole corpus; else none
    documents: Array  # [D, 8] a key of eight 32-bit numbers for each document, for reports that belong to documents


class Party(Protocol):
    """What a step sees of the party it runs at."""

    @property
    def id(self) -> PartyId:
        """The party's name."""

    @property
    def seed(self) -> int:
        """A 64-bit key for the model's randomness, fixed by run, party and question: never use it for noise."""

    def documents(self, vocabulary: Vocabulary | None = None, part: str = "train", *, unknown: bool = False) -> Corpus:
        """The `train`, `heldout` or `validation` documents, over an agreed vocabulary or over the party's own words.

        With `unknown`, words off the list keep their places as one word more; else they are dropped, and how many are
        left says something about words. Whatever promises privacy for words needs the former.
        """

    def setting(self, name: str, default: Any) -> Any:
        """The party's own value of a method's setting (its own K, say), else the server's."""

    @property
    def min_documents_per_cell(self) -> int:
        """How many documents a cell of a table must count, by the party's policy: a step empties smaller ones."""

    @property
    def min_documents_per_word(self) -> int:
        """How many of its documents must have a word before the party may name it to anybody."""

    @property
    def score_epsilon(self) -> float | None:
        """What a score may cost a document, where the party's policy lets scores out under noise alone; None: exact."""

    def release(self, x: Array, mechanism: Mechanism) -> Array:
        """The only door out: charge the ledger, then return what may be put into a reply."""

    def randomise(self, corpus: Corpus, mechanism: Randomiser) -> Randomness:
        """Charge for noisy reports of a corpus's tokens: the same reports cost nothing in later rounds.

        Nor in later runs, if the party has a `home`, where its key and its ledger outlast the run. Of a corpus that has
        grown or changed, only new and edited documents are reported anew.

        What is computed from them alone leaves as `Derived(what, parents=randomness.parents)`.
        """

    def notice(self, text: str) -> None:
        """Tell the party's own people something, in its log and on its standard error; it is never put into a reply."""

    def keep(self, name: str, **arrays: Array) -> None:
        """Store what is the party's own; it is never encoded into a message."""

    def kept(self, name: str) -> dict[str, Array]:
        """What `keep` stored under this name."""


Step = Callable[[Any, Any, Any], tuple[Any, Any]]
_S = TypeVar("_S", bound=Callable[..., tuple[Any, Any]])


class Planned(NamedTuple):
    """A release that a method is going to ask for, so that it can be checked and shown beforehand."""

    step: Step
    verb: str
    mechanism: Mechanism
    times: int


class Federation(Protocol):
    """The server's handle. The verb is the disclosure: `grep 'fed.each'` lists what is seen of single parties."""

    @property
    def parties(self) -> Sequence[PartyId]:
        """Who is there now; read it anew each round."""

    @property
    def round(self) -> int:
        """The number of commits so far."""

    @property
    def answered(self) -> Sequence[PartyId]:
        """Whose replies the last question got; a message by party asks only those that it names."""

    def sum(self, step: Step, message: Any | Mapping[PartyId, Any]) -> Any:
        """The total of the parties' replies (a message of numeric arrays): all that a method sees of them."""

    def mean(self, step: Step, message: Any | Mapping[PartyId, Any]) -> Any:
        """The mean of the replies, weighted by their field `weight`, by the same path as `sum`."""

    def each(self, step: Step, message: Any | Mapping[PartyId, Any]) -> dict[PartyId, Any]:
        """Single parties' replies, in clear, from those who answered."""

    def commit(self, state: _State, *, durable: int = 1, **metrics: Any) -> _State:
        """End a round: keep the state durably (every `durable` rounds) and report the metrics."""


_State = TypeVar("_State")
