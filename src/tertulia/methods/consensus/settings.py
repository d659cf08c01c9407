"""Settings of Consensus."""

from __future__ import annotations

from typing import Literal

from tertulia.methods.common.settings import Positive, PrivateSettings


class ConsensusSettings(PrivateSettings):
    """Consensus rounds: merge once, then count together."""

    name: Literal["consensus"] = "consensus"
    model: Literal["lda"] = "lda"  # counting together is by tokens
    mode: Literal["clear", "sound"] = "clear"
    rounds: Positive = 8
    start_sweeps: Positive = 20  # alone, before topics are merged
    sweeps: Positive = 5  # in each round
