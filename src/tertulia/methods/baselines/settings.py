"""Settings of the baselines."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tertulia.methods.common.lda_settings import LDASettings
from tertulia.methods.common.settings import Positive


class AloneSettings(LDASettings):
    """Baselines: each party alone, or all documents in one place."""

    federates = False
    name: Literal["alone", "centralised"] = Field(
        "alone", description="each party alone, or all documents in one place"
    )
    sweeps: Positive = Field(50, description="passes over the documents, in all")

    @property
    def pools(self) -> bool:
        """Whether all documents are brought to one place."""
        return self.name == "centralised"
