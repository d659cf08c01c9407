"""Held-out likelihood and perplexity by document completion: one estimator for every model, of any library.

Wallach et al. 2009, "Evaluation Methods for Topic Models": fold in on the first half of each document's tokens, score
the second half. `perplexity_plugin` is the figure that the papers of FedLDA and PC-TD report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tertulia._arrays import F64, I32, I64, Array
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError, InputError
from tertulia.kernels.core.checks import check_topics
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.lda import fold_in


@dataclass(frozen=True)
class Completion:
    """The log likelihood of the scored halves of documents; results of several parties can be added."""

    log_likelihood: float
    tokens: int  # scored
    documents: int  # scored
    skipped: int  # documents with fewer than 2 known tokens: there is nothing to complete

    @property
    def perplexity(self) -> float:
        """exp(-log likelihood per token); infinite if a word of probability 0 occurs (see `smoothing`)."""
        return _perplexity(self.log_likelihood, self.tokens)

    def __add__(self, other: Completion) -> Completion:
        return Completion(
            self.log_likelihood + other.log_likelihood,
            self.tokens + other.tokens,
            self.documents + other.documents,
            self.skipped + other.skipped,
        )


def completion(
    topic_word: Array,
    alpha: float | Array,
    corpus: Corpus,
    *,
    smoothing: float = 0.0,
    iterations: int = 20,
    threads: int = 1,
) -> Completion:
    """Score a model [K, V] on documents over its vocabulary.

    Rows are normalised first, so counts and scikit-learn's `components_` work too. `smoothing=s` mixes each topic with
    a share s of the uniform distribution, to compare models that have never seen some of the words.

    >>> corpus = Corpus.from_texts(["sun rain sun rain", "money"])
    >>> completion(np.array([[1.0, 1.0, 2.0]]), 0.1, corpus)
    Completion(log_likelihood=-2.772588722239781, tokens=2, documents=1, skipped=1)
    """
    likelihood, tokens = _halves(topic_word, alpha, corpus, smoothing, iterations, threads)
    documents = int((tokens > 0).sum())
    return Completion(float(likelihood.sum()), int(tokens.sum()), documents, corpus.n_documents - documents)


def by_document(topic_word: Array, alpha: float | Array, corpus: Corpus, *, smoothing: float = 0.0) -> tuple[F64, I64]:
    """Score each document: the log likelihood of its second half, and the number of its tokens, each [D].

    The spread of two models' differences over documents shows how reliable the difference of their sums is.
    """
    return _halves(topic_word, alpha, corpus, smoothing)


def _halves(
    topic_word: Array, alpha: float | Array, corpus: Corpus, smoothing: float, iterations: int = 20, threads: int = 1
) -> tuple[F64, I64]:
    """Fold in the first half of each document; score the second [D], and count its tokens [D]."""
    phi = _topics(topic_word, corpus, smoothing)
    lengths = corpus.lengths
    scored = lengths >= 2
    if not scored.any():
        raise InputError(
            f"none of {corpus.n_documents} documents has 2 tokens that the model knows: is it the right vocabulary?"
        )
    first = np.where(scored, lengths // 2, lengths)  # tokens folded in; documents that are skipped score none
    middle = corpus.documents[:-1] + first
    seen = _head(corpus.words, corpus.documents, middle)
    theta = fold_in.theta(seen, np.concatenate(([0], np.cumsum(first))), phi, alpha, iterations, threads)
    return _log_likelihood(corpus.words, middle, corpus.documents[1:], phi, theta), lengths - first


def perplexity_plugin(topic_word: Array, theta: Array, corpus: Corpus) -> float:
    """Return exp(-sum ln sum_k p(w|z_k) p(z_k|d) / tokens) with the documents' own fitted theta [D, K].

    It scores the same documents that theta was fitted on, so it flatters the model. Compare models by `completion`.
    """
    phi = _topics(topic_word, corpus, 0.0)
    theta = np.asarray(theta, np.float64)
    if theta.shape != (corpus.n_documents, len(phi)):
        raise InputError(
            f"theta has shape {theta.shape}: {corpus.n_documents} documents and {len(phi)} topics are needed"
        )
    if not (np.all(theta >= 0) and np.allclose(theta.sum(axis=1), 1.0, atol=1e-3)):
        raise InputError("theta must hold shares: each row non-negative, with sum 1")
    if corpus.n_tokens == 0:
        raise InputError("the documents hold no token that the model knows: there is nothing to score")
    scores = _log_likelihood(corpus.words, corpus.documents[:-1], corpus.documents[1:], phi, theta)
    return _perplexity(float(scores.sum()), corpus.n_tokens)


def unigram(corpus: Corpus, *, pseudo_count: float = 1.0) -> F64:
    """Return the model [1, V] of a single topic, the word frequencies: the baseline of every topic model.

    >>> unigram(Corpus.from_texts(["sun rain sun"]), pseudo_count=0.0)
    array([[0.66666667, 0.33333333]])
    """
    counts = np.bincount(corpus.words, minlength=len(corpus.vocabulary)) + pseudo_count
    if pseudo_count < 0 or counts.sum() == 0:
        raise InputError(f"pseudo_count = {pseudo_count} with {corpus.n_tokens} tokens gives no distribution of words")
    share: F64 = counts / counts.sum()
    return share[np.newaxis]


def _topics(topic_word: Array, corpus: Corpus, smoothing: float) -> F64:
    """Normalise and smooth a topic-word matrix of any origin."""
    phi = check_topics(topic_word).astype(np.float64)
    V = phi.shape[1]
    if len(corpus.vocabulary) != V:
        raise InputError(
            f"topic_word has {V} words, the corpus's vocabulary {len(corpus.vocabulary)}: "
            "use corpus.encode(vocabulary of the model)"
        )
    if not 0.0 <= smoothing <= 1.0:
        raise ConfigError(f"smoothing = {smoothing}: it is a share, write a number from 0 to 1")
    sums = phi.sum(axis=1, keepdims=True)
    if np.any(sums == 0):
        raise InputError(f"topic {int(np.argmin(sums))} of topic_word has no mass: every topic needs a word")
    phi *= (1.0 - smoothing) / sums
    phi += smoothing / V
    return phi


def _head(words: I32, documents: I64, middle: I64) -> I32:
    """Return the tokens from each document's start to its middle."""
    token = np.arange(len(words))
    return words[token < np.repeat(middle, np.diff(documents))]


def _log_likelihood(words: I32, starts: I64, ends: I64, phi: F64, theta: F64) -> F64:
    """Compute the score of each document [D]."""
    by_word = freeze(phi.T, np.float64)  # [V, K]
    return np.asarray(
        _score(freeze(words, np.int32), freeze(starts, np.int64), freeze(ends, np.int64), by_word, freeze(theta, float))
    )


@kernel
def _score(words: I32, starts: I64, ends: I64, phi: F64, theta: F64) -> F64:
    """Sum log(theta . phi_w) over the tokens of each document, [D]."""
    scores = np.zeros(len(starts))
    for d in range(len(starts)):
        for i in range(starts[d], ends[d]):
            p = 0.0
            for k in range(theta.shape[1]):
                p += theta[d, k] * phi[words[i], k]
            scores[d] += np.log(p)
    return scores


def _perplexity(log_likelihood: float, tokens: int) -> float:
    try:
        return math.exp(-log_likelihood / tokens)
    except OverflowError:
        return math.inf
