"""The contract between methods and engines: messages, steps, and the interfaces `Federation` and `Party`.

A method sees the server through `Federation` and a party through `Party`. Methods import no other module of
`federation` but `fields`; engines know no method.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, dataclass_transform, overload

from pydantic import BaseModel

from tertulia._arrays import Array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import FormatError
from tertulia.federation.fields import members, unbounded, undeclared
from tertulia.privacy.mechanisms import Mechanism, Randomiser

PartyId = str
Place = tuple[int, int]  # (round, ordinal within the round)
_T = TypeVar("_T")
_MESSAGES: dict[str, type] = {}
_STEP = "__tertulia_step__"  # attribute: the function is a step
_METRIC = "__tertulia_metric__"  # attribute: the step only scores a model
_DOING = "__tertulia_doing__"  # attribute: the text that people read while the step runs
_REPLIES = "__tertulia_replies__"  # attribute: what replies to the step are, see `Replies`
_NAMES = "__tertulia_names__"  # attribute: the step names words, which `each` may do beside secure sums
_ONE_LIST = "__tertulia_one_list__"  # attribute: masked sums of the step are over the same parties as others
_ATTRIBUTES = (_STEP, _METRIC, _DOING, _REPLIES, _NAMES, _ONE_LIST)
Replies = Literal["values", "changes", "standing"]


@dataclass_transform(frozen_default=True)
def message(cls: type[_T]) -> type[_T]:
    """Make a class a frozen dataclass, and register it by its qualified name so that the codec can encode it.

    A pydantic model, such as a method's settings, is registered unchanged. The receiver validates its values again.
    """
    settings = issubclass(cls, BaseModel)
    _MESSAGES[_name(cls)] = cls if settings else dataclasses.dataclass(frozen=True, eq=False)(cls)
    return cls


def message_name(value: Any) -> str:
    """Return the name that identifies a message's class on the wire."""
    name = _name(type(value))
    if name not in _MESSAGES:
        raise FormatError(f"{name} is not a message: decorate the class with @message")
    return name


def message_type(name: str) -> type:
    """Return the class of a received message; raise `FormatError` if this side has not registered it."""
    if name not in _MESSAGES:
        raise FormatError(f"unknown message '{name}': import the module that defines it (both sides need one version)")
    return _MESSAGES[name]


@overload
def step(function: _S) -> _S: ...


@overload
def step(
    *, doing: str = ..., metric: bool = ..., replies: Replies = ..., names_words: bool = ..., one_list: bool = ...
) -> Callable[[_S], _S]: ...


def step(
    function: _S | None = None,
    *,
    doing: str = "",
    metric: bool = False,
    replies: Replies = "values",
    names_words: bool = False,
    one_list: bool = False,
) -> _S | Callable[[_S], _S]:
    """Make a function a party step. Only its name is sent; a party runs it if one of its methods lists it in `STEPS`.

    `doing` is the text that people read while the step runs ("counting together"); the default is the function's name.
    The third parameter is annotated with the question's class, a message. Every integer in it must have a mark that
    bounds it (`federation.fields`).

    `metric` declares that the step only scores a model. A party whose policy refuses such a step still takes part in
    the round.

    `replies` declares what a party's replies are, for sums: `values` of this question; `changes`, the new contribution
    minus the one in the total (`party.counted`); or `standing`, values whose total holds the last reply of each party.
    Secure sums send `standing` values as changes, so that a list with other parties does not reveal single values.

    `names_words` declares that the replies name agreed words: the only ones that `each` may bring beside secure sums.
    `one_list` declares that replies of `values` tell what other sums tell, too. Masked sums of such steps, and of first
    contributions, are over the same parties: totals that differ by one party would show that party's numbers.
    """

    def mark(function: _S) -> _S:
        question = question_type(function)
        if any(_name_or_none(kind) not in _MESSAGES for kind in members(question)):
            raise TypeError(
                f"{_name(function)} does not say which message it takes: annotate its third parameter with a message, "
                "a class that is decorated with @message"
            )
        if open_ := list(undeclared(question)):
            raise TypeError(
                f"{_name(function)} takes values of any type: {', '.join(open_)}. Declare int, float, bool, str, an "
                "array, a message or settings, or a tuple, dict or union of these"
            )
        if missing := list(unbounded(question)):
            raise TypeError(
                f"{_name(function)} takes whole numbers that nothing bounds: {', '.join(missing)}. Annotate each with "
                "Capped(...), Between(...) or Uncapped(...) of tertulia.federation.fields"
            )
        declared = (True, metric, doing or function.__name__.replace("_", " "), replies, names_words, one_list)
        for attribute, value in zip(_ATTRIBUTES, declared, strict=True):
            setattr(function, attribute, value)
        return function

    return mark if function is None else mark(function)


