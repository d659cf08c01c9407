"""What an object of JSON is, in what commands print."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

NO_BOUND = "null: no bound, so not private"


class Output(BaseModel):
    """An object of JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OpenOutput(Output):
    """An object that has more keys: a method's measures, or a column for each topic."""

    model_config = ConfigDict(extra="allow", strict=True)
