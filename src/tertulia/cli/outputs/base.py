"""Base classes of the JSON objects that commands print."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

NO_BOUND = "null: no bound, not private"


class Output(BaseModel):
    """A JSON object with exactly the declared keys."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OpenOutput(Output):
    """A JSON object with further keys: a method's measures, or a column for each topic."""

    model_config = ConfigDict(extra="allow", strict=True)