@lru_cache(maxsize=256)
def question_type(function: Callable[..., Any]) -> Any:
    """Return the annotated type of a step's question; `Any` without an annotation, which `step` refuses."""
    names = list(inspect.signature(function).parameters)
    return typing.get_type_hints(function).get(names[2], Any) if len(names) > 2 else Any


def doing_of(function: Step) -> str:
    """Return the text that people read while a step runs."""
    return str(getattr(function, _DOING, function.__name__))


def is_metric(function: Step) -> bool:
    """Tell whether a step only scores a model."""
    return bool(getattr(function, _METRIC, False))


def replies_of(function: Step) -> Replies:
    """Return what a party's replies to a step are."""
    found: Replies = getattr(function, _REPLIES, "values")
    return found


def names_words(function: Step) -> bool:
    """Tell whether a step's replies name agreed words."""
    return bool(getattr(function, _NAMES, False))


def has_one_list(function: Step) -> bool:
    """Tell whether masked sums of a step are over the same parties as the other such sums of the run."""
    return bool(getattr(function, _ONE_LIST, False))


def step_name(function: Step) -> str:
    """Return the name by which questions refer to a step: its module and its qualified name."""
    name = _name(function)
    if not getattr(function, _STEP, False):
        raise FormatError(f"{name} is not a step: decorate the function with @step")
    return name


def _name_or_none(kind: Any) -> str | None:
    return _name(kind) if isinstance(kind, type) else None


