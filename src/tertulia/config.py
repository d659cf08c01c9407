"""The settings of a run, as users write them in TOML or pass them to the API. Errors name key, value and remedy.

seed = 1
directory = "runs/hospitals"

[method]
name = "ftm"
topics = 50

[parties.north]
path = "north.jsonl"

[parties.south]
path = "south.csv"
topics = 30            # its own choice
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tertulia.corpus import TextOptions
from tertulia.errors import ConfigError, InputError

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
    mode: Literal["clear", "sound"] = "clear"
    rounds: Positive = 8
    start_sweeps: Positive = 20  # alone, before topics are merged
    sweeps: Positive = 5  # in each round


class AloneSettings(LDASettings):
    """Baselines: each party alone, or all documents pooled. `sweeps` is the total."""

    name: Literal["alone", "centralised"] = "alone"


class GFedNTMSettings(Settings):
    """Federated neural topic models."""

    name: Literal["gfedntm"] = "gfedntm"
    scenario: Literal["federated", "centralised", "alone"] = "federated"  # the paper's three
    model: Literal["prodlda", "combinedtm", "zeroshottm"] = "prodlda"
    topics: Positive = 20
    hidden: tuple[Positive, ...] = Field(default=(100, 100), min_length=1)
    dropout: float = Field(default=0.2, ge=0, lt=1)
    alpha: float = Field(default=1.0, gt=0)  # of each topic: theta's Dirichlet prior
    learn_prior: bool = True
    literal_adapter: bool = False  # CombinedTM as published, with an E x V layer before the first
    embedding: str | None = None  # the folder of a sentence-transformers model; None: the one that comes with us
    normalisation: Literal["batch", "sync", "layer"] = "sync"
    precision: Literal["float32", "float64"] = "float32"
    seed: int | None = None  # of weights, batches and dropout; None: the run's
    batch_size: int = Field(default=64, ge=2)  # documents in a step, all parties' together
    epochs: Positive = 50
    rounds: Positive | None = None  # the most, whatever the epochs
    averaging: Literal["syncopt", "fedavg", "fedadam"] = "syncopt"
    local_steps: Positive = 50  # between two rounds of fedavg or fedadam
    optimiser: Literal["sgd", "adam"] = "adam"
    learning_rate: float = Field(default=0.002, gt=0)
    server_rate: float = Field(default=1.0, gt=0)  # of fedavg and fedadam
    betas: tuple[Share, Share] = (0.99, 0.99)
    tolerance: float = Field(default=1e-6, ge=0)  # stop when the weights' relative change stays below this
    patience: Positive = 20  # for so many steps
    compression: Literal["none", "fp16", "topk"] = "none"
    keep: float = Field(default=0.1, gt=0, le=1)  # the share of the gradient that top-k sends
    checkpoint_every: Positive = 50  # rounds between two commits on disk
    vocabulary: VocabularySettings = VocabularySettings()

    @model_validator(mode="after")
    def _fits_together(self) -> GFedNTMSettings:
        if self.compression != "none" and self.averaging != "syncopt":
            raise ValueError("compression is of gradients: it goes with averaging = 'syncopt'")
        if self.topics < 2:
            raise ValueError("a neural model needs at least 2 topics")
        return self

    @property
    def reads_sentences(self) -> bool:
        """Whether parties must keep their texts, to embed them."""
        return self.model != "prodlda"


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
    policy: str | None = None
    home: str | None = None  # where its ledger and noise key live from run to run
    joins: int = Field(default=0, ge=0)
    leaves: int | None = Field(default=None, ge=1)

    def choices(self) -> dict[str, Any]:
        """The method's settings that this party sets itself."""
        return {
            name: value
            for name in ("topics", "threads", "model", "epsilon")
            if (value := getattr(self, name)) is not None
        }


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
        FTMSettings | ConsensusSettings | GFedNTMSettings | AloneSettings | CustomSettings, Field(discriminator="name")
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

    @field_validator("text")
    @classmethod
    def _text_options(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            return TextOptions.from_dict(value).to_dict()
        except (TypeError, InputError) as error:
            raise ValueError(str(error)) from error

    @property
    def pools(self) -> bool:
        """Whether all documents are brought to one place, for comparison."""
        return "centralised" in (self.method.name, getattr(self.method, "scenario", None))

    @property
    def keeps_text(self) -> bool:
        """Whether parties need their texts, not only their words."""
        return isinstance(self.method, GFedNTMSettings) and self.method.reads_sentences

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
        (raw, ("directory",)),
    ]:
        for key in keys:
            if isinstance(section, dict) and isinstance(section.get(key), str | list):
                if key == "words" and isinstance(section[key], list):
                    continue
                section[key] = anchored(section[key])
