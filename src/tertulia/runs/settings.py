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
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationInfo, create_model, field_validator, model_validator
from pydantic.fields import FieldInfo

from tertulia._plain import check_plain
from tertulia.corpus import TextOptions
from tertulia.corpus.sources.base import is_address
from tertulia.errors import ConfigError, InputError
from tertulia.federation.engines.base import check_engine
from tertulia.federation.fields import EPSILON
from tertulia.federation.plan import ANYWHERE, MIN_SUMMED, Places
from tertulia.methods.common.descriptions import section_of
from tertulia.methods.common.settings import (
    PATH,
    Explained,
    Positive,
    Settings,
    Share,
    Threads,
    has_mark,
    own_choices,
)
from tertulia.methods.ftm.settings import FTMSettings
from tertulia.methods.registry import METHODS, SETTINGS, Method
from tertulia.runs.documents import DataSettings, SourceSettings

Statement = Annotated[str, Field(max_length=500), AfterValidator(check_plain)]


class OperatorSettings(Settings):
    """Statements of the server's operator; parties approve them with the plan, and the officer's page shows them."""

    organisation: Statement = Field("", description="who operates the server, and receives what leaves parties")
    purpose: Statement = Field("", description="what the model is for")
    legal_basis: Statement = Field("", description="on which the operator processes what it receives")
    retention: Statement = Field("", description="how long it keeps what it receives, and the model")
    reason: Statement = Field("", description="why this run takes place; `tertulia start --reason` writes it")

    def stated(self) -> dict[str, str]:
        """Return the statements that are not empty, by name."""
        return {name: value for name, value in self if value}


PartyName = Annotated[str, Field(min_length=1)]


class PartyBase(SourceSettings):
    """Settings of a party under every method: its documents, its policy, its time of membership."""

    policy: str | None = Field(
        None, description="its rules: a TOML file like `policy.example.toml`", json_schema_extra=PATH
    )
    home: str | None = Field(
        None,
        description="a directory where its ledger and noise key live from run to run; None: in the run, so that "
        "another run on the same documents costs as much again. A policy with a `[[budget]]` needs one",
        json_schema_extra=PATH,
    )

    @field_validator("home")
    @classmethod
    def _anywhere(cls, value: str | None) -> str | None:
        if value is not None and not Path(value).is_absolute():
            raise ValueError("it depends on the working directory, and so would the budget: write it from the root on")
        return value

    joins: int = Field(0, ge=0, description="the round in which it joins (simulation)")
    leaves: int | None = Field(None, ge=1, description="the round in which it leaves (simulation); None: it stays")

    @property
    def own_epsilon(self) -> float | None:
        """The party's own epsilon, if it has set one."""
        own: float | None = self.choices().get(EPSILON)
        return own

    def choices(self) -> dict[str, Any]:
        """Return the method's settings that this party sets itself."""
        return {name: value for name, value in self if name not in PartyBase.model_fields and value is not None}


def party_choices() -> dict[str, Any]:
    """Collect the settings that a party may choose for itself, as the first method declares them, all optional."""
    found: dict[str, FieldInfo] = {}
    for kind in SETTINGS:
        found = own_choices(kind) | found
    found["threads"] = FieldInfo.from_annotation(Threads)  # of every method, at a party
    types = {name: Annotated[(field.annotation, name, *field.metadata)] | None for name, field in found.items()}
    return {name: (types[name], Field(None, description=_meaning(field))) for name, field in found.items()}


def _meaning(field: FieldInfo) -> str:
    """Return a setting's description where a party chooses it."""
    extra = field.json_schema_extra
    return str(extra.get("party") if isinstance(extra, dict) else "") or f"its own: {field.description}"


if TYPE_CHECKING:
    PartySettings = PartyBase
else:
    PartySettings = create_model("PartySettings", __base__=PartyBase, __doc__="One party.", **party_choices())


class DropoutSettings(Settings):
    """Simulated absences."""

    rate: Share = Field(0.0, description="probability that a party misses a round")
    script: dict[int, tuple[str, ...]] = Field({}, description='who is absent in which round: `3 = ["north"]`')


