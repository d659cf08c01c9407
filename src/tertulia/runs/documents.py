"""The settings that say where documents are, and how one source is cut into parties."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from tertulia.methods.common.settings import PATH, Positive, Settings


class SourceSettings(Settings):
    """Where documents are, and which columns mean what."""

    path: str | list[str] | None = Field(
        None,
        description="a file (`.jsonl`, `.csv`, `.tsv`, `.parquet`, `.txt`, also compressed), a folder of `.txt`, a "
        "pattern, or a list of these",
        json_schema_extra=PATH | {"paths": ""},
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
        description="of the fields of `.csv` and `.tsv`: one character, or `tab`; None: whatever gives the columns",
    )
    embeddings: str | None = Field(
        None,
        description="a file of sentence embeddings for `combinedtm` and `zeroshottm`: `.npy`, or `.npz` or "
        "`.safetensors` with an array `embeddings`, one row of floats for each row of `path`, empty ones included; "
        "texts are then not kept",
        json_schema_extra=PATH,
    )

    def source(self) -> dict[str, Any]:
        """The arguments of `corpus.read`."""
        return {name: getattr(self, name) for name in SourceSettings.model_fields}


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
