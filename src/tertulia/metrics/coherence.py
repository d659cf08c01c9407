"""Topic coherence: how well a topic's top words belong together in a reference corpus.

Röder, Both and Hinneburg 2015, "Exploring the Space of Topic Coherence Measures" (C_NPMI, C_V); Mimno et al. 2011,
"Optimizing Semantic Coherence in Topic Models" (UMass). Each measure equals its own definition. gensim 4.4's C_V and
C_NPMI do not: when the first occurrence of a word leaves the sliding window, gensim forgets the others that are still
inside. This changes the C_V of single topics of 20 Newsgroups by up to 0.1 (`python -m benchmarks.coherence`).

If a word is absent from the reference corpus, its pairs are undefined (a division by 0) and count 0. That flatters such
topics, so the result has the number of absent top words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I32, I64, Array, Bool
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError, InputError
from tertulia.kernels.core.jit import freeze
from tertulia.metrics import _windows
from tertulia.metrics.diversity import TopicsLike, top_words

_EPSILON = 1e-12  # Röder's, so that pairs that never meet have a logarithm


class Coherence(NamedTuple):
    """The coherence of each topic."""

    per_topic: F64  # [K]
    absent: int  # top words that the reference corpus lacks

    @property
    def mean(self) -> float:
        """The mean over topics."""
        return float(self.per_topic.mean())


class _Counts(NamedTuple):
    """Numbers of virtual documents: all, with each top word, and with both words of each pair of ranks."""

    total: int
    single: I64  # [K, n]
    joint: I64  # [K, P]
    ranks: tuple[Array, Array]  # [P] and [P]: i < j, so that i is the better word
    real: Bool  # [K, n] False where a topic has fewer than n words

    @property
    def paired(self) -> Bool:
        """The pairs [K, P] whose two words are real."""
        i, j = self.ranks
        return self.real[:, i] & self.real[:, j]


def npmi(topics: TopicsLike, corpus: Corpus, *, top: int = 10, window: int | None = 10) -> Coherence:
    """C_NPMI: the mean normalised pointwise mutual information of all pairs of top words.

    Probabilities are shares of the positions of a sliding window; `window=None` takes whole documents.
    `topics` is a model, lists of words, or a matrix [K, V] over the corpus's vocabulary.
    """
    counts = _count(topics, corpus, top, window)
    return _result(counts, _npmi(counts).sum(axis=1) / counts.paired.sum(axis=1))


def umass(topics: TopicsLike, corpus: Corpus, *, top: int = 10) -> Coherence:
    """UMass as in the papers: the sum of log((D_ij + 1) / D_i) over pairs of top words, i the better one."""
    counts = _count(topics, corpus, top, None)
    return _result(counts, _log_ratio(counts, 1.0).sum(axis=1))


def umass_gensim(topics: TopicsLike, corpus: Corpus, *, top: int = 10) -> Coherence:
    """UMass as in gensim: the mean of log((D_ij / D + 1e-12) / (D_i / D)) over the same pairs."""
    counts = _count(topics, corpus, top, None)
    ratios = _log_ratio(counts, _EPSILON * counts.total)
    return _result(counts, ratios.sum(axis=1) / counts.paired.sum(axis=1))


def c_v(topics: TopicsLike, corpus: Corpus, *, top: int = 10, window: int | None = 110) -> Coherence:
    """C_V: the mean cosine between each top word's vector of NPMI with all top words and the sum of these vectors."""
    counts = _count(topics, corpus, top, window)
    K, n = counts.single.shape
    vectors = np.zeros((K, n, n))
    i, j = counts.ranks
    vectors[:, i, j] = vectors[:, j, i] = _npmi(counts)
    diagonal = np.arange(n)
    vectors[:, diagonal, diagonal] = _npmi_of(counts.total, counts.single, counts.single, counts.single)
    whole = vectors.sum(axis=1, keepdims=True)  # [K, 1, n]
    lengths = np.linalg.norm(vectors, axis=2) * np.linalg.norm(whole, axis=2)  # [K, n]
    cosine = (vectors * whole).sum(axis=2) / np.where(lengths > 0, lengths, 1.0)
    return _result(counts, cosine.sum(axis=1) / counts.real.sum(axis=1))


