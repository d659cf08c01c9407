"""Settings of Federated Topic Modelling."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tertulia.methods.common.settings import Positive, PrivateSettings


class FTMSettings(PrivateSettings):
    """Federated Topic Modelling."""

    name: Literal["ftm"] = "ftm"
    rounds: Positive = 5
    merge: Literal["one-to-one", "union-find"] | None = None  # None: one-to-one, in mode `paper` union-find
    min_similarity: float | None = Field(default=None, gt=0, le=1)  # xi; None: calibrated, of union-find 0.3
    top_words: Positive = 50  # L
    literal_compose: bool | None = None  # Algorithm 4 line 7 as printed; None: in mode paper
