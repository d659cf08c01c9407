"""The base of all settings, how a part of them travels, and the settings that methods share.

A method has one flat class of settings. A setting of its own is declared there; one that methods share is an alias
here, which carries its type, bounds, description and marks. `help()`, the reference and errors are made from these.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from tertulia.errors import ConfigError
from tertulia.federation.fields import Capped, Least, OneOf
from tertulia.federation.types import min_holders
from tertulia.methods.common.descriptions import document, explain

if TYPE_CHECKING:
    from tertulia.corpus import Corpus
    from tertulia.models import Topics

LEAST_EPSILON = 1e-3  # below it noise takes memory without bound
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[int, Field(ge=1)]
PARTY: dict[str, Any] = {"party": ""}  # marks what a party may choose for itself; the text says what else it means
PATH: dict[str, Any] = {"path": ""}  # marks a path, which in a file is relative to that file; a text there is a name
_S = TypeVar("_S", bound="Settings")


class Settings(BaseModel):
    """Base of all sections: unknown keys are errors, values are fixed once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def part(self, kind: type[_S], **changes: Any) -> _S:
        """Return the values of another class's fields, with some of them changed: the part that travels, say."""
        known = {name: getattr(self, name) for name in kind.model_fields if name in type(self).model_fields}
        return kind(**known | changes)

    def replace(self, **changes: Any) -> Self:
        """Return the same settings with some values changed, checked again."""
        return self.part(type(self), **changes)

    @model_validator(mode="before")
    @classmethod
    def _right_section(cls, values: Any) -> Any:
        """Name the section of a key that stands beside it, not in it."""
        sections = {name: f.annotation for name, f in cls.model_fields.items() if isinstance(f.annotation, type)}
        for key in set(values) - set(cls.model_fields) if isinstance(values, dict) else ():
            for section, kind in sections.items():
                if issubclass(kind, Settings) and key in kind.model_fields:
                    raise PydanticCustomError("misplaced", "misplaced", {"key": key, "section": section})
        return values


def has_mark(field: FieldInfo, mark: str) -> bool:
    """Return whether a field is marked, as one that a party may choose, say."""
    return isinstance(field.json_schema_extra, dict) and mark in field.json_schema_extra


def own_choices(kind: type[Settings]) -> dict[str, FieldInfo]:
    """Return the fields of a class that a party may choose for itself."""
    return {name: field for name, field in kind.model_fields.items() if has_mark(field, "party")}


