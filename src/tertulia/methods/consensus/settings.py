"""Settings of Consensus."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field

from tertulia.methods.common.lda_settings import PrivateSettings
from tertulia.methods.common.settings import Positive, SweepsAlone

# Of the first round of a run that goes on: under noise tokens do not look at their documents before they are sampled.
_FIRST_SWEEPS = {"clear": 2, "sound": 4}


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
    vouched: bool = Field(
        False,
        description="against a party that sends wrong counts: add up only counts that do not make those of half of the "
        "others harder to predict. Needs four parties; the server then uses each party's counts singly, and parties "
        "count once more",
    )
    rounds: Positive = Field(8, description="rounds of counting together")
    more_rounds: Annotated[int, Field(ge=2)] = Field(
        3,
        description="rounds of a run that goes on from an earlier model (`start_from`), in place of `rounds`; in the "
        f"first, of {_FIRST_SWEEPS['clear']} passes (`sound`: {_FIRST_SWEEPS['sound']}), tokens find their places in "
        "its topics",
    )
    continued_sweeps: Positive = Field(6, description="passes of a party in each of these rounds after the first")
    start_sweeps: Positive = Field(20, description="passes that each party makes alone, before topics are merged")
    sweeps: Positive = Field(5)

    def continued(self) -> Self:
        """Fewer rounds, and longer ones: topics are there already, and parties agree on them."""
        return self.replace(
            rounds=self.more_rounds, sweeps=self.continued_sweeps, start_sweeps=_FIRST_SWEEPS[self.mode]
        )

    @property
    def sweeps_alone(self) -> SweepsAlone:
        """Parties train alone once, before topics are merged."""
        return SweepsAlone(self.start_sweeps, 1, self.rounds * self.sweeps)
