"""Settings of Consensus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from tertulia.federation.fields import Capped
from tertulia.methods.common.lda_settings import Channel, Sampler, Threshold, check_private, check_seeds_of_lda
from tertulia.methods.common.seeds import NO_SEEDS, STRENGTH, Seeds, SeedStrength, take_over, why_other_seeds
from tertulia.methods.common.settings import (
    AgreedWords,
    AlphaSum,
    Beta,
    Epsilon,
    Evaluate,
    LearnAlpha,
    MethodSettings,
    Noise,
    Rounds,
    Sweeps,
    SweepsAlone,
    TopicCount,
    VocabularySettings,
    why_no_start,
)

if TYPE_CHECKING:
    from tertulia.models import Topics

# In the first round of a continued run. Under noise tokens do not look at their documents before they are sampled.
_FIRST_SWEEPS = {"clear": 2, "sound": 4}
# A report of subset selection names several words, so EM finds topics more slowly. Chosen on medical abstracts and BBC
# news at epsilon 7: with 6 rounds perplexity ends 15 % higher than with 20 on the former, with 12 11 % on the latter.
_SUBSET_ROUNDS = 20


ExtraSweeps = Annotated[int, Field(ge=1), Capped("max_sweeps")]


class ConsensusSettings(MethodSettings):
    """Consensus rounds: find first topics together, then count together."""

    takes_validation = samples_lda = continues = True
    name: Literal["consensus"] = Field("consensus", description="the method")
    topics: TopicCount = 20
    alpha: AlphaSum = 5.0
    beta: Beta = 0.01
    learn_alpha: LearnAlpha = Field(
        True,
        description="learn each topic's alpha from the sum of the parties' document-topic histograms, which leave them "
        "for it; false: it stays `alpha` / `topics` for all, and they are not sent",
    )
    sweeps: Sweeps = 5
    sampler: Sampler = "auto"
    model: Literal["lda"] = Field("lda", description="counting together is by tokens, so there is no other")
    vocabulary: AgreedWords = VocabularySettings()
    mode: Literal["clear", "sound"] = Field("clear", description="`clear`: no noise. `sound`: epsilon is kept")
    epsilon: Epsilon = None
    channel: Channel = "krr"
    tau: Threshold = 0.2
    rounds: Rounds = Field(8, description="rounds of counting together")
    more_rounds: Annotated[int, Field(ge=2), Capped("max_rounds")] = Field(
        3,
        description="rounds of a run that goes on from an earlier model (`start_from`), in place of `rounds`; in the "
        f"first, of {_FIRST_SWEEPS['clear']} passes (`sound`: {_FIRST_SWEEPS['sound']}), tokens find their places in "
        "its topics",
    )
    evaluate: Evaluate = None
    robust: bool = Field(
        False,
        description="against a party that sends wrong counts: add up only counts that do not make those of half of the "
        "others harder to predict. Needs four parties; the server then uses each party's counts singly, and parties "
        "count once more",
    )
    continued_sweeps: ExtraSweeps = Field(6, description="passes of a party in each of these rounds after the first")
    start_rounds: Annotated[int, Field(ge=1), Capped("max_rounds")] = Field(
        6,
        description="rounds of EM that find the first topics, before tokens get topics of their own; by default "
        f"{_SUBSET_ROUNDS} with channel `subset`",
    )
    start_sweeps: ExtraSweeps = Field(
        20,
        description="passes that each party makes alone, before topics are merged: `robust` starts in this way instead",
    )
    seed: int | None = Field(None, description="for the first topics; None: that of the run")
    seeds: Seeds = NO_SEEDS
    seed_strength: SeedStrength = STRENGTH

    @model_validator(mode="before")
    @classmethod
    def _rounds_of_subset(cls, values: Any) -> Any:
        private = isinstance(values, dict) and (values.get("mode"), values.get("channel")) == ("sound", "subset")
        return {"start_rounds": _SUBSET_ROUNDS, **values} if private else values

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        check_private(self)
        check_seeds_of_lda(self)
        return self

    @property
    def planned_rounds(self) -> int:
        """As set."""
        return self.rounds

    def rounds_in_all(self, *, continues: bool) -> int:
        """Add two rounds: parties agree on words, then find first topics. A continued run does both in its first."""
        return self.rounds if continues else self.rounds + 2

    @property
    def noisy_rounds(self) -> int:
        """The rounds of EM ask one step, and those of counting another."""
        return max(self.rounds, self.start_rounds)

    @property
    def noise(self) -> Noise:
        """As the mode says."""
        return "none" if self.mode == "clear" else self.mode

    def with_own_epsilon(self, own: float) -> Self:
        """Lower epsilon to the party's own."""
        return self if self.epsilon is None else self.replace(epsilon=min(own, self.epsilon))

    def continued(self) -> Self:
        """Plan fewer rounds, and longer ones: topics are there already, and parties agree on them."""
        return self.replace(
            rounds=self.more_rounds, sweeps=self.continued_sweeps, start_sweeps=_FIRST_SWEEPS[self.mode]
        )

    @property
    def sweeps_alone(self) -> SweepsAlone:
        """Parties train alone once, before topics are merged."""
        return SweepsAlone(self.start_sweeps, 1, self.rounds * self.sweeps)

    def why_not_secure(self, *, continues: bool) -> str | None:
        """Refuse `robust`, which needs single counts."""
        if self.robust:
            return "robust = true judges each party's counts, which secure sums hide: set one of the two"
        return super().why_not_secure(continues=continues)

    def why_not(self, last: Topics) -> str | None:
        """Require as many topics as the earlier model has, or more: its topics are shared by all."""
        return why_no_start(last, self.topics) or why_other_seeds(self, last)

    def taking_over(self, last: Topics) -> Self:
        """Take over the seeds of the earlier model, unless there are some."""
        return take_over(self, last)
