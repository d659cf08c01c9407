"""LDA on one machine: texts in, topics out, and on from there when more texts come.

>>> import tertulia as tt
>>> model = tt.LDA(topics=50).fit(texts)  # doctest: +SKIP
>>> model.save("topics")  # doctest: +SKIP
>>> model = tt.LDA(sweeps=20).fit(texts_of_today, start=tt.Topics.load("topics"))  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from tertulia._arrays import F64
from tertulia.api.federated import choose_words
from tertulia.corpus import Corpus, TextOptions, Vocabulary
from tertulia.corpus.inputs import Documents, as_corpus
from tertulia.errors import ConfigError, InputError
from tertulia.methods.common.lda_settings import Sampling
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.settings import Explained, OverWords, Positive, Threads
from tertulia.models import Topics


class LDA(Explained, OverWords, Threads, Sampling):
    """The settings of a trainer, and `fit`.

    Training begins with clusters of documents and goes on with sweeps of a sampler until it has settled; the topics are
    the mean over the last quarter of the sweeps (see docs/performance.md). The same seed gives the same topics, bit for
    bit, at any number of threads.
    """

    sweeps: Positive | Literal["auto"] = Field(  # type: ignore[assignment]
        "auto",
        description="passes over the documents; `auto`: until the perplexity of tokens given all others has settled",
    )
    max_sweeps: Positive = Field(1_000, description="with `auto`, passes at the most")
    learn_beta: bool = Field(
        False, description="learn beta from the counts: perplexity falls by some percent, and topics share more words"
    )

    def fit(
        self,
        documents: Documents,
        *,
        start: Topics | None = None,
        seed: int = 0,
        text: TextOptions | None = None,
        progress: Callable[[int, float], None] | None = None,
    ) -> Topics:
        """Train on a list of texts, a data frame with a column `text`, or a corpus.

        A corpus that lies on disk (`Corpus.load`) is read from there, sweep by sweep; only where words must be pruned
        is a pruned copy made in memory. With `start`, training continues from a saved model: topics, priors and the way
        of cutting texts are the model's, words that it lacks are added, and the result has learned from the old
        documents and the new, each in proportion to its tokens. `progress` is called after each sweep with how many
        there were, and the perplexity of tokens given all others: that is what `sweeps="auto"` watches.
        """
        if start is not None:
            return self._go_on(documents, start, seed, text, progress)
        corpus = as_corpus(None, documents, text)
        corpus = corpus.encode(choose_words(corpus, self.vocabulary))
        return self._train(corpus, "clusters", symmetric(self.alpha, self.topics), self.beta, seed, progress)

    def _go_on(self, documents: Documents, start: Topics, seed: int, text: TextOptions | None, progress: Any) -> Topics:
        if "topics" in self.model_fields_set and self.topics != start.n_topics:
            raise ConfigError(f"topics = {self.topics}: the model to continue has {start.n_topics}; leave `topics` out")
        corpus = as_corpus(None, documents, start.options)
        if {corpus.options, text or start.options} != {start.options}:
            raise ConfigError("the texts are cut in another way than the model's were: use the model's `options`")
        start = extend(start, choose_words(corpus, self.vocabulary))
        corpus, beta = corpus.encode(start.vocabulary), start.beta or self.beta
        return join(start, self._train(corpus, start.topic_word, start.alpha, beta, seed, progress))

    def _train(self, corpus: Corpus, start: Any, alpha: F64, beta: float, seed: int, progress: Any) -> Topics:
        from tertulia.kernels import lda

        if corpus.n_tokens == 0:
            raise InputError(f"none of {corpus.n_documents} documents holds a word to model: check the column and text")
        done = 0

        def watch(sweep: int, perplexity: float) -> None:
            nonlocal done
            done = sweep
            if progress is not None:
                progress(sweep, perplexity)

        V, K, sweeps = len(corpus.vocabulary), len(alpha), None if self.sweeps == "auto" else self.sweeps
        options = {"sampler": self.sampler, "threads": self.threads, "start": start, "most_sweeps": self.max_sweeps}
        learning = self.learning._replace(beta=self.learn_beta)
        state = lda.train(
            corpus.words,
            corpus.documents,
            V,
            K,
            alpha,
            beta,
            sweeps,
            seed,
            learning=learning,
            progress=watch,
            **options,
        )
        provenance = {"method": "lda", "config": self.model_dump(exclude={"vocabulary"}), "tokens": corpus.n_tokens}
        return Topics(
            lda.topic_word(state),
            corpus.vocabulary,
            state.alpha,
            state.beta,
            lda.topic_sizes(state),
            corpus.options,
            {**provenance, "sweeps": done},
        )


def extend(model: Topics, vocabulary: Vocabulary) -> Topics:
    """Add the words that a model lacks. A topic gives each what it gives to words it has never seen, its least entry.

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
    """One model from the counts of two with the same topics and words; each weighs as much as it has seen tokens.

    So do their priors. A model that does not say how many (`provenance["tokens"]`), and in which topics, was only a
    start, and weighs nothing.
    """
    counts = [_tokens(old), _tokens(new)]
    total = counts[0] + counts[1]
    share = np.divide(counts[0], total, out=np.ones_like(total), where=total > 0)[:, None]
    new_share = counts[1].sum() / total.sum()  # of priors in their geometric mean: a document or two leave them open
    return replace(
        new,
        alpha=old.alpha * (new.alpha / old.alpha) ** new_share,
        topic_word=share * old.topic_word + (1.0 - share) * new.topic_word,
        weights=total,
        provenance={**new.provenance, "tokens": round(total.sum()), "continues": old.provenance},
    )


def _tokens(model: Topics) -> F64:
    """How many tokens each topic [K] has seen, as far as the model says so."""
    shares = np.zeros(model.n_topics) if model.weights is None else model.weights
    counts: F64 = int(model.provenance.get("tokens", 0)) * shares
    return counts
