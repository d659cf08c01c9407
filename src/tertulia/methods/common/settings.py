"""The ground of all settings: how they are checked, how a part of them travels, and those that methods share.

A setting is declared once, as `name: type = Field(default, ..., description="...")`; `help()`, the reference page and
errors are made from that. Methods that share a setting inherit it, and may narrow its choices or change its default.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from tertulia.errors import ConfigError
from tertulia.methods.common.describe import document, explain

Share = Annotated[float, Field(ge=0, le=1)]
PriorMass = Annotated[float, Field(ge=1e-9, le=1e9)]  # kernels compute in 32 bits here and there
Positive = Annotated[int, Field(ge=1)]
PARTY: dict[str, Any] = {"party": ""}  # marks what a party may choose for itself; the text says what else it means
PATH: dict[str, Any] = {"path": ""}  # marks a path, which in a file is relative to that file; a text there is a name
_S = TypeVar("_S", bound="Settings")


class Settings(BaseModel):
    """Base of all sections: unknown keys are errors, values are fixed once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def part(self, kind: type[_S], **changes: Any) -> _S:
        """What these settings say of another class's fields, with some of them changed: the part that travels, say."""
        known = {name: getattr(self, name) for name in kind.model_fields if name in type(self).model_fields}
        return kind(**known | changes)

    def replace(self, **changes: Any) -> Self:
        """The same settings with some values changed, checked again."""
        return self.part(type(self), **changes)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Let a field that is declared anew keep its description, and the mark of a party's choice.

        Of a field that several bases have pydantic takes the first base's, which need not be the narrowest.
        """
        for name, field in cls.model_fields.items():
            owner, *others = (k for k in cls.__mro__ if name in inspect.get_annotations(k) and issubclass(k, Settings))
            if owner is not cls and field.annotation != owner.model_fields[name].annotation:
                raise TypeError(f"bases of {cls.__name__}: {owner.__name__}, which narrows '{name}', must come first")
            for other in others if owner is cls else ():
                field.description = field.description or other.model_fields[name].description
                field.json_schema_extra = field.json_schema_extra or other.model_fields[name].json_schema_extra

    @model_validator(mode="before")
    @classmethod
    def _right_section(cls, values: Any) -> Any:
        """Say where a key belongs that stands beside its section, not in it."""
        sections = {name: f.annotation for name, f in cls.model_fields.items() if isinstance(f.annotation, type)}
        for key in set(values) - set(cls.model_fields) if isinstance(values, dict) else ():
            for section, kind in sections.items():
                if issubclass(kind, Settings) and key in kind.model_fields:
                    raise PydanticCustomError("misplaced", "misplaced", {"key": key, "section": section})
        return values


def has_mark(field: FieldInfo, mark: str) -> bool:
    """Whether a field is marked, as one that a party may choose, say."""
    return isinstance(field.json_schema_extra, dict) and mark in field.json_schema_extra


def own_choices(kind: type[Settings]) -> dict[str, FieldInfo]:
    """The fields of a class that a party may choose for itself."""
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


class SweepsAlone(NamedTuple):
    """How many sweeps a party makes that trains alone as long as a federation does."""

    per_round: int  # in a round in which it trains alone
    rounds: int  # of these
    more: int  # sweeps that all parties make together


class MethodSettings(Settings):
    """Settings of a method, and what a run must know of it."""

    name: str = Field(description="the method")
    federates: ClassVar[bool] = True  # baselines do not
    takes_validation: ClassVar[bool] = False  # whether parties may set documents aside to choose a model by

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
    def sweeps_alone(self) -> SweepsAlone | None:
        """With how many sweeps a party trains alone, to choose between models; None: it does not choose."""
        return None

    def for_one_party(self) -> MethodSettings:
        """The method as a single party would use it."""
        return self


class VocabularySettings(Settings):
    """How parties agree on words."""

    mode: Literal["union", "min_parties", "public"] = Field(
        "union",
        description="`union`: every word that a party proposes. `min_parties`: words of at least so many parties. "
        "`public`: a given word list, and nothing about the data is sent; else every party sends its words with "
        "document counts, but for those that its policy withholds (`min_documents_per_word`)",
    )
    min_parties: Positive = Field(2, description="parties that must have a word, in mode `min_parties`")
    min_documents: Positive = Field(2, description="documents that must hold a word, in all parties together")
    max_share: Share = Field(0.5, description="words in a larger share of all documents are left out")
    max_words: Positive | None = Field(
        None, description="keep so many of the most frequent words, of a public list the first; None: all"
    )
    words: tuple[str, ...] = Field(
        (),
        description="the word list of mode `public`; also the path of a file with one word per line, or `english`: a "
        "list of 30,000 common words that comes with the package. `tertulia words` makes one from public documents",
        json_schema_extra={"path": "english"},
    )

    @model_validator(mode="after")
    def _public_needs_words(self) -> VocabularySettings:
        if (self.mode == "public") != bool(self.words):
            raise ValueError("mode 'public' and a word list `words` go together: give both or neither")
        return self

    @field_validator("words", mode="before")
    @classmethod
    def _words_from_file(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str | Path):
            from tertulia.corpus.vocabulary import public

            value = public(value).words
        return value[: info.data.get("max_words")] if isinstance(value, tuple | list) else value


class OverWords(Settings):
    """Whatever has a vocabulary."""

    vocabulary: VocabularySettings = Field(VocabularySettings(), description="how parties agree on words")


class Threads(Settings):
    """Whatever runs on several threads."""

    threads: Positive = Field(
        1, description="threads to train with; results do not depend on them", json_schema_extra=PARTY
    )


class Rounds(Settings):
    """Whatever has a fixed number of rounds."""

    rounds: Positive = Field(10, description="rounds of the federation")


class Seeded(Settings):
    """Whatever draws numbers at the server."""

    seed: int | None = Field(None, description="of the server's random numbers; None: the run's")


class TopicCount(Settings):
    """Whatever has topics."""

    topics: Positive = Field(20, description="number of topics (K)", json_schema_extra=PARTY)


class TopicPriors(TopicCount):
    """Topics and their priors."""

    alpha: PriorMass = Field(5.0, description="sum of theta's Dirichlet prior over all topics", json_schema_extra=PARTY)
    beta: PriorMass = Field(0.01, description="phi's Dirichlet prior, of each word", json_schema_extra=PARTY)


class AlphaLearning(Settings):
    """Whatever could learn theta's prior."""

    learn_alpha: bool = Field(
        True, description="learn each topic's alpha from the documents; false: it stays `alpha` / `topics` for all"
    )


