"""The settings of every method, as in the section [method] of a run's TOML file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from tertulia.settings import Positive, Settings, Share, VocabularySettings


class LDASettings(Settings):
    """Settings of every method that samples LDA."""

    topics: Positive = 20
    sweeps: Positive = 50
    alpha: float = Field(default=5.0, gt=0)  # the sum of theta's Dirichlet prior over all topics
    beta: float = Field(default=0.01, gt=0)
    learn_alpha: bool = False  # not in a federation
    sampler: Literal["auto", "gibbs", "dense", "sparse", "warp"] = "auto"
    model: Literal["lda", "sentence"] = "lda"
    vocabulary: VocabularySettings = VocabularySettings()

    @field_validator("learn_alpha")
    @classmethod
    def _alpha_is_given(cls, value: bool) -> bool:
        if value:
            raise ValueError(
                "each party would learn an alpha of its own, which nobody hears of; give `alpha`, or learn it on one "
                "machine with tt.LDA(learn_alpha=True)"
            )
        return value


class PrivateSettings(LDASettings):
    """Settings of methods that can keep tokens private."""

    mode: Literal["clear", "paper", "sound"] = "clear"
    channel: Literal["laplace", "krr", "subset"] = "krr"  # of `sound`; `paper` is Laplace
    epsilon: float | None = Field(default=None, gt=0)  # of one token; for `sound` by substitution
    tau: float = Field(default=0.2, ge=0, lt=1)  # the threshold of Laplace reports
    evaluate: bool | None = None  # None: unless the mode is sound, where scores would leave in clear

    @model_validator(mode="after")
    def _private_modes(self) -> PrivateSettings:
        if (self.mode == "clear") == (self.epsilon is not None):
            raise ValueError("an epsilon goes with mode 'paper' or 'sound', and these need one")
        if self.mode == "sound" and self.vocabulary.mode != "public":
            raise ValueError("mode 'sound' needs a public word list (vocabulary.mode = 'public'): proposals tell words")
        if self.mode == "sound" and self.sampler == "warp" and self.channel != "krr":
            raise ValueError("sampler 'warp' in mode 'sound' needs reports of one word each: channel = 'krr'")
        return self


class FTMSettings(PrivateSettings):
    """Federated Topic Modelling."""

    name: Literal["ftm"] = "ftm"
    rounds: Positive = 5
    merge: Literal["one-to-one", "union-find"] | None = None  # None: one-to-one, in mode `paper` union-find
    min_similarity: float | None = Field(default=None, gt=0, le=1)  # xi; None: calibrated, of union-find 0.3
    top_words: Positive = 50  # L
    literal_compose: bool | None = None  # Algorithm 4 line 7 as printed; None: in mode paper


class ConsensusSettings(PrivateSettings):
    """Consensus rounds: merge once, then count together."""

    name: Literal["consensus"] = "consensus"
    model: Literal["lda"] = "lda"  # counting together is by tokens
    mode: Literal["clear", "sound"] = "clear"
    rounds: Positive = 8
    start_sweeps: Positive = 20  # alone, before topics are merged
    sweeps: Positive = 5  # in each round


class FedLDASettings(Settings):
    """FedLDA: topic models from users who trust nobody."""

    name: Literal["fedlda"] = "fedlda"
    mode: Literal["clear", "paper", "sound"] = "clear"
    mechanism: Literal["rrp", "krr", "tkrr", "hm"] = "rrp"  # of `paper`
    channel: Literal["krr", "subset"] = "subset"  # of `sound`
    epsilon: float | None = Field(default=None, gt=0)  # `paper`: of a tuple (hm: of a round); `sound`: of a token
    delta: float = Field(default=0.1, gt=0, lt=1)  # the mass of a topic's deserted tail
    gamma: float | None = Field(default=None, ge=1)  # theorem 1's; None: infinite
    topics: Positive = 20
    rounds: Positive = 50
    sweeps: Positive = 1  # in each round
    sampler: Literal["gibbs", "mh"] = "gibbs"
    alpha: float = Field(default=5.0, gt=0)  # the sum of theta's Dirichlet prior over all topics
    beta: float = Field(default=0.01, gt=0)
    max_words: Positive = 150  # M: a user's words beyond are left out
    sample_ratio: Share = 0.7  # l / M; one tuple is sent at least
    bookkeeping: Literal["converging", "paper"] = "converging"  # a token's word drawn once; `paper`: anew each time
    users_per_round: float = Field(default=1.0, gt=0, le=1)  # share of users who are asked
    user_dropout: Share = 0.0  # share of those whose answer never comes
    arrival_rounds: int = Field(default=0, ge=0)  # users arrive over so many rounds; 0: all are there
    evaluate: bool | None = None  # None: unless the mode is sound, where scores would leave in clear
    vocabulary: VocabularySettings = VocabularySettings()

    @model_validator(mode="after")
    def _private_modes(self) -> FedLDASettings:
        if (self.mode == "clear") == (self.epsilon is not None):
            raise ValueError("an epsilon goes with mode 'paper' or 'sound', and these need one")
        if self.mode == "sound" and self.vocabulary.mode != "public":
            raise ValueError("mode 'sound' needs a public word list (vocabulary.mode = 'public'): proposals tell words")
        if self.mode == "sound" and (self.users_per_round < 1 or self.user_dropout > 0):
            raise ValueError("mode 'sound' asks each user once: leave users_per_round and user_dropout alone")
        return self

    def users(self) -> dict[str, Any]:
        """What users are told of these settings."""
        own = {"name", "topics", "rounds", "sample_ratio", "evaluate", "vocabulary"}
        return {**self.model_dump(exclude=own), "sampled": max(1, round(self.sample_ratio * self.max_words))}


class PCTDSettings(Settings):
    """Private and consistent topic discovery."""

    name: Literal["pctd"] = "pctd"
    mode: Literal["clear", "paper"] = "clear"
    topics: Positive = 20
    rounds: Positive = 35  # T: iterations of EM
    unit: Literal["ngram", "sentence", "paragraph"] = "ngram"
    unit_words: Positive = 3  # n, of n-grams
    alpha: float = Field(default=5.0, gt=0)  # the sum of the prior with which new documents are folded in
    beta: float = Field(default=0.01, gt=0)  # added to each expected count
    sigma: float | None = Field(default=None, gt=0)  # of `paper`: the deviation of the noise; 0.25 if nothing is said
    epsilon: float | None = Field(default=None, gt=0)  # of `paper`, instead of sigma: real, of one token, all rounds
    delta: float = Field(default=1e-6, gt=0, lt=1)
    noise_on: Literal["all", "held"] = "all"  # of `paper`: words of a unit; only those it holds: epsilon is infinite
    vectors: str | None = None  # a file of word vectors
    relations: str | None = None  # or of pairs of words
    neighbours: Positive = 10  # the nearest words that a word is related to
    min_cosine: float = Field(default=0.5, ge=0, le=1)  # if they are at least so similar
    tau: float = Field(default=0.3, ge=0)  # how hard related words pull
    evaluate: bool = True
    seed: int | None = None  # of the first topics; None: the run's
    vocabulary: VocabularySettings = VocabularySettings()

    @field_validator("mode", mode="before")
    @classmethod
    def _no_sound_mode(cls, value: Any) -> Any:
        if value == "sound":
            raise ValueError(
                "there is no sound mode: the noise is drawn in floating point, and drowns all topics long before "
                "epsilon is small; use 'consensus' or 'ftm' with mode 'sound', or mode 'paper', whose real epsilon "
                "`tertulia privacy` tells"
            )
        return value

    @model_validator(mode="after")
    def _settings_that_exclude_each_other(self) -> PCTDSettings:
        if self.sigma is not None and self.epsilon is not None:
            raise ValueError("sigma and epsilon both say how much noise there is: give one of them")
        if self.mode == "clear" and (self.sigma is not None or self.epsilon is not None):
            raise ValueError("sigma and epsilon go with mode 'paper': in mode 'clear' there is no noise")
        if self.noise_on == "held" and (self.mode == "clear" or self.epsilon is not None):
            raise ValueError("noise_on = 'held' goes with mode 'paper' and a sigma: it keeps no epsilon")
        if self.vectors is not None and self.relations is not None:
            raise ValueError("vectors and relations both say how words relate: give one of them")
        return self


class NeuralVocabulary(VocabularySettings):
    """How parties agree on words for a neural model, whose topics lose coherence when many words are rare."""

    max_words: Positive | None = 2000


class NeuralSettings(Settings):
    """Settings of every neural model, trained together or on one machine."""

    topics: Positive = 20
    hidden: tuple[Positive, ...] = Field(default=(100, 100), min_length=1)
    dropout: float = Field(default=0.2, ge=0, lt=1)
    alpha: float = Field(default=1.0, gt=0)  # of each topic: theta's Dirichlet prior
    learn_prior: bool = True
    literal_adapter: bool = False  # CombinedTM as published, with an E x V layer before the first
    embedding: str | None = None  # the folder of a sentence-transformers model; None: the one that comes with us
    precision: Literal["float32", "float64"] = "float32"
    batch_size: int = Field(default=64, ge=2)  # documents in a step, all parties' together
    epochs: Positive | None = None  # at most; None: until the loss stalls (`stop_after`), 500 at most
    learning_rate: float = Field(default=0.002, gt=0)
    betas: tuple[Share, Share] = (0.99, 0.99)
    validation: float = Field(default=0.0, ge=0, lt=1)  # share of documents that only tell when to stop; 0: no stopping
    stop_after: Positive = 20  # epochs whose loss must beat that of as many before
    vocabulary: NeuralVocabulary = NeuralVocabulary()

    @model_validator(mode="after")
    def _more_than_one_topic(self) -> NeuralSettings:
        if self.topics < 2:
            raise ValueError("a neural model needs at least 2 topics")
        return self


class GFedNTMSettings(NeuralSettings):
    """Federated neural topic models."""

    name: Literal["gfedntm"] = "gfedntm"
    scenario: Literal["federated", "centralised", "alone"] = "federated"  # the paper's three
    model: Literal["prodlda", "combinedtm", "zeroshottm"] = "prodlda"
    normalisation: Literal["auto", "batch", "sync", "layer"] = "auto"  # sync for syncopt, layer for local steps
    seed: int | None = None  # of weights, batches and dropout; None: the run's
    rounds: Positive | None = None  # the most, whatever the epochs
    averaging: Literal["syncopt", "fedavg", "fedadam"] = "syncopt"
    local_steps: Positive = 10  # between two rounds of fedavg or fedadam
    local_moments: Literal["averaged", "fresh"] = "averaged"  # Adam's travel with the weights: 3 times the bytes
    optimiser: Literal["sgd", "adam"] = "adam"
    server_rate: float | None = Field(default=None, gt=0)  # None: 1 for fedavg, server_tau for fedadam
    server_tau: float = Field(default=0.1, gt=0)  # of fedadam: weights that change by more move no farther
    server_momentum: float = Field(default=0.0, ge=0, lt=1)  # of fedadam, beta 1: local Adams have a momentum already
    tolerance: float = Field(default=1e-6, ge=0)  # stop when the weights' relative change stays below this
    patience: Positive = 20  # for so many steps
    compression: Literal["none", "fp16", "topk"] = "none"
    keep: float = Field(default=0.1, gt=0, le=1)  # the share of the gradient that top-k sends
    checkpoint_every: Positive = 50  # rounds between two commits on disk

    @model_validator(mode="after")
    def _fits_together(self) -> GFedNTMSettings:
        if self.compression != "none" and self.averaging != "syncopt":
            raise ValueError("compression is of gradients: it goes with averaging = 'syncopt'")
        if self.normalisation == "sync" and self.averaging != "syncopt":
            raise ValueError("normalisation 'sync' sums statistics in every step: with local steps take 'layer'")
        return self

    @property
    def reads_sentences(self) -> bool:
        """Whether parties must keep their texts, to embed them."""
        return self.model != "prodlda"


class AloneSettings(LDASettings):
    """Baselines: each party alone, or all documents pooled. `sweeps` is the total."""

    name: Literal["alone", "centralised"] = "alone"


class CustomSettings(Settings):
    """A method of the user's own: a module with a function `train(fed, config, state)` and its steps."""

    name: Literal["custom"] = "custom"
    module: str
    train: str = "train"
    config: dict[str, Any] = {}


MethodSettings = (
    FTMSettings | ConsensusSettings | FedLDASettings | PCTDSettings | GFedNTMSettings | AloneSettings | CustomSettings
)
Method = Annotated[MethodSettings, Field(discriminator="name")]
