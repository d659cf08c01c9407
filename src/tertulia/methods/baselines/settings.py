"""Settings of the baselines."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tertulia.methods.common.settings import LDASettings, Positive


class AloneSettings(LDASettings):
    """Baselines: each party alone, or all documents in one place."""

    name: Literal["alone", "centralised"] = "alone"
    sweeps: Positive = Field(50, description="passes over the documents, in all")