class TermsSettings(Settings):
    """The terms on which parties meet, wherever they are."""

    quorum: Share = Field(0.5, description="share of parties that must answer a question")
    timeout: float | None = Field(None, gt=0, description="seconds that a party has for an answer; None: no limit")
    on_failure: Literal["stop", "skip"] = Field(
        "stop",
        description="what to do when a party's step fails, or its reply cannot be: stop the run, or go on without the "
        "party in this round",
    )
    max_documents: Positive = Field(
        10**9,
        description="the most documents that any party can have, as all agree: who claims more, and thereby more "
        "weight, has failed",
    )
    secure: bool = Field(
        False,
        description="mask the parties' replies, so that the server learns totals and nothing of single parties; it "
        "needs three members or more",
    )
    min_summed: int = Field(
        MIN_SUMMED, ge=MIN_SUMMED, description="with `secure`, the fewest parties whose total the server may learn"
    )
    users: Places = Field(
        ANYWHERE,
        description="where one user (patient) may have documents. `anywhere`: at any number of members, so that the "
        "epsilon of a user adds up over all of them; `one_party`: at one member only, as all agree",
    )


class FederationSettings(TermsSettings):
    """The terms on which parties meet."""

    dropouts: DropoutSettings = Field(DropoutSettings(), description="simulated absences")
    owners: Literal["one", "several"] = Field(
        "one",
        description="`one`: a simulation, all parties are yours; policies are open unless you write some, and errors "
        "are shown in full. `several`: each party as if it were somebody else's; without a policy nothing leaves in "
        "clear, and reasons stay in its `party.log`",
    )


