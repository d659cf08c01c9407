"""What all settings have in common: strict keys, and errors that name key, value and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tertulia.errors import ConfigError

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[int, Field(ge=1)]
PartyName = Annotated[str, Field(min_length=1)]


class Settings(BaseModel):
    """Base of all sections: unknown keys are errors, values are fixed once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Explained(Settings):
    """Settings that users make themselves, with errors in our words."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(explain(error)) from None


def explain(error: ValidationError) -> str:
    """Say which key is wrong, what it holds, and what it should."""
    lines = []
    for problem in error.errors():
        path = problem["loc"]
        if path[:1] == ("method",):  # its second part is the kind of method, no key
            path = (path[0], *path[2:])
        key = ".".join(str(part) for part in path) or "settings"
        if problem["type"] == "extra_forbidden":
            lines.append(f"unknown key '{key}': remove it, or check its spelling")
        elif problem["type"] == "missing":
            lines.append(f"'{key}' is missing: add it")
        else:
            reason = problem["msg"].removeprefix("Value error, ")
            lines.append(f"{key} = {problem['input']!r}: {reason[0].lower()}{reason[1:]}")
    return "; ".join(lines)


class VocabularySettings(Settings):
    """How parties agree on words."""

    mode: Literal["union", "min_parties", "public"] = "union"
    min_parties: Positive = 2
    min_documents: Positive = 2
    max_share: Share = 0.5
    max_words: Positive | None = None
    words: tuple[str, ...] = ()  # mode "public": the word list, or in TOML the path of a file with a word a line

    @model_validator(mode="after")
    def _public_needs_words(self) -> VocabularySettings:
        if (self.mode == "public") != bool(self.words):
            raise ValueError("mode 'public' and a word list `words` go together: give both or neither")
        return self

    @field_validator("words", mode="before")
    @classmethod
    def _words_from_file(cls, value: Any) -> Any:
        if isinstance(value, str | Path):
            from tertulia.corpus.vocabulary import public

            return public(value).words
        return value
