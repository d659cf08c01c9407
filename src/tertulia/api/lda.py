"""LDA on one machine, and continued training on new texts.

>>> import tertulia as tt
>>> model = tt.LDA(topics=50).fit(texts)  # doctest: +SKIP
>>> model.save("topics")  # doctest: +SKIP
>>> model = tt.LDA(sweeps=20).fit(texts_of_today, start=tt.Topics.load("topics"))  # doctest: +SKIP
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack

import numpy as np
from pydantic import Field, model_validator

from tertulia._arrays import F64
from tertulia.api.advice import warn_before_training
from tertulia.api.estimators import Estimator
from tertulia.api.trainers import FitOptions, Trainer, TrainOptions, corpus_of, own_settings, words_of
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.counts import is_matrix
from tertulia.corpus.inputs import Documents, as_corpus, materialise
from tertulia.errors import ConfigError, InputError
from tertulia.methods.common.lda_settings import Sampler, learning_of
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.seeds import (
    NO_SEEDS,
    STRENGTH,
    Prior,
    Seeds,
    SeedStrength,
    check_seeds,
    find_unknown,
    seeds_of,
    warn_of_unknown,
    why_other_seeds,
    with_seeds,
)
from tertulia.methods.common.settings import (
    AgreedWords,
    AlphaSum,
    Beta,
    LearnAlpha,
    Positive,
    Threads,
    TopicCount,
    VocabularySettings,
)
from tertulia.models import Topics

if TYPE_CHECKING:
    from tertulia.api.arguments import LDAArguments
    from tertulia.kernels.lda import LDAState
    from tertulia.kernels.lda.options import Learning


class LDATrainer(Trainer):
    """The settings of LDA on one machine."""

    topics: TopicCount = 20
    alpha: AlphaSum = 5.0
    beta: Beta = 0.01
    learn_alpha: LearnAlpha = True
    sweeps: Positive | Literal["auto"] = Field(
        "auto",
        description="passes over the documents; `auto`: until the perplexity of tokens given all others has settled",
    )
    sampler: Sampler = "auto"
    threads: Threads = 1
    vocabulary: AgreedWords = VocabularySettings()
    max_sweeps: Positive = Field(1_000, description="with `auto`, passes at the most")
    learn_beta: bool = Field(
        False, description="learn beta from the counts: perplexity falls by some percent, and topics share more words"
    )
    seeds: Seeds = NO_SEEDS
    seed_strength: SeedStrength = STRENGTH

    @model_validator(mode="after")
    def _seeds_fit(self) -> Self:
        check_seeds(self)
        if self.seeds and self.learn_beta:
            raise ValueError("seeds fix the prior of words: leave `learn_beta` out")
        return self

    @property
    def steps(self) -> int | None:
        """Return the number of sweeps; None with `sweeps="auto"`."""
        return self.sweeps if isinstance(self.sweeps, int) else None

    def train(self, documents: Documents, how: TrainOptions) -> Topics:
        """Train a model, or continue one.

        A corpus on disk (`Corpus.load`) is read from there in each sweep; only if words must be pruned is a copy made
        in memory. With `start`, topics, priors and tokenisation are those of the model, missing words are added, and
        the result combines old and new documents in proportion to their tokens. `progress` is called after each sweep
        with its number and the perplexity of tokens given all others, the criterion of `sweeps="auto"`.
        """
        if how.start is not None:
            return self._continue(documents, how.start, how)
        corpus, alpha = corpus_of(documents, self.vocabulary, how.text), symmetric(self.alpha, self.topics)
        return self._train(corpus, "clusters", alpha, self.beta, how)

    def _continue(self, documents: Documents, start: Topics, how: TrainOptions) -> Topics:
        if "topics" in self.model_fields_set and self.topics != start.n_topics:
            raise ConfigError(f"topics = {self.topics}: the model to continue has {start.n_topics}; leave `topics` out")
        if not self.seeds and (kept := seeds_of(start)):
            return self.replace(**kept, topics=start.n_topics)._continue(documents, start, how)
        if (why := why_other_seeds(self, start)) is not None:
            raise ConfigError(f"this model cannot be continued with other seeds: {why}")
        beta = start.beta or self.beta
        if is_matrix(documents):
            corpus = start.encode(documents)
        else:
            corpus = as_corpus(None, documents, start.options)
            if {corpus.options, how.text or start.options} != {start.options}:
                raise ConfigError("the texts are cut in another way than the model's were: use the model's `options`")
            start = extend(start, words_of(corpus, self.vocabulary, more=True))
            corpus = corpus.encode(start.vocabulary)
        return join(start, self._train(corpus, start.topic_word, start.alpha, beta, how))

    def _train(self, corpus: Corpus, start: Any, alpha: F64, beta: float, how: TrainOptions) -> Topics:
        from tertulia.kernels import lda

        if corpus.n_tokens == 0:
            raise InputError(f"none of {corpus.n_documents} documents holds a word to model: check the column and text")
        if isinstance(start, str):  # a continued model may have few new documents
            warn_before_training(corpus, len(alpha))
        done = 0

        def watch(sweep: int, perplexity: float) -> None:
            nonlocal done
            done = sweep
            if how.progress is not None:
                how.progress(sweep, perplexity)

        learning = learning_of(self.learn_alpha, self.sweeps)._replace(beta=self.learn_beta)
        state, topic_word = self._sample(corpus, start, alpha, beta, learning, how.seed, watch)
        provenance = {"method": "lda", "config": own_settings(self), "tokens": corpus.n_tokens}
        found = Topics(
            topic_word,
            corpus.vocabulary,
            state.alpha,
            state.beta,
            lda.topic_sizes(state),
            corpus.options,
            {**provenance, "sweeps": done},
        )
        return with_seeds(found, self)

    def _sample(
        self, corpus: Corpus, start: Any, alpha: F64, beta: float, learning: Learning, seed: int, watch: Any
    ) -> tuple[LDAState, F64]:
        """Sample, under seed words if there are any; return the state and the topics."""
        from tertulia.kernels import lda

        V, K, sweeps = len(corpus.vocabulary), len(alpha), None if self.sweeps == "auto" else self.sweeps
        prior = Prior.of(self, corpus.vocabulary.words)
        if prior is None:
            options = {"sampler": self.sampler, "threads": self.threads, "start": start, "most_sweeps": self.max_sweeps}
            state = lda.train(
                corpus.words, corpus.documents, V, K, alpha, beta, sweeps, seed,
                learning=learning, progress=watch, **options,
            )  # fmt: skip
            return state, lda.topic_word(state)
        from tertulia.methods.common import seeded_lda

        warn_of_unknown(find_unknown(self, corpus.vocabulary.words))
        schedule = seeded_lda.Schedule(sweeps, learning, self.max_sweeps, self.threads, watch)
        documents = seeded_lda.Documents(corpus.words, corpus.documents, V)
        first = None if isinstance(start, str) else start
        state = seeded_lda.train(documents, prior, alpha, beta, seed, schedule, first)
        return state, seeded_lda.topic_word(state, prior)


def extend(model: Topics, vocabulary: Vocabulary) -> Topics:
    """Add the words that a model lacks; each gets the probability of an unseen word, the topic's least entry.

    >>> model = Topics(np.array([[0.75, 0.25]]), Vocabulary(("sun", "rain")))
    >>> extend(model, Vocabulary(("rain", "wind"))).topic_word
    array([[0.6, 0.2, 0.2]])
    """
    new = tuple(word for word in vocabulary.words if word not in model.vocabulary.index)
    least = model.topic_word.min(axis=1, keepdims=True)  # (0 + beta) / (C. + V beta), for a model of counts
    topic_word = np.concatenate((model.topic_word, np.repeat(least, len(new), axis=1)), axis=1)
    topic_word /= topic_word.sum(axis=1, keepdims=True)
    return replace(model, topic_word=topic_word, vocabulary=Vocabulary(model.vocabulary.words + new))


def join(old: Topics, new: Topics) -> Topics:
    """Combine two models with the same topics and words; topics and priors are weighted by their tokens.

    A model without a number of tokens (`provenance["tokens"]`) and without topic weights has weight zero.
    """
    counts = [_tokens(old), _tokens(new)]
    total = counts[0] + counts[1]
    share = np.divide(counts[0], total, out=np.ones_like(total), where=total > 0)[:, None]
    new_share = counts[1].sum() / total.sum()  # weight of new priors in a geometric mean: few documents change little
    return replace(
        new,
        alpha=old.alpha * (new.alpha / old.alpha) ** new_share,
        topic_word=share * old.topic_word + (1.0 - share) * new.topic_word,
        weights=total,
        names=old.names,
        hidden=old.hidden,
        provenance={**new.provenance, "tokens": round(total.sum()), "continues": old.provenance},
    )


def _tokens(model: Topics) -> F64:
    """Return the number of tokens of each topic [K]; zero if the model does not know it."""
    shares = np.zeros(model.n_topics) if model.weights is None else model.weights
    counts: F64 = int(model.provenance.get("tokens", 0)) * shares
    return counts


class LDA(Estimator):
    """LDA on one machine: an estimator in scikit-learn's sense, and after `fit` a model.

    Training starts from clusters of documents and runs sweeps of a sampler until the perplexity has settled. The topics
    are the mean over the last quarter of the sweeps (see docs/performance.md). The same seed gives the same topics, bit
    for bit, with any number of threads.
    """

    trainer: ClassVar[type[LDATrainer]] = LDATrainer
    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[LDAArguments]) -> None: ...

    def partial_fit(self, documents: Documents, y: object = None, **options: Unpack[FitOptions]) -> Self:
        """Continue training with more documents; old and new ones are weighted by their tokens."""
        documents = materialise(documents)
        if "topics_" in self.__dict__:
            self._check_columns(documents)
            options = {"start": self.topics_, **options}
        return self.fit(documents, y, **options)