class TrainingSettings(Explained):
    """The settings of training, for parties of one owner or of several."""

    seed: int = Field(0, description="everything but the parties' noise is a function of it")
    heldout: float = Field(
        0.1,
        ge=0,
        lt=1,
        description="share of documents that is only scored on, chosen by a hash of their ids, so that it is stable as "
        "data grow; for documents without ids, where noise hides words, by their lengths and order",
    )
    validation: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of documents by which each party chooses a model for its own (`best_for`), with `ftm` and "
        "`consensus`: neither trained nor scored on. Baselines only leave them out, so that they compare",
    )
    start_from: str | None = Field(
        None,
        description="an earlier run of this federation to go on from: its id, or `last`, the one that was finished "
        "last when a run is proposed; `tertulia start --from` sets it",
    )
    method: Method = Field(FTMSettings(), description="the method and its settings, see `[method]`")
    text: dict[str, Any] = Field({}, description="how texts are cut into words, see `[text]`")
    operator: OperatorSettings = Field(OperatorSettings(), description="what the operator states, for the record")

    @model_validator(mode="after")
    def _documents_to_choose_by(self) -> Self:
        if self.heldout + self.validation >= 1:
            raise ValueError(f"heldout {self.heldout} and validation {self.validation} leave nothing to train on")
        if self.validation and not self.method.takes_validation:
            fitting = ", ".join(f"'{name}'" for name, method in METHODS.items() if method.settings.takes_validation)
            raise ValueError(
                f"validation = {self.validation} goes with the methods {fitting}, not with '{self.method.name}': leave "
                "it out"
            )
        return self

    @model_validator(mode="after")
    def _words_are_tokens(self) -> Self:
        n, noise, terms = self.text.get("ngrams", 1), self.method.noise, self.method.vocabulary_settings
        if terms is not None and terms.phrases and n == 1 and "tokenizer" not in self.text:
            raise ValueError(
                "vocabulary.phrases chooses among n-grams, and there are none: set text.ngrams = 2 or more"
            )
        if n > 1 and self.hides_words:
            raise ValueError(
                f"text.ngrams = {n} puts a word into up to {n * (n + 1) // 2} tokens, and in mode '{noise}' epsilon is "
                "of one: leave `ngrams` out, or take mode 'clear'"
            )
        return self

    @property
    def hides_words(self) -> bool:
        """Whether there is noise for single words; the lengths of documents are public then, and nothing else."""
        return self.method.has_noise and self.method.noise != "doc"

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

    @field_validator("method")
    @classmethod
    def _going_on(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("start_from") is None:
            return value
        if not value.continues:
            able = ", ".join(f"'{name}'" for name, method in METHODS.items() if method.settings.continues)
            raise ValueError(
                f"'{value.name}' cannot go on from an earlier model, as {able} can: leave `start_from` out"
            )
        return value.continued()

    @field_validator("text")
    @classmethod
    def _text_options(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            return TextOptions.from_dict(value).to_dict()
        except (TypeError, InputError) as error:
            raise ValueError(str(error)) from error


class RunSettings(TrainingSettings):
    """A whole run."""

    start_from: str | None = Field(
        None,
        description="an earlier run that is finished, or a saved model: topics, words and ids go on from there; None: "
        "the run begins from nothing",
        json_schema_extra=PATH,
    )
    directory: str = Field(
        "runs/run", description="where the run lives; it must not hold one yet", json_schema_extra=PATH
    )
    engine: Annotated[str, AfterValidator(check_engine)] = Field(
        "local",
        description="`local`: parties in one process; `processes`: each in its own; `grpc`: over TLS, too; `ray`: on a "
        "cluster",
    )
    address: str | None = Field(
        None,
        pattern=r"^(local|auto|[^\s/]+:\d{1,5})$",
        description="of the cluster, with engine `ray`: `local` (also None), a Ray of the run's own on this machine; "
        "`auto`, the cluster that this machine is a node of; or its `HOST:PORT`",
    )
    workers: Positive = Field(1, description="parties that work at the same time, with engine `local`")
    parties: dict[PartyName, PartySettings] = Field({}, description="the parties, see `[parties.NAME]`")
    data: DataSettings | None = Field(None, description="one source that is cut into parties, see `[data]`")
    federation: FederationSettings = Field(FederationSettings(), description="the terms on which parties meet")

    @model_validator(mode="after")
    def _one_owner_on_a_cluster(self) -> RunSettings:
        if self.address is not None and self.engine != "ray":
            raise ValueError(
                f"address = '{self.address}' goes with engine 'ray', not with '{self.engine}': leave it out"
            )
        if self.engine == "ray" and self.federation.owners == "several":
            raise ValueError(
                "engine 'ray' is for one owner, since anyone who reaches a Ray cluster runs code on it: parties of "
                "several owners take engine 'grpc', or a network (`tertulia init`)"
            )
        return self

    @model_validator(mode="after")
    def _can_be_secure(self) -> RunSettings:
        if self.federation.secure and self.engine == "ray":
            raise ValueError(
                "secure = true hides parties from a server, and engine 'ray' is for one owner, who has all parties: "
                "leave it out"
            )
        if not self.federation.secure:
            self.method.check_plain()
        elif why := self.method.why_not_secure(continues=self.start_from is not None):
            raise ValueError(f"secure = true does not go with method '{self.method.name}': {why}")
        return self

    @model_validator(mode="after")
    def _one_source(self) -> RunSettings:
        own = [name for name, party in self.parties.items() if party.is_given]
        if self.data is not None and own:
            raise ValueError(f"[data] is split into parties, so [parties.{own[0]}] cannot have a source of its own")
        return self


def load(path: str | Path) -> RunSettings:
    """Read a TOML file; paths inside it are relative to it."""
    return read_settings(Path(path), RunSettings, _anchor_all)


def settings_from(raw: dict[str, Any], base: Path) -> RunSettings:
    """Check settings that were parsed from a TOML file in directory `base`."""
    _anchor_all(raw, base)
    return RunSettings(**raw)


def _anchor_all(raw: dict[str, Any], base: Path) -> None:
    """Make the paths in a config relative to the config's own place."""
    parties = raw.get("parties")
    anchor(raw, RunSettings, base)
    anchor(raw.get("data"), DataSettings, base)
    anchor_method(raw.get("method"), base)
    for party in parties.values() if isinstance(parties, dict) else ():
        anchor(party, PartySettings, base)


def anchor_method(method: Any, base: Path) -> None:
    """Resolve the paths in a method's settings."""
    registered = METHODS.get(str(method.get("name", "ftm"))) if isinstance(method, dict) else None
    anchor(method, registered.settings if registered else Settings, base)


_S = TypeVar("_S", bound=Explained)


def read_settings(path: Path, kind: type[_S], anchor_all: Callable[[dict[str, Any], Path], None]) -> _S:
    """Read a TOML file of one kind of settings; errors name the file, the key and the remedy."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no config file {path}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    try:
        anchor_all(raw, path.parent)
        return kind(**raw)
    except (ConfigError, RecursionError, TypeError) as error:
        raise ConfigError(f"{path}: {error}") from None


def _name_or_none(field: FieldInfo) -> Any:
    """Return the name that may replace a path: that of a word list in the package."""
    extra = field.json_schema_extra
    return (extra.get("path") or None) if isinstance(extra, dict) else None


def anchor(section: Any, kind: type[BaseModel], base: Path) -> None:
    """Resolve the paths of a section and of those within it; values that are no tables are left for validation."""
    for name, field in kind.model_fields.items() if isinstance(section, dict) else ():
        value, inner = section.get(name), section_of(field)
        if inner is not None:
            anchor(value, inner, base)
        elif name == "home" and isinstance(value, str):  # a budget must not depend on the working directory
            section[name] = str((base / value).resolve())
        elif has_mark(field, "path") and isinstance(value, str) and value != _name_or_none(field):
            section[name] = _anchored(value, base)
        elif has_mark(field, "paths") and isinstance(value, list):
            section[name] = [_anchored(one, base) if isinstance(one, str) else one for one in value]


def _anchored(path: str, base: Path) -> str:
    return path if is_address(path) else os.path.normpath(base / path)
