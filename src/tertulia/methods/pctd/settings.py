"""Settings of PC-TD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from tertulia.federation.fields import Capped, Least, Uncapped
from tertulia.federation.types import message
from tertulia.methods.common.settings import (
    PATH,
    AgreedWords,
    AlphaSum,
    Beta,
    Epsilon,
    Evaluate,
    MethodSettings,
    MoreRounds,
    Noise,
    Positive,
    Settings,
    TopicCount,
    VocabularySettings,
    check_word_list,
    why_no_start,
)

if TYPE_CHECKING:
    from tertulia.models import Topics


@message
class PCTDPaper(Settings):
    """Details of the paper that only a reproduction needs."""

    noise_on: Literal["all", "held"] = Field(
        "all",
        description="words of a unit whose counts get noise; `held`: only those that it holds, the other reading of "
        "(4), whose epsilon is infinite",
    )


Unit = Annotated[
    Literal["ngram", "sentence", "paragraph"],
    Field(description="what has one topic: n-grams within a sentence, sentences or paragraphs"),
]
UnitWords = Annotated[Positive, Field(description="words of an n-gram"), Uncapped("documents have no more words")]
NoiseMode = Annotated[
    Literal["clear", "paper", "sound"],
    Field(
        description="`clear`: no noise. `paper`: Gaussian noise on the word counts of units. `sound`: Gaussian noise "
        "on clipped sums over documents, private for whole documents"
    ),
]
Iterations = Annotated[Positive, Field(description="iterations of EM (T)"), Capped("max_rounds")]
Sigma = Annotated[
    float | None,
    Field(gt=0, description="standard deviation of the noise, for mode `paper`; None: 0.25, unless epsilon is given"),
    Least(1e-6),
]
RealEpsilon = Annotated[
    Epsilon,
    Field(
        description="the real privacy parameter over all rounds: in mode `sound` of one document, there or not; in "
        "mode `paper`, instead of sigma, of one token"
    ),
]
Delta = Annotated[
    float,
    Field(
        gt=0,
        lt=1,
        description="the other privacy parameter, for which epsilon holds",
        json_schema_extra={"party": "its own delta, at which its own epsilon holds; the method's, if that is smaller"},
    ),
    Least(1e-300),
]
DocumentWords = Annotated[
    Positive,
    Field(
        description="for mode `sound`: about how many words of the list a document has, as is publicly known: longer "
        "ones are cut in weight, shorter ones get more noise than they need"
    ),
    Uncapped("it sets the norm to which a document is cut, and with it the noise"),
]
PaperDetails = Annotated[PCTDPaper, Field(description="details of the paper that only a reproduction needs")]


@message
class UnitSettings(Settings):
    """The unit that has one topic."""

    unit: Unit = "ngram"
    unit_words: UnitWords = 3


@message
class UnitNoise(Settings):
    """The noise on the counts of words in units."""

    mode: NoiseMode = "clear"
    epsilon: RealEpsilon = None
    rounds: Iterations = 35
    sigma: Sigma = None
    delta: Delta = 1e-6
    paper: PaperDetails = PCTDPaper()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.mode == "sound":
            raise ValueError("in mode 'sound' counts of units have no noise of their own")
        check_noise(self.mode, self.sigma, self.epsilon, self.paper)
        return self


@message
class SumNoise(Settings):
    """The noise on clipped sums over documents."""

    epsilon: RealEpsilon = None
    rounds: Iterations = 35
    delta: Delta = 1e-6
    words_per_document: DocumentWords = 100

    @model_validator(mode="after")
    def _has_epsilon(self) -> Self:
        check_noise("sound", None, self.epsilon, PCTDPaper())
        return self


def check_noise(mode: str, sigma: float | None, epsilon: float | None, paper: PCTDPaper) -> None:
    """Raise unless the settings of the noise fit together."""
    if mode == "sound":
        if sigma is not None or paper.noise_on == "held":
            raise ValueError("sigma and paper.noise_on go with mode 'paper': in mode 'sound' epsilon sets the noise")
        if epsilon is None:
            raise ValueError("mode 'sound' needs an epsilon of a document: set epsilon, such as 8")
    if sigma is not None and epsilon is not None:
        raise ValueError("sigma and epsilon both say how much noise there is: give one of them")
    if mode == "clear" and (sigma is not None or epsilon is not None):
        raise ValueError(
            "sigma and epsilon go with mode 'paper', and epsilon with mode 'sound': in mode 'clear' there is no noise"
        )
    if paper.noise_on == "held" and (mode == "clear" or epsilon is not None):
        raise ValueError("paper.noise_on = 'held' goes with mode 'paper' and a sigma: it keeps no epsilon")


class PCTDSettings(MethodSettings):
    """Private and consistent topic discovery."""

    continues = True
    name: Literal["pctd"] = Field("pctd", description="the method")
    unit: Unit = "ngram"
    unit_words: UnitWords = 3
    topics: TopicCount = 20
    alpha: AlphaSum = 5.0
    beta: Beta = 0.01
    mode: NoiseMode = "clear"
    epsilon: RealEpsilon = None
    rounds: Iterations = 35
    more_rounds: MoreRounds = 10
    evaluate: Evaluate = None
    sigma: Sigma = None
    delta: Delta = 1e-6
    words_per_document: DocumentWords = 100
    paper: PaperDetails = PCTDPaper()
    seed: int | None = Field(None, description="of the server's random numbers; None: the run's")
    vocabulary: AgreedWords = VocabularySettings()
    vectors: str | None = Field(
        None,
        description="a file of word vectors, by which words are related: GloVe or word2vec text, `.bin` (word2vec), "
        "`.npz` (`words`, `vectors`), also `.gz`",
        json_schema_extra=PATH,
    )
    relations: str | None = Field(
        None,
        description="instead: a file of related words, `word<TAB>word<TAB>strength`",
        json_schema_extra=PATH,
    )
    neighbours: Positive = Field(10, description="nearest words that a word is related to, with `vectors`")
    min_cosine: float = Field(0.5, ge=0, le=1, description="if they are at least so similar")
    tau: float = Field(
        0.3,
        ge=0,
        description="how hard related words pull each other up; without `vectors` or `relations` nothing does",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        check_noise(self.mode, self.sigma, self.epsilon, self.paper)
        check_word_list(self.mode, self.vocabulary)
        if self.vectors is not None and self.relations is not None:
            raise ValueError("vectors and relations both say how words relate: give one of them")
        return self

    @property
    def planned_rounds(self) -> int:
        """As set."""
        return self.rounds

    @property
    def noise(self) -> Noise:
        """As the mode says; in mode `sound` it is for documents."""
        if self.mode == "sound":
            return "doc"
        return "none" if self.mode == "clear" else "paper"

    def with_own_epsilon(self, own: float) -> Self:
        """Lower epsilon to the party's own, or let it say how much noise there is, in place of sigma."""
        return self.replace(epsilon=own if self.epsilon is None else min(own, self.epsilon), sigma=None)

    @property
    def passes(self) -> int:
        """Each iteration passes over the documents once."""
        return self.rounds

    def continued(self) -> Self:
        """Plan fewer rounds."""
        return self.replace(rounds=self.more_rounds)

    def why_not(self, last: Topics) -> str | None:
        """Require as many topics as the earlier model has, or more: its topics are shared by all."""
        return why_no_start(last, self.topics)