MEASURES: dict[str, Callable[..., Coherence]] = {"npmi": npmi, "umass": umass, "umass_gensim": umass_gensim, "c_v": c_v}


def topic_coherence(topics: TopicsLike, corpus: Corpus, measure: str = "npmi", *, top: int = 10) -> Coherence:
    """Score topics by the name of a measure: npmi, umass, umass_gensim or c_v.

    >>> corpus = Corpus.from_texts(["sun rain", "sun rain", "sun money"])
    >>> topic_coherence([["sun", "rain"], ["rain", "money"]], corpus, "umass").per_topic.round(3)
    array([ 0.   , -0.693])
    """
    if measure not in MEASURES:
        raise ConfigError(f"measure = '{measure}' is unknown: write one of {', '.join(MEASURES)}")
    return MEASURES[measure](topics, corpus, top=top)


def _count(topics: TopicsLike, corpus: Corpus, top: int, window: int | None) -> _Counts:
    if top < 2 or (window is not None and window < 1):
        raise InputError(
            f"top = {top}, window = {window}: coherence needs 2 top words and a window of 1 token at least"
        )
    if corpus.n_documents == 0:
        raise InputError("the reference corpus is empty: coherence counts words in its documents")
    words, real = _word_numbers(top_words(topics, top, corpus.vocabulary), corpus)
    chosen, slots = np.unique(words, return_inverse=True)
    slots = slots.reshape(words.shape)  # [K, n]
    slot_of = np.full(len(corpus.vocabulary) + 1, len(chosen), np.uint32)
    slot_of[chosen] = np.arange(len(chosen))
    i, j = _ranks(words.shape[1])
    pairs = np.stack((slots[:, i], slots[:, j]), axis=-1).reshape(-1, 2)  # [K P, 2]
    total, single, joint = _windows.count(
        freeze(corpus.words, np.int32),
        freeze(corpus.documents, np.int64),
        freeze(slot_of, np.uint32),
        len(chosen),
        freeze(pairs, np.int32),
        window or max(corpus.n_tokens, 1),  # no document is longer
    )
    return _Counts(total, single[slots], joint.reshape(len(words), -1), (i, j), real)


def _word_numbers(lists: list[list[str]], corpus: Corpus) -> tuple[I32, Bool]:
    """Look up the words [K, n]; V stands for words that the corpus lacks, and pads short topics."""
    lengths = np.array([len(topic) for topic in lists])
    if lengths.min() < 2:
        k = int(lengths.argmin())
        raise InputError(f"topic {k} has {lengths[k]} words: coherence needs at least 2")
    real = np.arange(lengths.max()) < lengths[:, np.newaxis]
    V, index = len(corpus.vocabulary), corpus.vocabulary.index
    words = np.full(real.shape, V, np.int32)
    words[real] = [index.get(word, V) for topic in lists for word in topic]
    return words, real


@lru_cache(maxsize=8)
def _ranks(n: int) -> tuple[Array, Array]:
    """List all pairs i < j of n ranks."""
    i, j = np.triu_indices(n, 1)
    return i, j


def _npmi(counts: _Counts) -> F64:
    i, j = counts.ranks
    return _npmi_of(counts.total, counts.single[:, i], counts.single[:, j], counts.joint)


def _npmi_of(total: int, one: I64, other: I64, both: I64) -> F64:
    """log((p_ij + e) / (p_i p_j)) / -log(p_ij + e), and 0 where a word never occurs."""
    product = (one / total) * (other / total)
    joint = both / total + _EPSILON
    value: F64 = np.log(joint / np.where(product > 0, product, 1.0)) / -np.log(joint)
    return np.where(product > 0, value, 0.0)


def _log_ratio(counts: _Counts, extra: float) -> F64:
    """log((D_ij + extra) / D_i) [K, P], and 0 where word i never occurs."""
    better = counts.single[:, counts.ranks[0]]
    defined = counts.paired & (better > 0)
    return np.where(defined, np.log((counts.joint + extra) / np.maximum(better, 1)), 0.0)


def _result(counts: _Counts, per_topic: F64) -> Coherence:
    return Coherence(per_topic, int((counts.real & (counts.single == 0)).sum()))
