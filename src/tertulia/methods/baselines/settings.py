"""Settings of the baselines."""

from __future__ import annotations

from typing import Literal

from tertulia.methods.common.settings import LDASettings


class AloneSettings(LDASettings):
    """Baselines: each party alone, or all documents pooled. `sweeps` is the total."""

    name: Literal["alone", "centralised"] = "alone"
