"""Settings of FedLDA."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from tertulia.federation.fields import Capped, Least, Uncapped
from tertulia.federation.types import message
from tertulia.methods.common.settings import (
    LEAST_EPSILON,
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
    Share,
    Sweeps,
    TopicCount,
    VocabularySettings,
    check_epsilon,
    check_word_list,
    why_no_start,
)
from tertulia.privacy.mechanisms.perturbation import Perturbation

if TYPE_CHECKING:
    from tertulia.models import Topics

FEWEST_WORDS = 2  # of a document that say something about its topics


@message
class FedLDAPaper(Settings):
    """Details of the paper that only a reproduction needs."""

    delta: float = Field(0.1, gt=0, lt=1, description="mass of a topic's deserted tail, in `rrp` and `tkrr`")
    gamma: float | None = Field(None, ge=1, description="theorem 1's constant, in `rrp`; None: infinite")
    bookkeeping: Literal["converging", "paper", "frequencies"] = Field(
        "converging",
        description="`converging`: a token's word is drawn once, and its topic moves when it is sent, so that the "
        "server's counts converge. `paper`: drawn again for each tuple, and all tuples count as sent. `frequencies`: "
        "as `paper`, but the server's counts are the words under each new topic in this round's tuples alone, the "
        "other reading of algorithm 2, lines 6-7; not with `hm`",
    )
    arrival_rounds: Annotated[int, Capped("max_rounds")] = Field(
        0, ge=0, description="the number of rounds over which users arrive; 0: all are there from the beginning"
    )


UserSweeps = Annotated[Sweeps, Field(description="passes over a user's words in each round")]
UserEpsilon = Annotated[
    Epsilon,
    Field(
        description="the privacy parameter: in mode `paper` of one tuple (with `hm`, of one round), in mode `sound` of "
        "one token, beside `user_epsilon` at most"
    ),
]
UserTotal = Annotated[
    float | None,
    Field(
        gt=0,
        le=10_000,
        description="the total for all reports of a user, in mode `sound`: the number of words that count, up to "
        "`max_words`, and the epsilon of each are chosen for it by a public rule; None: `epsilon` decides",
    ),
    Least(LEAST_EPSILON),
]
UserDelta = Annotated[
    float, Field(gt=0, lt=1, description="beside `user_epsilon`; smaller than 1 / documents of every shard")
]
UserDocuments = Annotated[
    Positive,
    Field(
        description="documents of one user that `user_epsilon` is for; with a column `user` at least the policy's "
        "`max_documents_per_user`"
    ),
    Uncapped("more documents only make each report noisier"),
]
Mechanism = Annotated[Literal["rrp", "krr", "tkrr", "hm"], Field(description="how mode `paper` perturbs tuples")]
UserChannel = Annotated[Literal["krr", "subset"], Field(description="how mode `sound` reports a token")]
UserSampler = Annotated[Literal["gibbs", "mh"], Field(description="`mh`: in constant time per token, for many topics")]
WordsPerUser = Annotated[
    Positive,
    Field(description="words of a user that count, the first ones (M)"),
    Uncapped("documents have no more words"),
]
SampleRatio = Annotated[Share, Field(description="share of M tuples that a user sends, one at least (l / M)")]
UsersPerRound = Annotated[float, Field(gt=0, le=1, description="share of users who are asked in a round")]
UserDropout = Annotated[Share, Field(description="share of those whose answer never comes")]
PaperDetails = Annotated[FedLDAPaper, Field(description="details of the paper that only a reproduction needs")]


@message
class UserSettings(Settings):
    """The settings of all users: the part that travels."""

    topics: TopicCount = 20
    alpha: AlphaSum = 5.0
    beta: Beta = 0.01
    sweeps: UserSweeps = 1
    mode: Mode = "clear"
    epsilon: UserEpsilon = None
    mechanism: Mechanism = "rrp"
    channel: UserChannel = "subset"
    sampler: UserSampler = "gibbs"
    max_words: WordsPerUser = 150
    user_epsilon: UserTotal = None
    user_delta: UserDelta = 1e-6
    user_documents: UserDocuments = 1
    sample_ratio: SampleRatio = 0.7
    users_per_round: UsersPerRound = 1.0
    user_dropout: UserDropout = 0.0
    paper: PaperDetails = FedLDAPaper()

    @model_validator(mode="after")
    def _epsilon_with_noise(self) -> Self:
        _check_epsilons(self)
        return self

    @property
    def sampled(self) -> int:
        """The tuples that a user sends in a round, dummies included (l)."""
        return max(1, round(self.sample_ratio * self.max_words))

    def limit_epsilon(self, own: float | None) -> Self:
        """Return the same settings with a shard's own epsilon, if that is stricter."""
        if self.mode == "clear" or own is None or own >= (self.epsilon or math.inf):
            return self
        return self.replace(epsilon=own)

    def perturbation(self) -> Perturbation:
        """Return how words are perturbed."""
        if self.mode == "clear" or self.epsilon is None:
            return Perturbation("none")
        gamma = math.inf if self.paper.gamma is None else self.paper.gamma
        return Perturbation(self.mechanism, self.epsilon, self.paper.delta, gamma)

    @property
    def counts_again(self) -> bool:
        """Whether a round's tuples replace the server's counts; else they change them."""
        return self.mode != "sound" and self.paper.bookkeeping == "frequencies"

    @property
    def drawn_once(self) -> bool:
        """Whether a token has the same word in all its reports: a move then takes back what an earlier one gave."""
        return self.paper.bookkeeping == "converging" and self.perturbation().kind in ("rrp", "krr", "tkrr")