class Explained(Settings):
    """Settings that users make themselves, with errors in our words, and a docstring that lists them."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Let `help()` show every setting."""
        super().__pydantic_init_subclass__(**options)
        cls.__doc__ = document(cls, inspect.cleandoc(cls.__dict__.get("__doc__") or ""))

    def __init__(self, **values: Any) -> None:
        """Check the settings, which are listed above, and keep them."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(explain(error, type(self).model_fields)) from None
        except UnicodeEncodeError:
            raise ConfigError("settings hold half a character (a lone surrogate), which is no text") from None


# `paper`: the paper's, which keeps less than it claims; `sound`: of words; `doc`: of whole documents
Noise = Literal["none", "paper", "sound", "doc"]


class SweepsAlone(NamedTuple):
    """The sweeps of a party that trains alone as long as a federation does."""

    per_round: int  # in a round in which it trains alone
    rounds: int  # of these
    more: int  # sweeps that all parties make together


class MethodSettings(Settings):
    """Settings of a method, and facts about it that a run needs."""

    name: str = Field(description="the method")
    federates: ClassVar[bool] = True  # baselines do not
    takes_validation: ClassVar[bool] = False  # whether parties may set documents aside to choose a model by
    samples_lda: ClassVar[bool] = False  # whether parties sample LDA with the settings of `lda_settings`
    continues: ClassVar[bool] = False  # whether it can begin with an earlier model: its module has `continue_from`
    audited: ClassVar[Mapping[str, Any]] = {}  # settings of an audit (`common.audited`), so that nothing adapts to data

    @property
    def pools(self) -> bool:
        """Whether all documents are brought to one place, for comparison."""
        return False

    @property
    def keeps_text(self) -> bool:
        """Whether parties need their texts, not only their words."""
        return False

    @property
    def passes(self) -> int | None:
        """How often training passes over the documents, if that is known beforehand."""
        return None

    @property
    def planned_rounds(self) -> int | None:
        """The number of rounds, if that is known beforehand."""
        return None

    @property
    def noisy_rounds(self) -> int:
        """How often one step may be asked with a party's own epsilon (0: any number)."""
        return self.planned_rounds or 0

    def rounds_in_all(self, *, continues: bool) -> int | None:
        """Return the planned rounds and the one before them, in which parties agree on words; `continues` a model."""
        return None if self.planned_rounds is None else self.planned_rounds + 1

    @property
    def planned_topics(self) -> int | None:
        """The number of topics that is asked for: the setting that is marked as the length of axis K."""
        for name, field in type(self).model_fields.items():
            if any(isinstance(mark, Capped) and mark.axis == "K" for mark in field.metadata):
                return int(getattr(self, name))
        return None

    @property
    def noise(self) -> Noise | None:
        """The noise on what leaves a party; a party's own epsilon can add to it. None: it is not known."""
        return "none"

    @property
    def has_noise(self) -> bool:
        """Whether what leaves a party has noise."""
        return self.noise not in (None, "none")

    def with_own_epsilon(self, own: float) -> Self:
        """Return the settings with the noise that a party's own epsilon asks for, if that is more."""
        return self

    @property
    def sweeps_alone(self) -> SweepsAlone | None:
        """With how many sweeps a party trains alone, to choose between models; None: it does not choose."""
        return None

    def for_one_party(self) -> MethodSettings:
        """Return the method as a single party would use it."""
        return self

    def continued(self) -> Self:
        """Return the settings of a run that begins with an earlier model."""
        return self

    def taking_over(self, last: Topics) -> Self:
        """Return the settings with what the earlier model keeps for its topics, such as their seeds."""
        return self

    def why_not(self, last: Topics) -> str | None:
        """Say why training cannot begin with this model; None: it can."""
        return None

    def outlook(self, corpora: Sequence[Corpus], louder: float) -> str | None:
        """Say what can be learned under the noise, before anything is spent; None: it is not known.

        `corpora` are all parties' documents, or empty; `louder` is how much more noise a total has than planned.
        """
        return None

    def why_not_secure(self, *, continues: bool) -> str | None:
        """Say why sums cannot be secure, if the run continues an earlier model or not; None: they can."""
        if not self.federates:
            return "it does not federate"
        words, private = self.vocabulary_settings, self.noise in ("sound", "doc")
        if words is None or words.in_secret or words.mode == "private" or (words.mode == "public" and private):
            return None
        if words.mode == "public":
            shown = "the sums would show words of the list that one party alone has"
            return f"{shown}: set vocabulary.mode = 'listed', which leaves them out"
        return (
            f"vocabulary mode '{words.mode}' sends every party's words in clear: set vocabulary.mode = 'common', or "
            "'listed' with a word list"
        )

    def check_plain(self) -> None:
        """Raise `ValueError` if these settings need secure sums."""
        if self.vocabulary_settings is not None and self.vocabulary_settings.in_secret:
            raise ValueError(
                f"vocabulary mode '{self.vocabulary_settings.mode}' needs secure sums: set federation.secure = true"
            )

    @property
    def vocabulary_settings(self) -> VocabularySettings | None:
        """The settings by which parties agree on words, if the method has any."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return next((value for value in values if isinstance(value, VocabularySettings)), None)


FEW_DOCUMENTS = 10  # among fewer, limits that nobody has set would leave next to nothing
MANY_DOCUMENTS = 1 << 62  # stands for those of an earlier model, which are not counted again


class Limits(NamedTuple):
    """How rare and how common a word may be."""

    min_documents: int
    max_share: float


class VocabularySettings(Settings):
    """How parties agree on words."""

    mode: Literal["union", "min_parties", "public", "private", "listed", "common"] = Field(
        "union",
        description="`union`: every word that a party proposes. `min_parties`: words of several parties. In both, "
        "every party sends its words with document counts, but for those that its policy withholds "
        "(`min_documents_per_word`). `public`: a given word list, and nothing about the data is sent. `private`: words "
        "that each party chooses under noise (`epsilon`). With secure sums the server learns only words that several "
        "members have: `listed`, of a given list, or `common`, of any words",
    )
    epsilon: float | None = Field(
        None,
        gt=0,
        description="of a document, for words that a party names under noise: those of mode `private`, and in modes "
        "`listed` and `common` further ones; None: none",
    )
    delta: float = Field(1e-6, gt=0, lt=1, description="beside this epsilon; smaller than 1 / documents")
    words_per_document: Positive = Field(100, description="words of a document that count for these names")
    min_parties: Positive | None = Field(
        None,
        description="parties that must have a word, in modes `min_parties`, `listed` and `common`; None: 2, and in the "
        "last two 3 among more than three parties, which is also their minimum",
    )
    min_documents: Positive | None = Field(
        None,
        description="documents that must hold a word, in all parties together; None: 2, and 1 where there are fewer "
        f"than {FEW_DOCUMENTS} documents in all",
    )
    max_share: Share | None = Field(
        None,
        description="words in a larger share of all documents are left out; None: 0.5, and 1 where there are fewer "
        f"than {FEW_DOCUMENTS} documents in all",
    )
    max_words: Positive | None = Field(
        None, description="keep this number of the most frequent words, of a public list the first; None: all"
    )
    phrases: bool = Field(False, description="keep only n-grams (text.ngrams) that are phrases, by the totals")
    words: tuple[str, ...] = Field(
        (),
        description="the word list of modes `public` and `listed`; also the path of a file with one word per line, or "
        "`english`: a list of 30,000 common words that comes with the package. `tertulia words` makes one from public "
        "documents",
        json_schema_extra={"path": "english"},
    )

    @property
    def in_secret(self) -> bool:
        """Whether members agree on words by secure sums."""
        return self.mode in ("listed", "common")

    @model_validator(mode="after")
    def _noise_where_it_is_used(self) -> VocabularySettings:
        if self.mode == "private" and self.epsilon is None:
            raise ValueError("mode 'private' needs an epsilon of a document: set vocabulary.epsilon")
        if self.epsilon is not None and self.mode not in ("private", "listed", "common"):
            raise ValueError(f"vocabulary.epsilon goes with modes 'private', 'listed' and 'common', not '{self.mode}'")
        return self

    def least_holders(self, members: int) -> int:
        """Return how many of all members must have a word, with secure sums."""
        return max(min_holders(members), self.min_parties or 0)

    def limits(self, n_documents: int) -> Limits:
        """Return the limits among all parties' documents; given limits hold for any number of documents."""
        least, most = (2, 0.5) if n_documents >= FEW_DOCUMENTS else (1, 1.0)
        least = least if self.min_documents is None else self.min_documents
        return Limits(least, most if self.max_share is None else self.max_share)

    @model_validator(mode="after")
    def _public_needs_words(self) -> VocabularySettings:
        if (self.mode in ("public", "listed")) != bool(self.words):
            raise ValueError("mode 'public' or 'listed' and a word list `words` go together: give both or neither")
        return self

    @field_validator("words", mode="before")
    @classmethod
    def _words_from_file(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str | Path):
            from tertulia.corpus.vocabulary import public

            value = public(value).words
        return value[: info.data.get("max_words")] if isinstance(value, tuple | list) else value