class Sweeps(Settings):
    """Whatever passes over its documents several times."""

    sweeps: Positive = Field(
        50, description="passes over the documents; in a federation, those of a round", json_schema_extra=PARTY
    )


class Privacy(Settings):
    """How private the parties' documents are kept."""

    mode: Literal["clear", "paper", "sound"] = Field(
        "clear",
        description="`clear`: no noise. `paper`: the noise of the paper, which keeps less than it claims. `sound`: all "
        "that leaves is computed from private reports",
    )
    epsilon: float | None = Field(
        None,
        gt=0,
        description="the privacy parameter of one token, for modes `paper` and `sound`: in `sound` for another word in "
        "its place, whatever the channel; in `paper` the paper's",
        json_schema_extra={"party": "its own epsilon, if smaller than the method's; a larger one is ignored"},
    )

    @model_validator(mode="after")
    def _epsilon_with_noise(self) -> Self:
        if (self.mode == "clear") == (self.epsilon is not None):
            raise ValueError("an epsilon goes with mode 'paper' or 'sound', and these need one")
        return self


class Evaluated(Rounds, Privacy, TopicPriors):
    """Whatever trains topics in rounds, and can score them in each."""

    more_rounds: Positive = Field(
        3, description="rounds of a run that goes on from an earlier model (`start_from`), in place of `rounds`"
    )
    evaluate: bool | None = Field(
        None,
        description="score the model on held-out documents in each round; None: unless the mode is `sound`, for scores "
        "leave a party without noise",
    )

    @property
    def evaluates(self) -> bool:
        """Whether held-out documents are scored in each round."""
        return self.mode != "sound" if self.evaluate is None else self.evaluate