def _check_epsilons(settings: UserSettings | FedLDASettings) -> None:
    """Raise unless there is an epsilon of a token or of a user where the mode has noise, and only there."""
    if settings.paper.bookkeeping == "frequencies" and settings.mode == "paper" and settings.mechanism == "hm":
        raise ValueError("mechanism 'hm' reports changes of counts, which have no frequencies: set bookkeeping 'paper'")
    if settings.user_epsilon is None:
        check_epsilon(settings.mode, settings.epsilon)
    elif settings.mode != "sound":
        raise ValueError(f"user_epsilon is for mode 'sound': a user of mode '{settings.mode}' has no bound")
    elif settings.max_words < FEWEST_WORDS:
        raise ValueError(f"max_words = {settings.max_words}: topics are learned from pairs of words, so give 2 or more")


class FedLDASettings(MethodSettings):
    """FedLDA: topic models from users who trust nobody."""

    continues = True
    name: Literal["fedlda"] = Field("fedlda", description="the method")
    topics: TopicCount = 20
    alpha: AlphaSum = 5.0
    beta: Beta = 0.01
    sweeps: UserSweeps = 1
    mode: Mode = "clear"
    epsilon: UserEpsilon = None
    rounds: Rounds = Field(50, description="rounds of sampling at the users and adding up at the server")
    more_rounds: MoreRounds = 15
    evaluate: Evaluate = None
    learn_alpha: LearnAlpha = Field(
        False, description="stays false: users' topics would have to leave without noise, so alpha is fixed"
    )
    mechanism: Mechanism = "rrp"
    channel: UserChannel = "subset"
    sampler: UserSampler = "gibbs"
    max_words: WordsPerUser = 150
    user_epsilon: UserTotal = None
    user_delta: UserDelta = 1e-6
    user_documents: UserDocuments = 1
    sample_ratio: SampleRatio = 0.7
    users_per_round: UsersPerRound = 1.0
    user_dropout: UserDropout = 0.0
    paper: PaperDetails = FedLDAPaper()
    vocabulary: AgreedWords = VocabularySettings()

    @field_validator("learn_alpha")
    @classmethod
    def _alpha_is_fixed(cls, value: bool) -> bool:
        if value:
            raise ValueError("users' topics would have to leave without noise; give `alpha`, which is fixed here")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _check_epsilons(self)
        check_word_list(self.mode, self.vocabulary)
        if self.user_epsilon is not None and self.vocabulary.mode != "public":
            raise ValueError(
                "user_epsilon is a total, and words that are chosen under noise cost a user more: set "
                "vocabulary.mode = 'public'"
            )
        if self.mode == "sound" and (self.users_per_round < 1 or self.user_dropout > 0):
            raise ValueError("mode 'sound' asks each user once: leave users_per_round and user_dropout alone")
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
        return self if self.mode == "clear" else self.replace(epsilon=min(own, self.epsilon or own))

    @property
    def passes(self) -> int:
        """All rounds' sweeps."""
        return self.sweeps * self.rounds

    def continued(self) -> Self:
        """Plan fewer rounds."""
        return self.replace(rounds=self.more_rounds)

    def why_not(self, last: Topics) -> str | None:
        """Require as many topics as the earlier model has, or more: its topics are shared by all."""
        return why_no_start(last, self.topics)