# --- settings that methods share --------------------------------------------------------------------------------------

AgreedWords = Annotated[VocabularySettings, Field(description="how parties agree on words")]
Threads = Annotated[
    int, Field(ge=1, description="threads to train with; results do not depend on them", json_schema_extra=PARTY)
]
TopicCount = Annotated[
    int,
    Field(ge=1, description="number of topics (K)", json_schema_extra=PARTY),
    Capped("max_topics", axis="K"),
]
Rounds = Annotated[int, Field(ge=1), Capped("max_rounds")]
PriorMass = Annotated[float, Field(ge=1e-9, le=1e9)]  # kernels compute in 32 bits here and there
AlphaSum = Annotated[
    PriorMass, Field(description="sum of theta's Dirichlet prior over all topics", json_schema_extra=PARTY)
]
Beta = Annotated[PriorMass, Field(description="phi's Dirichlet prior, of each word", json_schema_extra=PARTY)]
LearnAlpha = Annotated[
    bool, Field(description="learn each topic's alpha from the documents; false: it stays `alpha` / `topics` for all")
]
Sweeps = Annotated[
    int,
    Field(ge=1, description="passes over the documents; in a federation, those of a round", json_schema_extra=PARTY),
    Capped("max_sweeps"),
    OneOf(("sweeps", "start_sweeps", "continued_sweeps")),
]
Mode = Annotated[
    Literal["clear", "paper", "sound"],
    Field(
        description="`clear`: no noise. `paper`: the noise of the paper, which keeps less than it claims. `sound`: all "
        "that leaves is computed from private reports"
    ),
]
Epsilon = Annotated[
    float | None,
    Field(
        gt=0,
        description="the privacy parameter of one token, for modes `paper` and `sound`: in `sound` for another word in "
        "its place, whatever the channel; in `paper` the paper's",
        json_schema_extra={"party": "its own epsilon, if smaller than the method's; a larger one is ignored"},
    ),
    Least(LEAST_EPSILON),
]
DocumentEpsilon = Annotated[
    Epsilon,
    Field(description="for mode `doc`: the privacy parameter of one document, there or not, for the whole run"),
]
DocumentDelta = Annotated[
    float, Field(gt=0, lt=1, description="beside this epsilon; smaller than 1 / documents"), Least(1e-300)
]
MoreRounds = Annotated[
    int,
    Field(ge=1, description="rounds of a run that goes on from an earlier model (`start_from`), in place of `rounds`"),
    Capped("max_rounds"),
]
Evaluate = Annotated[
    bool | None,
    Field(
        description="score the model on held-out documents in each round; None: unless the mode is `sound`, for scores "
        "leave a party without noise"
    ),
]


def check_epsilon(mode: str, epsilon: float | None) -> None:
    """Raise unless there is an epsilon where the mode has noise, and only there."""
    if (mode == "clear") == (epsilon is not None):
        raise ValueError("an epsilon goes with mode 'paper' or 'sound', and these need one")


def check_word_list(mode: str, vocabulary: VocabularySettings) -> None:
    """Raise unless mode `sound` has a public word list."""
    if mode == "sound" and vocabulary.mode not in ("public", "private"):
        needs = "a public word list (vocabulary.mode = 'public') or one under noise ('private')"
        raise ValueError(f"mode 'sound' needs {needs}: other ways to agree show words")


def why_no_start(last: Topics, topics: int | None) -> str | None:
    """Say why a method of counts with this number of shared topics (None: any) cannot begin with a model, or None."""
    if last.encoder is not None:
        return "only gfedntm goes on from neural models, and no method from clusters of documents"
    if topics is not None and topics < last.n_topics:
        return f"it has {last.n_topics} topics, and topics = {topics}: ask for as many, or for more to have new ones"
    return None
