"""Noise-aware SentenceLDA on private reports: the words of a sentence share one topic, and every report is weighed.

Given Phi, a sentence of document d has topic k with probability ∝ (C_dk + alpha_k) times the product over its tokens of
r0 + sum_j a_j phi[k, idx_j]: iFTM (13), with what reports say in place of (15). Then each of its tokens is one of the
words that its report names, or background, which says nothing of its word. C^DK counts sentences, C^KW the words that
tokens are taken for. The entry points are those of `noise_aware`, with the sentences' token offsets as well.

    state = init(source, sentences, documents, V=3_000, K=20, alpha=0.1, beta=0.1, key=7)
    state, _ = run(source, sentences, documents, state, sweeps=100, key=8)
"""

from __future__ import annotations

import math

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core.checks import (
    check_alpha,
    check_assignment,
    check_sentences,
    check_size,
    check_topics,
)
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits, derive, uniform
from tertulia.kernels.core.scalars import copy_cells
from tertulia.kernels.lda.options import NEVER, Learning, Phi, SweepInfo, check_options
from tertulia.kernels.lda.phi import NO_TOTALS
from tertulia.kernels.noise_aware import FLAT, INIT, PHI, SWEEP, Source, check_offsets, sweep_blocks, topic_word
from tertulia.kernels.noise_aware.gibbs import add_evidence, choose_word, leave_out, shares
from tertulia.kernels.noise_aware.state import (
    AwareState,
    check_prior,
    count_state,
    current_phi,
    empty_state,
    fit_priors,
    spread,
)
from tertulia.kernels.reports import Reports

__all__ = ["init", "init_from_topics", "run", "topic_word"]
_TOPIC, _WORD = np.uint64(0), np.uint64(1)  # labels of the random streams within a sweep


def init(
    source: Source, sentences: Array, documents: Array, V: int, K: int, alpha: float | Array, beta: float, key: int
) -> AwareState:
    """Make a state with every topic uniform and every word as likely as its report makes it; z [S] is of sentences."""
    check_size(V, K)
    topics, flat = np.full((K, V), 1 / V), np.full(K, FLAT)
    return _draw_state(source, sentences, documents, topics, flat, check_alpha(alpha, K), beta, key)


def init_from_topics(
    source: Source, sentences: Array, documents: Array, topic_word: Array, alpha: float | Array, beta: float, key: int
) -> AwareState:
    """Draw a state from given topics [K, V], sentence after sentence (after algorithm 2, lines 9-10)."""
    topic_word = check_topics(topic_word)
    alpha = check_alpha(alpha, len(topic_word))
    return _draw_state(source, sentences, documents, topic_word, alpha, alpha, beta, key)


def run(
    source: Source,
    sentences: Array,
    documents: Array,
    state: AwareState,
    sweeps: int,
    key: int,
    phi: Phi = "draw",
    learning: Learning = NEVER,
    threads: int = 1,
) -> tuple[AwareState, SweepInfo]:
    """Sweep over all sentences `sweeps` times and return the new state; exact with `phi="draw"`."""
    check_options("dense", ("dense",), phi, sweeps, threads, learning)
    documents = check_offsets(source, documents)
    tokens, of_documents = check_sentences(sentences, documents, int(documents[-1]))
    z = check_assignment(state.z, len(tokens) - 1, state.cwk.shape[1])
    state = _count_state(z, np.array(state.word, dtype=np.int32), tokens, state)
    changed = 0
    for s in range(sweeps):
        stream = derive(key, s)
        fixed = current_phi(state, None, phi, derive(stream, PHI), threads)
        state, changed = _sweep(source, documents, tokens, of_documents, state, *fixed, derive(stream, SWEEP), threads)
        if learning.is_due(s):
            state = fit_priors(of_documents, state.z, state, learning)
    return state, SweepInfo(changed, math.nan)


def _draw_state(
    source: Source, sentences: Array, documents: Array, topics: Array, alpha: F64, prior: F64, beta: float, key: int
) -> AwareState:
    documents = check_offsets(source, documents)
    tokens, of_documents = check_sentences(sentences, documents, int(documents[-1]))
    V = topics.shape[1]
    word = np.full(int(documents[-1]), -1, dtype=np.int32)
    z = np.full(len(tokens) - 1, -1, dtype=np.int32)
    empty = empty_state(z, word, V, alpha, check_prior(beta, V))
    key_of_start = derive(key, INIT)
    state, _ = _sweep(source, documents, tokens, of_documents, empty, spread(topics), NO_TOTALS, key_of_start, 1)
    return state._replace(alpha=prior)


def _count_state(z: I32, word: I32, tokens: I64, state: AwareState) -> AwareState:
    of_tokens = z.repeat(np.diff(tokens))
    if word.shape != of_tokens.shape:
        raise InputError(f"{len(word)} words for {len(of_tokens)} tokens: is it another corpus's state?")
    return count_state(np.where(word >= 0, of_tokens, -1), word, state)._replace(z=z)


