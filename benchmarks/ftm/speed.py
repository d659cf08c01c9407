"""How fast the private samplers are: against dense vectors of noise, and against sampling without noise."""

from __future__ import annotations

import functools
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import say, time_cpu
from benchmarks.generated import generate
from tertulia import Corpus
from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels import ftm_paper, lda, noise_aware
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits, derive, uniform
from tertulia.kernels.ftm_paper.log_phi import mean_log_phi
from tertulia.kernels.reports import Channel, reports

V, EPSILON, TAU, K = 20_000, 11.0, 0.2, 50
REPEATS = 3


def speeds(quick: bool) -> dict[str, Any]:
    """Measure ratios of CPU seconds, each the best of three, one thread."""
    with tempfile.TemporaryDirectory() as directory:
        corpus = generate(Path(directory) / "corpus", 400_000 if quick else 2_000_000, V)
        return {**against_dense(20_000 if quick else 100_000), **against_plain(corpus)}


def against_dense(tokens: int) -> dict[str, float]:
    """Time private MH with sparse reports over the naive way, a vector of V entries for each token.

    Once with the reports at hand, once with their noise drawn in the sweep, as it must be where they do not fit. Ours
    is a whole sweep, with the phi and the tables that it begins with; the naive way gets these for nothing.
    """
    words, documents = _zipf(tokens, length=100)
    source = functools.partial(reports, words, Channel("laplace", EPSILON, V, TAU), bytes(32), "speed")
    sent, few = source(0, tokens), 2_000
    state = lda.init(words, documents, V, K, 0.1, 0.01, 1)
    by_topic = np.ascontiguousarray(mean_log_phi(state.cwk, state.ck, 0.01).T).astype(np.float64)  # [K, V]
    noisy = np.zeros((few, V), dtype=np.float32)
    end = sent.indptr[few]
    noisy[np.repeat(np.arange(few), np.diff(sent.indptr[: few + 1])), sent.idx[:end]] = sent.value[:end]
    mass, alpha = np.ascontiguousarray(np.exp(by_topic.T)), np.full(K, 0.1)

    def ours(reports_: Any) -> float:
        return _seconds(lambda: ftm_paper.run(words, documents, state, 1, 2, "mh", reports_, phi="mean")) / tokens

    def naive(draw: bool) -> float:
        part = (words[:few], documents[documents <= few], state.z[:few].copy(), noisy)
        return _seconds(lambda: dense_sweep(*part, by_topic, mass, alpha, EPSILON, TAU, draw, derive(3))) / few

    sparse, sparse_drawn, dense, dense_drawn = ours(sent), ours(source), naive(False), naive(True)
    say(f"us per token: private MH {1e6 * sparse:.1f}, dense {1e6 * dense:.1f}; with noise drawn in the sweep:")
    say(f"  {1e6 * sparse_drawn:.1f}, dense {1e6 * dense_drawn:.1f}")
    return {"speedup_private_mh": dense / sparse, "speedup_private_mh_with_noise": dense_drawn / sparse_drawn}


def against_plain(corpus: Corpus) -> dict[str, float]:
    """Time noise-aware MH by randomised response over MH without noise: WarpLDA, and the exact one over the papers'."""
    words, documents, topics = corpus.words, corpus.documents, 100
    sent = reports(words, Channel("krr", EPSILON, V), bytes(32), "speed")
    settled, _ = lda.run(words, documents, lda.init(words, documents, V, topics, 0.1, 0.01, 1), 10, 2, phi="mean")
    topic_word = lda.topic_word(settled)
    state = noise_aware.init_from_topics(sent, documents, topic_word, 0.1, 0.01, 3)
    seconds = {
        "krr": _seconds(lambda: noise_aware.run(sent, documents, state, 4, 4, "warp")),
        "krr, exact": _seconds(lambda: noise_aware.run(sent, documents, state, 4, 4, "mh", phi="mean")),
        "mh": _seconds(lambda: ftm_paper.run(words, documents, settled, 4, 4, "mh", phi="mean")),
        "warp": _seconds(lambda: lda.run(words, documents, settled, 4, 4, "warp")),
    }
    say(f"ns per token: { {name: round(1e9 * s / 4 / len(words)) for name, s in seconds.items()} }")
    return {
        "krr_over_warp": seconds["krr"] / seconds["warp"],
        "krr_exact_over_mh": seconds["krr, exact"] / seconds["mh"],
    }


def _seconds(function: Callable[[], Any]) -> float:
    function()  # compiled by now
    return min(time_cpu(function)[0] for _ in range(REPEATS))


def _zipf(tokens: int, length: int) -> tuple[I32, I64]:
    share = 1.0 / np.arange(1, V + 1)
    words = np.random.default_rng(1).choice(V, size=tokens, p=share / share.sum()).astype(np.int32)
    return words, np.arange(0, tokens + 1, length)


@kernel
def dense_sweep(
    words: I32, documents: I64, z: I32, noisy: F32, log_phi: F64, mass: F64, alpha: F64, epsilon: float, tau: float,
    draw: bool, key: np.uint64,
) -> int:  # fmt: skip
    """Run Algorithm 1 as one would write it down: noisy [N, V] vectors, a likelihood is a sum over all words (8)."""
    row, moved = np.empty(log_phi.shape[1], dtype=np.float32), 0
    for d in range(documents.shape[0] - 1):
        cdk = alpha.copy()
        for i in range(documents[d], documents[d + 1]):
            cdk[z[i]] += 1.0
        for i in range(documents[d], documents[d + 1]):
            own, old = bits(key, np.uint64(i)), z[i]
            row[:] = noisy[i]
            if draw:
                draw_vector(row, words[i], epsilon, tau, own)
            cdk[old] -= 1.0
            now, likely = old, likelihood(row, log_phi[old])
            for j, weight in enumerate((cdk, mass[words[i]])):  # a document proposal, then a word proposal
                new = choose(weight, uniform(own, np.uint64(2 * j)))
                likely_new = likelihood(row, log_phi[new])
                ratio = likely_new - likely
                if j == 1:
                    ratio += math.log(cdk[new] / cdk[now]) + log_phi[now, words[i]] - log_phi[new, words[i]]
                if math.log(uniform(own, np.uint64(2 * j + 1))) < ratio:
                    now, likely = new, likely_new
            cdk[now] += 1.0
            z[i] = now
            moved += now != old
    return moved


@kernel
def likelihood(row: F32, log_phi: F64) -> float:
    """Return the plug-in exponent (8), with its noise."""
    total = 0.0
    for v in range(row.shape[0]):
        total += row[v] * log_phi[v]
    return total


@kernel
def draw_vector(row: F32, word: int, epsilon: float, tau: float, key: np.uint64) -> None:
    """Draw a one-hot vector under Laplace noise, with entries below tau set to zero."""
    for v in range(row.shape[0]):
        u = uniform(key, np.uint64(100 + v)) - 0.5
        noise = -math.copysign(math.log(1.0 - 2.0 * abs(u)), u) / epsilon
        entry = noise + (1.0 if v == word else 0.0)
        row[v] = entry if entry > tau else 0.0


@kernel
def choose(weight: F64, u: float) -> int:
    """Draw from weights [K], by walking through them."""
    rest, k = u * weight.sum(), 0
    while k < weight.shape[0] - 1 and rest >= weight[k]:
        rest -= weight[k]
        k += 1
    return k
