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
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from tertulia.corpus import TextOptions
from tertulia.errors import ConfigError, InputError
from tertulia.settings import Explained, Positive, Settings, Share, VocabularySettings
from tertulia.user_settings import FedLDASettings

PartyName = Annotated[str, Field(min_length=1)]


class LDASettings(Settings):
    """Settings of every method that samples LDA."""

    topics: Positive = 20
    sweeps: Positive = 50
    alpha: float = Field(default=5.0, gt=0)  # the sum of theta's Dirichlet prior over all topics
    beta: float = Field(default=0.01, gt=0)
    learn_alpha: bool = False
    sampler: Literal["auto", "gibbs", "dense", "sparse", "warp"] = "auto"
    model: Literal["lda", "sentence"] = "lda"
    vocabulary: VocabularySettings = VocabularySettings()


class PrivateSettings(LDASettings):
    """Settings of methods that can keep tokens private."""

    mode: Literal["clear", "paper", "sound"] = "clear"
    channel: Literal["laplace", "krr", "subset"] = "krr"  # of `sound`; `paper` is Laplace
    epsilon: float | None = Field(default=None, gt=0)  # of one token; for `sound` by substitution
    tau: float = Field(default=0.2, ge=0, lt=1)  # the threshold of Laplace reports
    evaluate: bool | None = None  # None: unless the mode is sound, where scores would leave in clear

    @model_validator(mode="after")
    def _private_modes(self) -> PrivateSettings:
        if (self.mode == "clear") == (self.epsilon is not None):
            raise ValueError("an epsilon goes with mode 'paper' or 'sound', and these need one")
        if self.mode == "sound" and self.vocabulary.mode != "public":
            raise ValueError("mode 'sound' needs a public word list (vocabulary.mode = 'public'): proposals tell words")
        return self


class FTMSettings(PrivateSettings):
    """Federated Topic Modelling."""

    name: Literal["ftm"] = "ftm"
    rounds: Positive = 5
    min_similarity: float = Field(default=0.3, gt=0, le=1)  # xi
    top_words: Positive = 50  # L
    literal_compose: bool = False  # Algorithm 4 line 7 as printed


class ConsensusSettings(PrivateSettings):
    """Consensus rounds: merge once, then count together."""

    name: Literal["consensus"] = "consensus"
    model: Literal["lda"] = "lda"  # counting together is by tokens
    mode: Literal["clear", "sound"] = "clear"
    rounds: Positive = 8
    start_sweeps: Positive = 20  # alone, before topics are merged
    sweeps: Positive = 5  # in each round


class PCTDSettings(Settings):
    """Private and consistent topic discovery."""

    name: Literal["pctd"] = "pctd"
    mode: Literal["clear", "paper"] = "clear"
    topics: Positive = 20
    rounds: Positive = 35  # T: iterations of EM
    unit: Literal["ngram", "sentence", "paragraph"] = "ngram"
    unit_words: Positive = 3  # n, of n-grams
    alpha: float = Field(default=5.0, gt=0)  # the sum of the prior with which new documents are folded in
    beta: float = Field(default=0.01, gt=0)  # added to each expected count
    sigma: float | None = Field(default=None, gt=0)  # of `paper`: the deviation of the noise; 0.25 if nothing is said
    epsilon: float | None = Field(default=None, gt=0)  # of `paper`, instead of sigma: honest, of one token, all rounds
    delta: float = Field(default=1e-6, gt=0, lt=1)
    vectors: str | None = None  # a file of word vectors
    relations: str | None = None  # or of pairs of words
    neighbours: Positive = 10  # the nearest words that a word is related to
    min_cosine: float = Field(default=0.5, ge=0, le=1)  # if they are at least so similar
    tau: float = Field(default=0.3, ge=0)  # how hard related words pull
    evaluate: bool = True
    start_seed: int | None = None  # of the first topics; by default the run's seed
    vocabulary: VocabularySettings = VocabularySettings()

    @field_validator("mode", mode="before")
    @classmethod
    def _no_sound_mode(cls, value: Any) -> Any:
        if value == "sound":
            raise ValueError(
                "PC-TD has no sound mode: its noise is drawn in floating point, and drowns all topics long before "
                "epsilon is small; use 'consensus' or 'ftm' with mode 'sound', or mode 'paper', whose honest epsilon "
                "`tertulia privacy` tells"
            )
        return value

    @model_validator(mode="after")
    def _settings_that_exclude_each_other(self) -> PCTDSettings:
        if self.sigma is not None and self.epsilon is not None:
            raise ValueError("sigma and epsilon both say how much noise there is: give one of them")
        if self.mode == "clear" and (self.sigma is not None or self.epsilon is not None):
            raise ValueError("sigma and epsilon go with mode 'paper': in mode 'clear' there is no noise")
        if self.vectors is not None and self.relations is not None:
            raise ValueError("vectors and relations both say how words relate: give one of them")
        return self