def _sweep(
    source: Source, documents: I64, tokens: I64, of_documents: I64, state: AwareState, phi: F32, totals: F64,
    key: np.uint64, threads: int,
) -> tuple[AwareState, int]:  # fmt: skip
    z, word, alpha = state.z, state.word, state.alpha

    def redraw(r: Reports, base: int, first: int, last: int, cwk: I32) -> int:
        changed: int = sweep_given_phi(
            r.indptr, r.idx, r.a, r.r0, base, tokens, of_documents, first, last, z, word, phi, totals, alpha, cwk, key
        )
        return changed

    return sweep_blocks(source, documents, state, redraw, threads)


@kernel
def sweep_given_phi(
    indptr: I64, idx: I32, a: F32, r0: float, base: int, tokens: I64, documents: I64, first: int, last: int, z: I32,
    word: I32, phi: F32, totals: F64, alpha: F64, cwk: I32, key: np.uint64,
) -> int:  # fmt: skip
    """Redraw documents first..last-1 in place given phi [V, padded K], and add to the counts cwk.

    If phi is the mean of `phi.mean_totals`, the whole sentence is left out of it for its old topic.
    """
    weight, cdk, changed = np.empty(alpha.shape[0]), np.empty(alpha.shape[0]), 0
    evidence = np.zeros((1, phi.shape[1]), dtype=np.float32)  # sum_j a_j phi[idx_j, k]
    own = np.zeros(phi.shape[0], dtype=np.int32)  # [V] the sentence's own counts
    by_topic, by_word = bits(key, _TOPIC), bits(key, _WORD)
    for d in range(first, last):
        copy_cells(alpha, cdk)
        for s in range(documents[d], documents[d + 1]):
            if z[s] >= 0:  # a start has no topics yet
                cdk[z[s]] += 1.0
        for s in range(documents[d], documents[d + 1]):
            old, taken, grown, before = z[s], 0.0, 1.0, word[:0]
            if old >= 0:
                cdk[old] -= 1.0
            if old >= 0 and totals.shape[0] > 0:
                before = word[tokens[s] : tokens[s + 1]].copy()
                taken, grown = shares(totals[old], _count(before, 1, own))
            copy_cells(cdk, weight)
            for t in range(tokens[s], tokens[s + 1]):
                from_, to = indptr[t - base], indptr[t - base + 1]
                add_evidence(idx, a, from_, to, phi, evidence)
                if taken > 0.0:
                    evidence[0, old] = leave_out(idx, a, from_, to, own, evidence[0, old], taken, grown)
                _weigh(weight, evidence, r0)
            k = _draw(weight, uniform(by_topic, np.uint64(s)))
            changed += k != old
            if k != old:
                taken, grown = 0.0, 1.0
            z[s] = k
            cdk[k] += 1.0
            for t in range(tokens[s], tokens[s + 1]):
                from_, to = indptr[t - base], indptr[t - base + 1]
                word[t] = _word(idx, a, r0, from_, to, phi, k, uniform(by_word, np.uint64(t)), own, taken, grown)
                if word[t] >= 0:
                    cwk[word[t], k] += 1
            _count(before, -1, own)
    return changed


@kernel
def _count(words: I32, by: int, own: I32) -> int:
    """Add to the counts own [V] what tokens are taken for; return how many are no background."""
    n = 0
    for w in words:
        if w >= 0:
            own[w] += by
            n += 1
    return n


@kernel
def _weigh(weight: F64, evidence: F32, r0: float) -> None:
    """Multiply in one token; scaled, so that long sentences do not underflow."""
    largest = 0.0
    for k in range(weight.shape[0]):
        weight[k] *= r0 + np.float64(evidence[0, k])
        largest = max(largest, weight[k])
    if largest > 0.0:
        for k in range(weight.shape[0]):
            weight[k] /= largest


@kernel
def _draw(weight: F64, u: float) -> int:
    rest, k, last = u * weight.sum(), 0, weight.shape[0] - 1
    while k < last and rest >= weight[k]:
        rest -= weight[k]
        k += 1
    return k


@kernel
def _word(
    idx: I32, a: F32, r0: float, from_: int, to: int, phi: F32, k: int, u: float, own: I32, taken: float, grown: float
) -> int:
    """Draw the word that a token of topic k is taken for; -1: its report was background."""
    total = 0.0
    for j in range(from_, to):
        total += max(a[j] * phi[idx[j], k] - a[j] * taken * own[idx[j]], 0.0)
    rest = u * (r0 + grown * total) - r0
    if rest < 0.0 or total == 0.0:
        return -1
    return choose_word(idx, a, from_, to, phi, k, rest / grown, own, taken)
