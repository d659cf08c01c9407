"""The documents of a run: settings that say where they are, and the recipe by which each party reads its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from tertulia.corpus.recipes import parties_in
from tertulia.corpus.sources.base import check_variable
from tertulia.errors import ConfigError
from tertulia.methods.common.settings import PATH, Positive, Settings

if TYPE_CHECKING:
    from tertulia.runs.settings import RunSettings

POOLED = "pooled"  # the one party of the pooled scenario
_LATER = {"query": None, "address_env": None, "format": "table"}  # settings that were added later, with defaults
NO_SOURCE = "no `path` and no `query`: say where {} documents are"


class SourceSettings(Settings):
    """A source of documents, and the meaning of its columns."""

    path: str | list[str] | None = Field(
        None,
        description="a file (`.jsonl`, `.csv`, `.tsv`, `.parquet`, `.txt`, also compressed), a folder of `.txt`, a "
        "pattern, an address (`https://`, `s3://`), or a list of these",
        json_schema_extra=PATH | {"paths": ""},
    )
    query: str | None = Field(
        None,
        description="a SELECT whose rows are the documents, of the database in `address_env`, or of the DuckDB file "
        "`path`; without both DuckDB reads the files that the query names. A query that writes is refused",
    )
    address_env: str | None = Field(
        None,
        description="the name of the environment variable that holds the address of the database, with its password: "
        "`postgresql://USER:PASSWORD@HOST/DATABASE`; without a `query`, of a file. The address itself is never stored, "
        "sent or shown",
    )
    format: Literal["table", "omop", "fhir", "openalex", "cordis", "nsf"] = Field(
        "table",
        description="the kind of records: `table`, any with a column of texts; clinical notes, `omop` (table NOTE) and "
        "`fhir` (NDJSON of DocumentReference); `openalex` works; grants, `cordis` and `nsf`. It gives the columns that "
        "are not named",
    )
    text: str | list[str] = Field("text", description="the column of texts; several columns are joined")
    id: str | None = Field(None, description="the column of ids; None: a row is known by a hash of its text")
    date: str | None = Field(None, description="the column of dates")
    label: str | None = Field(None, description="the column of labels")
    user: str | None = Field(
        None, description="the column of users or patients, which a policy's `max_documents_per_user` counts by"
    )
    encoding: str | None = Field(
        None, description="of text files, such as `cp1252`; None: guessed, and noted where it is not UTF-8"
    )
    separator: str | None = Field(
        None,
        description="of the fields of `.csv` and `.tsv`: one character, or `tab`; None: the one that gives the columns",
    )
    embeddings: str | None = Field(
        None,
        description="a file of sentence embeddings for `combinedtm` and `zeroshottm`: `.npy`, or `.npz` or "
        "`.safetensors` with an array `embeddings`, one row of floats for each row of `path`, empty ones included; "
        "texts are then not kept",
        json_schema_extra=PATH,
    )

    @field_validator("address_env")
    @classmethod
    def _a_name(cls, value: str | None) -> str | None:
        try:
            return None if value is None else check_variable(value)
        except ValueError as error:
            raise PydanticCustomError("secret", "{reason}", {"reason": str(error)}) from None

    @property
    def is_given(self) -> bool:
        """Whether anything says where the documents are."""
        return any(origin is not None for origin in (self.path, self.query, self.address_env))

    def source(self) -> dict[str, Any]:
        """Return the arguments of `corpus.read`; settings that earlier versions lack are included only if set."""
        given = {name: getattr(self, name) for name in SourceSettings.model_fields}
        return {name: value for name, value in given.items() if name not in _LATER or value != _LATER[name]}


class DataSettings(SourceSettings):
    """One source that is cut into parties, to simulate a federation."""

    shards: Positive | None = Field(
        None,
        description="how many parties of about equal size (`shard-01`, ...) to cut it into, in place of a `split`; all "
        "documents of one `user` stay together",
    )
    split: Literal["column", "file", "random", "dirichlet"] = Field(
        "column",
        description="by a column's values, by file, at random, or at random with skewed labels; a row's party is a "
        "function of the row and the seed, so every party's process finds its own rows",
    )
    party: str = Field("party", description="the column of parties' names, for split `column`")
    sizes: dict[str, float] = Field(
        {"north": 1.0, "south": 1.0, "west": 1.0}, description="parties and their shares, for split `random`"
    )
    parties: list[str] = Field(["north", "south", "west"], description="the parties, for split `dirichlet`")
    concentration: float = Field(
        0.5, gt=0, description="of labels over parties, for split `dirichlet`: small is skewed"
    )

    @model_validator(mode="after")
    def _shards_or_split(self) -> Self:
        if self.shards is not None and "split" in self.model_fields_set and self.split != "column":
            raise ValueError(f"shards = {self.shards} is a split of its own: leave out split = '{self.split}'")
        return self


def sources_of(settings: RunSettings) -> dict[str, dict[str, Any]]:
    """Make a recipe for each party, which reads its own documents by it."""
    if settings.data is not None:
        recipe = {**_source(settings, settings.data), "split": split_of(settings.data, settings.seed)}
        return {party: {**recipe, "party": party} for party in parties_in(recipe)}
    for name, own in settings.parties.items():
        if not own.is_given:
            raise ConfigError(f"parties.{name} has {NO_SOURCE.format('its')}")
    if not settings.parties:
        raise ConfigError("no parties are given: add [parties.NAME] sections, or one [data] section to be split")
    return {name: _source(settings, own) for name, own in settings.parties.items()}


def _source(settings: RunSettings, own: SourceSettings) -> dict[str, Any]:
    """Describe what to read, and how. Texts are kept where they must be embedded."""
    text = {"keep_text": True} if settings.method.keeps_text and own.embeddings is None else {}
    return {**own.source(), "options": settings.text, **text}


def split_of(data: DataSettings, seed: int) -> dict[str, Any]:
    """Describe how a shared source is split into parties, as plain data."""
    if not data.is_given:
        raise ConfigError(f"[data] has {NO_SOURCE.format('the')}")
    if data.shards is not None:
        return {"kind": "shards", "shards": data.shards, "seed": seed}
    if data.split == "column":
        return {"kind": "column", "column": data.party}
    if data.split == "file":
        return {"kind": "file"}
    if data.split == "random":
        return {"kind": "random", "sizes": data.sizes, "seed": seed}
    return {"kind": "dirichlet", "parties": data.parties, "concentration": data.concentration, "seed": seed}
