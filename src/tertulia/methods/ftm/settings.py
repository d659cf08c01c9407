"""Settings of Federated Topic Modelling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from tertulia.methods.baselines.settings import AloneSettings
from tertulia.methods.common.lda_settings import (
    Channel,
    Sampler,
    Threshold,
    UnitModel,
    check_private,
    check_seeds_of_lda,
    fix_alpha_in_paper_mode,
)
from tertulia.methods.common.seeds import NO_SEEDS, STRENGTH, Seeds, SeedStrength, take_over, why_other_seeds
from tertulia.methods.common.settings import (
    PARTY,
    AgreedWords,
    AlphaSum,
    Beta,
    Epsilon,
    Evaluate,
    LearnAlpha,
    MethodSettings,
    Mode,
    MoreRounds,
    Noise,
    Positive,
    Rounds,
    Settings,
    Sweeps,
    SweepsAlone,
    TopicCount,
    VocabularySettings,
    why_no_start,
)

if TYPE_CHECKING:
    from tertulia.models import Topics


class FTMPaper(Settings):
    """Details of the papers that only a reproduction needs."""

    literal_compose: bool | None = Field(
        None,
        description="line 7 of Algorithm 4 as printed: a global topic serves nobody else even where it replaced "
        "nothing; None: in mode `paper`",
    )


class FTMSettings(MethodSettings):
    """Federated Topic Modelling."""

    takes_validation = samples_lda = continues = True
    name: Literal["ftm"] = Field("ftm", description="the method")
    topics: TopicCount = 20
    alpha: AlphaSum = 5.0
    beta: Beta = 0.01
    learn_alpha: LearnAlpha = Field(
        True,
        description="each party learns its topics' alpha and keeps it for itself; false: it stays `alpha` / `topics` "
        "for all, as always in mode `paper`, and in mode `sound` unless you set it",
    )
    sweeps: Sweeps = 50
    sampler: Sampler = "auto"
    model: UnitModel = "lda"
    vocabulary: AgreedWords = VocabularySettings()
    mode: Mode = "clear"
    epsilon: Epsilon = None
    channel: Channel = "krr"
    tau: Threshold = 0.2
    rounds: Rounds = Field(5, description="rounds of training at the parties, merging and composing")
    more_rounds: MoreRounds = 1
    evaluate: Evaluate = None
    merge: Literal["one-to-one", "union-find"] | None = Field(
        None,
        description="how topics merge: each with at most one of every other party, or, as in the papers, by chains of "
        "similar ones; None: `one-to-one`, in mode `paper` `union-find`",
    )
    min_similarity: float | None = Field(
        None,
        gt=0,
        le=1,
        description="topics merge that are at least so similar (xi); None: found from the parties' topics, with "
        "`union-find` 0.3",
        json_schema_extra={"party": "its own xi: it takes over only topics at least so similar to its own (`ftm`)"},
    )
    top_words: Positive = Field(
        50, description="words of a topic that count for its similarity (L)", json_schema_extra=PARTY
    )
    min_support: Positive = Field(
        1,
        description="parties that a topic of the shared model needs: what fewer have stays with those who have it. For "
        "parties of the same subjects only; of different ones hardly any topics merge",
    )
    max_weight: float | None = Field(
        None,
        ge=1,
        description="the most that a party's documents and tokens may weigh, in multiples of the median party's, "
        "for any number that it states; None: no bound",
    )
    seeds: Seeds = NO_SEEDS
    seed_strength: SeedStrength = STRENGTH
    paper: FTMPaper = Field(FTMPaper(), description="details of the papers that only a reproduction needs")

    @model_validator(mode="before")
    @classmethod
    def _fixed_under_noise(cls, values: Any) -> Any:
        """Keep alpha fixed in mode `sound` unless asked: from few reports it comes out small.

        Three alike parties of BBC news, perplexity with alpha fixed and learned: epsilon 10: 789, 791; 8: 850, 869; 6:
        1331, 1401. Consensus, which learns it from everybody's documents, gains by it.
        """
        if isinstance(values, dict) and values.get("mode") == "sound":
            return {"learn_alpha": False, **values}
        return fix_alpha_in_paper_mode(values)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        check_private(self)
        check_seeds_of_lda(self, self.mode)
        return self

    @property
    def planned_rounds(self) -> int:
        """As set."""
        return self.rounds

    @property
    def noise(self) -> Noise:
        """As the mode says."""
        return "none" if self.mode == "clear" else self.mode

    def with_own_epsilon(self, own: float) -> Self:
        """Lower epsilon to the party's own."""
        return self if self.epsilon is None else self.replace(epsilon=min(own, self.epsilon))

    @property
    def sweeps_alone(self) -> SweepsAlone:
        """Parties train alone in every round."""
        return SweepsAlone(self.sweeps, self.rounds, 0)

    def for_one_party(self) -> AloneSettings:
        """Return LDA with as many sweeps: with one party nothing is merged."""
        return self.part(AloneSettings, name="alone", sweeps=self.sweeps * self.rounds)

    def continued(self) -> Self:
        """Plan fewer rounds."""
        return self.replace(rounds=self.more_rounds)

    def why_not_secure(self, *, continues: bool) -> str | None:
        """Refuse: the server merges single parties' models."""
        return "it merges single parties' models, which secure sums hide: use Consensus (method.name = 'consensus')"

    def why_not(self, last: Topics) -> str | None:
        """Allow any number of topics: each party has its own."""
        return why_no_start(last, None) or why_other_seeds(self, last)

    def taking_over(self, last: Topics) -> Self:
        """Take over the seeds of the earlier model, unless there are some."""
        return take_over(self, last)
