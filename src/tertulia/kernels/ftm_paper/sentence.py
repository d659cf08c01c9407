"""SentenceLDA (Balikas et al., SIGIR 2016; iFTM, section 3.1.2): the words of a sentence share one topic.

The entry points are those of `lda`, with the sentences' token offsets as well. A state is an `LDAState` whose
z [S] are the topics of sentences; C^DK counts sentences, C^KW words. Samplers and reports are those of `ftm_paper`.

    state = init(words, sentences, documents, V=8_000, K=50, alpha=0.1, beta=0.01, key=7)
    state, info = run(words, sentences, documents, state, sweeps=100, key=8, threads=2)
    topic_word(state).shape  # (50, 8000)
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64, I32, Array
from tertulia.kernels.core.checks import (
    check_alpha,
    check_beta,
    check_documents,
    check_sentences,
    check_size,
    check_topics,
)
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits, derive, uniform
from tertulia.kernels.core.scalars import first_above
from tertulia.kernels.ftm_paper import SAMPLERS, Proposals, Sampler, Source, count_state, run_units
from tertulia.kernels.ftm_paper.gibbs import Units
from tertulia.kernels.lda import LDAState, topic_word
from tertulia.kernels.lda.options import NEVER, Learning, Phi, SweepInfo
from tertulia.kernels.lda.starts import running_sums, uniform_topics

__all__ = ["SAMPLERS", "LDAState", "init", "init_from_topics", "run", "topic_word"]
_INIT = 2**63  # no sweep has this number


def init(
    words: Array, sentences: Array, documents: Array, V: int, K: int, alpha: float | Array, beta: float, key: int
) -> LDAState:
    """Make a state with the topic of every sentence drawn uniformly."""
    check_size(V, K)
    units = _units(words, sentences, documents, V)
    z = uniform_topics(len(units.tokens) - 1, K, derive(key, _INIT))
    return _start(units, z, V, check_alpha(alpha, K), beta)


def init_from_topics(
    words: Array,
    sentences: Array,
    documents: Array,
    topic_word: Array,
    alpha: float | Array,
    beta: float,
    key: int,
) -> LDAState:
    """Draw a state from given topics [K, V] (algorithm 2, lines 9-10): p(z_s = k) ∝ topic_word[k, w].

    w is one word of the sentence, chosen uniformly. A word without mass in any topic gives a uniform one.
    """
    topic_word = check_topics(topic_word)
    K, V = topic_word.shape
    units = _units(words, sentences, documents, V)
    z = _topics_of_words(units, running_sums(topic_word), derive(key, _INIT))
    return _start(units, z, V, check_alpha(alpha, K), beta)


def run(
    words: Array,
    sentences: Array,
    documents: Array,
    state: LDAState,
    sweeps: int,
    key: int,
    sampler: Sampler = "mh",
    reports: Source | None = None,
    proposals: Proposals = "stale",
    phi: Phi = "draw",
    learning: Learning = NEVER,
    threads: int = 1,
) -> tuple[LDAState, SweepInfo]:
    """Sweep over all sentences `sweeps` times and return the new state; see `ftm_paper.run`.

    `mh` is algorithm 2: a document proposal, then one word proposal for each word of the sentence.
    """
    units = _units(words, sentences, documents, state.cwk.shape[0])
    return run_units(units, state, sweeps, key, reports, (sampler, proposals, phi, learning), threads)


def _units(words: Array, sentences: Array, documents: Array, V: int) -> Units:
    """Check sentences and return them as units; those without words have no topic."""
    words, documents = check_documents(words, documents, V)
    return Units(words, *check_sentences(sentences, documents, len(words)))


def _start(units: Units, z: I32, V: int, alpha: F64, beta: float) -> LDAState:
    K = len(alpha)
    empty = LDAState(z, np.zeros((V, K), dtype=np.int32), np.zeros(K, dtype=np.int64), alpha, check_beta(beta))
    return count_state(units, z, V, empty)


@kernel
def _topics_of_words(units: Units, cumulative: F64, key: np.uint64) -> I32:
    K, S = cumulative.shape[1], units.tokens.shape[0] - 1
    z = np.empty(S, dtype=np.int32)
    for s in range(S):
        first, last = units.tokens[s], units.tokens[s + 1]
        length = np.uint64(last - first)
        row = cumulative[units.words[first + np.int64(bits(key, np.uint64(2 * s + 1)) % length)]]
        z[s] = first_above(row, row[K - 1] * uniform(key, np.uint64(2 * s)))
    return z
