"""The settings of a run, as users write them in TOML or pass them to the API. Errors name key, value and remedy.

seed = 1
directory = "runs/hospitals"

[method]
name = "ftm"
topics = 50

[parties.north]
path = "north.jsonl"
topics = 30            # its own choice
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, create_model, field_validator, model_validator
from pydantic.fields import FieldInfo

from tertulia.corpus import TextOptions
from tertulia.errors import ConfigError, InputError
from tertulia.federation.engines.base import check_engine
from tertulia.methods import METHODS, SETTINGS, Method
from tertulia.methods.common.settings import (
    Explained,
    Positive,
    Settings,
    Share,
    Threads,
    own_choices,
)
from tertulia.methods.ftm.settings import FTMSettings

PartyName = Annotated[str, Field(min_length=1)]


class SourceSettings(Settings):
    """Where documents are, and which columns mean what."""

    path: str | list[str] | None = None  # a file, a folder of texts, a pattern, or several of these
    text: str | list[str] = "text"
    id: str | None = None
    date: str | None = None
    label: str | None = None
    encoding: str = "utf-8"
    embeddings: str | None = None  # a file of vectors, one for each row, for models that read sentences

    def source(self) -> dict[str, Any]:
        """The arguments of `corpus.read`."""
        return {name: getattr(self, name) for name in SourceSettings.model_fields}


class PartyTerms(SourceSettings):
    """What every method's party has: its documents, its policy, its time of membership."""

    policy: str | None = Field(None, description="a TOML file with the party's own rules of privacy")
    home: str | None = Field(None, description="a directory where its ledger and noise key live from run to run")
    joins: int = Field(0, ge=0, description="the round in which it joins")
    leaves: int | None = Field(None, ge=1, description="the round in which it leaves; None: it stays")

    def choices(self) -> dict[str, Any]:
        """The method's settings that this party sets itself."""
        return {name: value for name, value in self if name not in PartyTerms.model_fields and value is not None}


def _choices() -> dict[str, Any]:
    """Every setting that a party may choose for itself, as it is first declared; None: as the method says."""
    found: dict[str, FieldInfo] = {}
    for kind in (Threads, *SETTINGS):
        for base in reversed(kind.__mro__):
            found = own_choices(base) | found if issubclass(base, Settings) else found
    kinds = {name: Annotated[(field.annotation, name, *field.metadata)] for name, field in found.items()}
    return {name: (kinds[name] | None, Field(None, description=field.description)) for name, field in found.items()}


if TYPE_CHECKING:
    PartySettings = PartyTerms
else:
    PartySettings = create_model("PartySettings", __base__=PartyTerms, __doc__="One party.", **_choices())


class DataSettings(SourceSettings):
    """One source that is cut into parties, to simulate a federation."""

    split: Literal["column", "file", "random", "dirichlet"] = "column"
    party: str = "party"  # the column, for split = "column"
    sizes: dict[str, float] = {"north": 1.0, "south": 1.0, "west": 1.0}  # for "random"
    parties: list[str] = ["north", "south", "west"]  # for "dirichlet"
    concentration: float = Field(default=0.5, gt=0)  # for "dirichlet": small is skewed


class DropoutSettings(Settings):
    """Simulated absences."""

    rate: Share = 0.0
    script: dict[int, tuple[str, ...]] = {}


class FederationSettings(Settings):
    """The terms on which parties meet."""

    quorum: Share = 0.5
    timeout: float | None = Field(default=None, gt=0)
    on_failure: Literal["stop", "skip"] = "stop"
    dropouts: DropoutSettings = DropoutSettings()


class RunSettings(Explained):
    """A whole run."""

    seed: int = 0
    directory: str = "runs/run"
    engine: Annotated[str, AfterValidator(check_engine)] = "local"
    workers: Positive = 1
    heldout: float = Field(default=0.1, ge=0, lt=1)
    validation: float = Field(default=0.0, ge=0, lt=1)  # share of documents by which parties choose a model
    method: Method = FTMSettings()
    text: dict[str, Any] = {}  # the fields of TextOptions
    parties: dict[PartyName, PartySettings] = {}
    data: DataSettings | None = None
    federation: FederationSettings = FederationSettings()

    @model_validator(mode="after")
    def _one_source(self) -> RunSettings:
        own = [name for name, party in self.parties.items() if party.path is not None]
        if self.data is not None and own:
            raise ValueError(f"[data] is split into parties, so [parties.{own[0]}] cannot have a path of its own")
        return self

    @model_validator(mode="after")
    def _documents_to_choose_by(self) -> RunSettings:
        if self.heldout + self.validation >= 1:
            raise ValueError(f"heldout {self.heldout} and validation {self.validation} leave nothing to train on")
        if self.validation and not self.method.takes_validation:
            fitting = ", ".join(f"'{name}'" for name, method in METHODS.items() if method.settings.takes_validation)
            raise ValueError(
                f"validation = {self.validation} goes with the methods {fitting}, not with '{self.method.name}': leave "
                "it out"
            )
        return self

    @property
    def chooses(self) -> bool:
        """Whether each party chooses a model for itself in the end."""
        return self.validation > 0 and self.method.sweeps_alone is not None

    @field_validator("method", mode="before")
    @classmethod
    def _ftm_unless_named(cls, value: Any) -> Any:
        return {"name": "ftm", **value} if isinstance(value, dict) else value

    @field_validator("method")
    @classmethod
    def _seeded_like_the_run(cls, value: Any, info: ValidationInfo) -> Any:
        if getattr(value, "seed", 0) is None:
            return value.model_copy(update={"seed": info.data.get("seed")})
        return value

    @field_validator("text")
    @classmethod
    def _text_options(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            return TextOptions.from_dict(value).to_dict()
        except (TypeError, InputError) as error:
            raise ValueError(str(error)) from error


def load(path: str | Path) -> RunSettings:
    """Read a TOML file; paths inside it are relative to it."""
    path = Path(path)
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no config file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    _anchor(raw, path.parent)
    try:
        return RunSettings(**raw)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _anchor(raw: dict[str, Any], base: Path) -> None:
    """Make the paths in a config relative to the config's own place."""

    def anchored(value: Any) -> Any:
        if isinstance(value, list):
            return [anchored(v) for v in value]
        return os.path.normpath(base / value) if isinstance(value, str) else value

    sections = [s for s in raw.get("parties", {}).values() if isinstance(s, dict)]
    for section, keys in [(s, ("path", "policy", "home", "embeddings")) for s in sections] + [
        (raw.get("data"), ("path", "embeddings")),
        (raw.get("method", {}).get("vocabulary"), ("words",)),
        (raw.get("method"), ("vectors", "relations")),
        (raw, ("directory",)),
    ]:
        for key in keys:
            if isinstance(section, dict) and isinstance(section.get(key), str | list):
                if key == "words" and isinstance(section[key], list):
                    continue
                section[key] = anchored(section[key])
