"""Many users in flat arrays, a document each: their topics redrawn given the broadcast phi (FedLDA, algorithm 1).

Given phi, users are independent: theta is integrated out, and a token's topic has probability ∝ (C_dk + alpha_k)
phi[k, w]. By Gibbs, from all K topics; by Metropolis-Hastings in constant time, with a proposal from the document and
one from the word, whose tables are never stale as phi stands still. A user who was not asked keeps the old topics; a
token without a topic (-1) gets its first one from its word alone, which is at random as long as phi is uniform.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tertulia._arrays import F32, F64, I32, I64, Array, Bool
from tertulia.errors import InputError
from tertulia.kernels.core import alias, parallel
from tertulia.kernels.core.checks import check_documents
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import derive, uniform, uniform32
from tertulia.kernels.core.simd import draw, pad_with_zeros
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.noise_aware.mh import build_tables

I16 = NDArray[np.int16]
Sampler = Literal["gibbs", "mh"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
MOST_TOPICS = 2**15 - 1  # topics are kept in 16 bits: a million users are fifty million tokens
_DRAWS = 4  # random numbers per token


def broadcast_phi(counts: Array, beta: float) -> F32:
    """Compute phi [V, padded K] from counts [K, V]; counts that noise made negative are floored at 0."""
    K, V = counts.shape
    mass = np.maximum(counts, 0) + beta
    phi = np.zeros((V, padded_width(K)), dtype=np.float32)
    phi[:, :K] = (mass / mass.sum(axis=1, keepdims=True)).T
    return phi


def resample(
    words: Array,
    documents: Array,
    z: Array,
    asked: Array,
    phi: F32,
    alpha: Array,
    key: int | np.uint64,
    sweeps: int = 1,
    sampler: Sampler = "gibbs",
    threads: int = 1,
) -> I16:
    """Redraw the topics [N] of the users who are asked [D], given phi [V, padded K]; the others keep theirs."""
    words, documents = check_documents(words, documents, phi.shape[0])
    K = len(alpha)
    if sampler not in SAMPLERS:
        raise InputError(f"sampler = {sampler!r}: choose one of {', '.join(SAMPLERS)}")
    if min(MOST_TOPICS, phi.shape[1]) < K:
        raise InputError(f"{K} topics: users take up to {MOST_TOPICS}, and phi has {phi.shape[1]}")
    z = np.array(z, dtype=np.int16)
    if z.shape != words.shape or (len(z) and not -1 <= z.min() <= z.max() < K):
        raise InputError(f"z has shape {z.shape}: {len(words)} tokens need a topic of 0..{K - 1} each, or -1 for none")
    shared: tuple[Any, ...] = (words, documents, freeze(asked, np.bool_), z, phi)
    ranges = parallel.cuts(documents, 4 * threads if threads > 1 else 1)
    tables = build_tables(phi, K, threads) if sampler == "mh" else None
    for s in range(sweeps):
        stream = derive(key, s)
        if tables is not None:
            weights = freeze(alpha, np.float64)
            jobs = [(*shared, *tables[:2], weights, first, last, stream) for first, last in ranges]
            parallel.run(_metropolis, jobs, threads)
        else:
            lanes = pad_with_zeros(np.asarray(alpha))
            parallel.run(_gibbs, [(*shared, lanes, first, last, stream) for first, last in ranges], threads)
    return z


@kernel
def _gibbs(
    words: I32, documents: I64, asked: Bool, z: I16, phi: F32, alpha: F32, first: int, last: int, key: np.uint64
) -> None:
    """Redraw the topics of users first..last-1 from all topics."""
    weight, running = alpha.copy(), np.empty(alpha.shape[0], dtype=np.float32)  # weight: C_dk + alpha_k
    even = np.ones(alpha.shape[0], dtype=np.float32)
    for d in range(first, last):
        if not asked[d]:
            continue
        start, stop = documents[d], documents[d + 1]
        for i in range(start, stop):
            if z[i] >= 0:
                weight[z[i]] += np.float32(1.0)
        for i in range(start, stop):
            old = int(z[i])
            u = uniform32(key, np.uint64(i))
            if old >= 0:
                weight[old] -= np.float32(1.0)
                new = draw(weight, phi, words[i], running, u, old)
            else:
                new = draw(even, phi, words[i], running, u, 0)
            weight[new] += np.float32(1.0)
            z[i] = new
        for i in range(start, stop):
            weight[z[i]] = alpha[z[i]]


@kernel
def _metropolis(
    words: I32, documents: I64, asked: Bool, z: I16, phi: F32, keep: F32, other: I32, alpha: F64, first: int,
    last: int, key: np.uint64,
) -> None:  # fmt: skip
    """Make two proposals per token: another token's topic (or one of alpha's), then a topic of the word."""
    K, sum_alpha = alpha.shape[0], alpha.sum()
    cdk = np.zeros(K, dtype=np.int64)
    alpha_keep, alpha_other = np.empty(K, dtype=np.float32), np.empty(K, dtype=np.int32)
    alias.build(alpha.copy(), alpha_keep, alpha_other, np.empty(K, dtype=np.int32))
    fresh = np.zeros(np.diff(documents[first : last + 1]).max() if last > first else 0, dtype=np.bool_)
    for d in range(first, last):
        start, stop = documents[d], documents[d + 1]
        if not asked[d]:
            continue
        n = stop - start
        for i in range(start, stop):
            fresh[i - start] = z[i] < 0
            if z[i] < 0:
                z[i] = alias.draw(keep[words[i]], other[words[i]], uniform(key, np.uint64(i * _DRAWS)))
            cdk[z[i]] += 1
        for i in range(start, stop):
            w, k, at = words[i], int(z[i]), np.uint64(i * _DRAWS)
            if fresh[i - start]:
                continue
            cdk[k] -= 1
            u = uniform(key, at) * (n - 1 + sum_alpha)
            if u < n - 1:  # ∝ C_dk without this token
                j = start + min(int(u), n - 2)
                new = int(z[j + (j >= i)])
            else:
                new = alias.draw(alpha_keep, alpha_other, min((u - (n - 1)) / sum_alpha, 1.0 - 2.0**-52))
            if uniform(key, at + np.uint64(1)) * phi[w, k] < phi[w, new]:
                k = new
            new = alias.draw(keep[w], other[w], uniform(key, at + np.uint64(2)))  # ∝ phi[k, w]
            if uniform(key, at + np.uint64(3)) * (cdk[k] + alpha[k]) < cdk[new] + alpha[new]:
                k = new
            cdk[k] += 1
            z[i] = k
        for i in range(start, stop):
            cdk[z[i]] = 0


@kernel
def uniforms(n: int, key: np.uint64) -> F64:
    """Draw one uniform number per user, by which users are asked or drop out."""
    drawn = np.empty(n)
    for d in range(n):
        drawn[d] = uniform(key, np.uint64(d))
    return drawn
