"""Settings of Consensus."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tertulia.methods.common.lda_settings import PrivateSettings
from tertulia.methods.common.settings import Positive, SweepsAlone


class ConsensusSettings(PrivateSettings):
    """Consensus rounds: merge once, then count together."""

    name: Literal["consensus"] = "consensus"
    model: Literal["lda"] = Field("lda", description="counting together is by tokens, so there is no other")
    mode: Literal["clear", "sound"] = Field("clear", description="`clear`: no noise. `sound`: epsilon is kept")
    learn_alpha: bool = Field(
        True,
        description="learn each topic's alpha from the sum of the parties' document-topic histograms, which leave them "
        "for it; false: it stays `alpha` / `topics` for all, and they are not sent",
    )
    rounds: Positive = Field(8, description="rounds of counting together")
    start_sweeps: Positive = Field(20, description="passes that each party makes alone, before topics are merged")
    sweeps: Positive = Field(5)

    @property
    def sweeps_alone(self) -> SweepsAlone:
        """Parties train alone once, before topics are merged."""
        return SweepsAlone(self.start_sweeps, 1, self.rounds * self.sweeps)