class AloneSettings(LDASettings):
    """Baselines: each party alone, or all documents pooled. `sweeps` is the total."""

    name: Literal["alone", "centralised"] = "alone"


class CustomSettings(Settings):
    """A method of the user's own: a module with a function `train(fed, config, state)` and its steps."""

    name: Literal["custom"] = "custom"
    module: str
    train: str = "train"
    config: dict[str, Any] = {}


class SourceSettings(Settings):
    """Where documents are, and which columns mean what."""

    path: str | list[str] | None = None  # a file, a folder of texts, a pattern, or several of these
    text: str | list[str] = "text"
    id: str | None = None
    date: str | None = None
    label: str | None = None
    encoding: str = "utf-8"

    def source(self) -> dict[str, Any]:
        """The arguments of `corpus.read`."""
        return {name: getattr(self, name) for name in SourceSettings.model_fields}


class PartySettings(SourceSettings):
    """One party: its documents, its own choices, its policy."""

    topics: Positive | None = None
    threads: Positive | None = None
    model: Literal["lda", "sentence"] | None = None
    epsilon: float | None = Field(default=None, gt=0)  # its own, if stricter than the method's
    tau: float | None = Field(default=None, ge=0, lt=1)
    sweeps: Positive | None = None
    alpha: float | None = Field(default=None, gt=0)
    beta: float | None = Field(default=None, gt=0)
    min_similarity: float | None = Field(default=None, gt=0, le=1)  # of what it takes over; with its own top_words
    top_words: Positive | None = None
    policy: str | None = None
    home: str | None = None  # where its ledger and noise key live from run to run
    joins: int = Field(default=0, ge=0)
    leaves: int | None = Field(default=None, ge=1)

    def choices(self) -> dict[str, Any]:
        """The method's settings that this party sets itself."""
        others = {*SourceSettings.model_fields, "policy", "home", "joins", "leaves"}
        return {name: value for name, value in self if name not in others and value is not None}


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
    engine: Literal["local", "processes"] = "local"
    workers: Positive = 1
    heldout: float = Field(default=0.1, ge=0, lt=1)
    method: Annotated[
        FTMSettings | ConsensusSettings | FedLDASettings | PCTDSettings | AloneSettings | CustomSettings,
        Field(discriminator="name"),
    ] = FTMSettings()
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

    @field_validator("method", mode="before")
    @classmethod
    def _ftm_unless_named(cls, value: Any) -> Any:
        return {"name": "ftm", **value} if isinstance(value, dict) else value

    @field_validator("method")
    @classmethod
    def _start_from_the_seed(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, PCTDSettings) and value.start_seed is None:
            return value.model_copy(update={"start_seed": info.data.get("seed")})
        return value

    @field_validator("text")
    @classmethod
    def _text_options(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            return TextOptions.from_dict(value).to_dict()
        except (TypeError, InputError) as error:
            raise ValueError(str(error)) from error

    def changed(self, changes: Mapping[str, Any]) -> RunSettings:
        """The same settings with some keys changed, checked again."""
        return RunSettings(**{**self.model_dump(), **changes})


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
    for section, keys in [(s, ("path", "policy")) for s in sections] + [
        (raw.get("data"), ("path",)),
        (raw.get("method", {}).get("vocabulary"), ("words",)),
        (raw.get("method"), ("vectors", "relations")),
        (raw, ("directory",)),
    ]:
        for key in keys:
            if isinstance(section, dict) and isinstance(section.get(key), str | list):
                if key == "words" and isinstance(section[key], list):
                    continue
                section[key] = anchored(section[key])