def _name(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


def min_holders(members: int) -> int:
    """Return the number of members that must have a word before the server learns it, with secure sums.

    >>> min_holders(3), min_holders(8)
    (2, 3)
    """
    return 2 if members <= 3 else 3


@message
class Nothing:
    """The empty message or reply."""


class Randomness(NamedTuple):
    """Keys that regenerate a corpus's noisy reports, which the ledger has charged. They are secret and never leave."""

    parents: tuple[str, ...]  # ids of the charges; a release computed from the reports names them as its parents
    key: bytes  # 32 bytes for noise on the whole corpus; empty for reports by document
    documents: Array  # [D, 8] for reports by document: one key of eight 32-bit numbers per document
    drawn_from: tuple[Array, ...] = ()  # the arrays that the reports are drawn from, as they were given


class Party(Protocol):
    """The view that a step has of the party that runs it."""

    @property
    def id(self) -> PartyId:
        """The party's name."""

    @property
    def seed(self) -> int:
        """A 64-bit seed for the model's randomness, fixed by run, party and question. Never use it for noise."""

    @property
    def place(self) -> Place:
        """The place of this question in the run."""

    @property
    def counted(self) -> Place | None:
        """The place of this party's last reply to this step that the server added to a sum; None before the first.

        A step that replies with differences (`methods.common.contributions`) subtracts that reply's contribution. The
        party's last *answer* may be a later one, because the server does not count an answer that comes too late.
        """

    def documents(self, vocabulary: Vocabulary | None = None, part: str = "train", *, unknown: bool = False) -> Corpus:
        """Return the `train`, `heldout` or `validation` documents, over an agreed vocabulary or the party's own words.

        With `unknown`, words outside the vocabulary keep their positions as one additional word. Otherwise they are
        dropped, and then a document's length depends on its words. Use `unknown` wherever privacy of words is promised.
        """

    def setting(self, name: str, default: Any) -> Any:
        """Return the party's own value of a method's setting (for example its own K), else `default`, the server's."""

    @property
    def min_documents_per_cell(self) -> int:
        """The minimum number of documents in a cell of a table, by the party's policy; a step empties smaller cells."""

    @property
    def min_documents_per_word(self) -> int:
        """The minimum number of the party's documents that must contain a word before the party may disclose it."""

    @property
    def min_documents_per_topic(self) -> int:
        """The minimum number of the party's documents that must have a topic before its counts leave in a masked sum.

        Without secure sums it is 1: the server then sees each party's counts anyway.
        """

    @property
    def noise_shares(self) -> int:
        """The number of parties whose noise is in every sum and is known to nobody who could subtract it.

        With secure sums it is the fewest honest members of a list, so each party may add so much less noise
        (`SharedGaussian`). Without them it is 1: each party's reply needs all of the noise.
        """

    def sample(self, rate: float, contents: Sequence[Array], n: int) -> Array:
        """Choose units 0 to n - 1, each with probability `rate`, by coins that only this party can know.

        `contents` is all that the units hold. The same question about the same contents chooses the same units; no two
        questions share coins, and no change of the contents keeps them. A sum over the chosen units may be released by
        `SampledGaussian`. Never put the choice, or its size, into a reply.
        """

    @property
    def score_epsilon(self) -> float | None:
        """The epsilon per document of a noisy score, if the party's policy requires noise; None: scores are exact."""

    def release(self, x: Array, mechanism: Mechanism) -> Array:
        """Charge the ledger, then return an array that may be put into a reply. No data leave in another way."""

    def source_of(self, released: Array) -> str:
        """Return the id of a release, by which a later step can name it as a parent (`Derived`)."""

    def randomise(
        self, corpus: Corpus, mechanism: Randomiser, drawn_from: tuple[Array, ...] | None = None
    ) -> Randomness:
        """Charge once for noisy reports of a corpus's tokens; later rounds use the same reports at no cost.

        Later runs do so too, if the party has a `home` that keeps its key and its ledger beyond a run. When a corpus
        grows or changes, only new and edited documents are charged.

        `drawn_from` is all that the reports are drawn from besides the keys: by default the words and the offsets of
        documents. Draw from `randomness.drawn_from`, which holds the same arrays: an audit replays reports by it.

        Release a result that is computed from reports alone as `Derived(what, parents=randomness.parents)`.
        """

    def sum_tag(self, name: str, *released: Array) -> Array:
        """Return a tag [2] of released numbers: tags of all parties' numbers add up to the tag of their sum.

        Only members can make one. Without secure sums it is 0. Different names have different keys.
        """

    def check_sum(self, name: str, tag: Array, *numbers: Array) -> None:
        """Refuse numbers in a question that are no total of what members sent by this name; without secure sums, none.

        Sums and multiples of several such totals cannot be told apart from a total.
        """

    @property
    def continues(self) -> bool:
        """Whether the run continues an earlier model."""

    @property
    def min_holders(self) -> int:
        """The number of members that must have a word before the server learns it, with secure sums."""

    def word_tags(self, words: Sequence[str], purpose: str = "words") -> Array:
        """Return a tag [n, 16] for each word. Members get equal tags for equal words; the server cannot make them.

        Tags of different purposes have nothing in common.
        """

    def agree_to_words(self, tags: Array) -> None:
        """Record the tags of the words that the members have agreed on: the party accepts no other word from now on."""

    def check_words(self, words: Sequence[str]) -> None:
        """Raise an error unless the members have agreed on all these words."""

    def notes(self, step: Step) -> dict[PartyId, Any]:
        """Return all members' notes by `relay` of this step, once all members have signed that they have the same."""

    def notice(self, text: str) -> None:
        """Inform the party's own staff, in its log and on its standard error; the text is never put into a reply."""

    def keep(self, name: str, **arrays: Array) -> None:
        """Store arrays in the party's directory; they are never encoded into a message."""

    def kept(self, name: str) -> dict[str, Array]:
        """Return the arrays that `keep` stored under this name."""


Step = Callable[[Any, Any, Any], tuple[Any, Any]]
_S = TypeVar("_S", bound=Callable[..., tuple[Any, Any]])


class Planned(NamedTuple):
    """A release that a method will ask for. The plan is checked and shown before the run starts."""

    step: Step
    verb: str
    mechanism: Mechanism
    times: int  # the number of questions that ask for it
    most: int | None = 0  # upper limit, if something goes wrong; 0: same as `times`; None: depends on the documents
    masked: bool = False  # whether only its sum with those of other parties reaches the server: the run's terms say so


class Federation(Protocol):
    """The server's handle. The verb shows what is disclosed: `grep 'fed.each'` finds replies that are seen singly."""

    @property
    def parties(self) -> Sequence[PartyId]:
        """The parties that are members in this round; read it again in each round."""

    @property
    def round(self) -> int:
        """The number of commits so far."""

    @property
    def answered(self) -> Sequence[PartyId]:
        """The parties whose replies to the last question arrived. A mapping of messages asks only its keys."""

    def sum(self, step: Step, message: Any | Mapping[PartyId, Any]) -> Any:
        """Return the total of the parties' replies (a message of numeric arrays). The method sees only the total."""

    def mean(self, step: Step, message: Any | Mapping[PartyId, Any]) -> Any:
        """Return the mean of the replies, weighted by the field marked `Weight`; it is computed from sums."""

    def each(self, step: Step, message: Any | Mapping[PartyId, Any]) -> dict[PartyId, Any]:
        """Return the single replies, in clear, of the parties that answered."""

    def relay(self, step: Step, message: Any) -> None:
        """Let all members exchange notes that the server cannot read. It needs secure sums, and all members."""

    @property
    def secure(self) -> bool:
        """Whether sums are masked, so that the server learns only totals."""

    @property
    def noise_shares(self) -> int:
        """The number of parties that add the noise of a sum together (`Party.noise_shares`)."""

    def commit(self, state: _State, *, durable: int = 1, **metrics: Any) -> _State:
        """End a round: report the metrics, and write the state to disk every `durable` rounds."""


_State = TypeVar("_State")
