"""Noise-aware Metropolis-Hastings for reports of one word each, as of k-ary randomised response: O(1) per token.

Given phi, a token that reported word w has topic k with probability ∝ (C_dk + alpha_k) (a phi[w, k] + r0). For a
proposal from the document (another token's topic, or alpha) the acceptance ratio is that of the second factor. For one
from the word (an alias table, or uniform) it also holds the weights that the table was built from. Here every token has
a topic: topics of background tokens are drawn first, from their documents, and dropped at the end.

Where phi is the posterior mean, a token's own count is part of phi, and of the word's table at the topic that the token
had then. It is removed from both: from phi for the old topic, and from the proposal by rejecting a part of the table's
proposals of that topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core import alias, parallel
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import uniform
from tertulia.kernels.lda.phi import NO_TOTALS
from tertulia.kernels.noise_aware.gibbs import shares

if TYPE_CHECKING:
    from tertulia.kernels.reports import Reports

NO_TOPICS: I32 = np.empty(0, dtype=np.int32)
_WORDS = 512  # words in a block
_DRAWS = 8  # random numbers per token


class Tables(NamedTuple):
    """Alias tables of words over topics, and the masses that they were built from, [V, K]."""

    keep: F32
    other: I32
    mass: F32
    total: F64  # [V]
    z: I32  # [N] the tokens' topics that phi was the mean of; empty if it was a draw
    totals: F64  # [K] its `phi.mean_totals`


def build_tables(phi: F32, K: int, threads: int, z: I32 = NO_TOPICS, totals: F64 = NO_TOTALS) -> Tables:
    """Build tables of phi [V, padded K]; they may serve while phi moves on, for acceptance knows what they hold."""
    V = phi.shape[0]
    mass = np.ascontiguousarray(phi[:, :K])
    arrays = np.empty((V, K), np.float32), np.empty((V, K), np.int32), mass, mass.sum(axis=1, dtype=np.float64)
    tables = Tables(*arrays, z[: len(z) if len(totals) else 0].copy(), totals)
    jobs = [(tables.keep, tables.other, mass, tables.total, s, min(s + _WORDS, V)) for s in range(0, V, _WORDS)]
    parallel.run(_build_block, jobs, threads)
    return tables


def sweep(
    reports: Reports, base: int, documents: I64, first: int, last: int, z: I32, word: I32, phi: F32, totals: F64,
    tables: Tables, alpha: F64, cwk: I32, key: np.uint64,
) -> int:  # fmt: skip
    """Redraw documents first..last-1 in place given phi [V, padded K], and add them to the counts cwk.

    If phi is the mean of `phi.mean_totals`, a token's own count is left out of it for its old topic.
    """
    keep, other = np.empty(len(alpha), np.float32), np.empty(len(alpha), np.int32)
    alias.build(alpha.copy(), keep, other, np.empty(len(alpha), np.int32))
    a = float(reports.a[0]) if len(reports.a) else 1.0
    changed: int = sweep_block(
        reports.idx, a, reports.r0, base, documents, first, last, z, word, phi, totals, *tables, alpha, keep, other,
        cwk, key,
    )  # fmt: skip
    return changed


@kernel
def _build_block(keep: F32, other: I32, mass: F32, total: F64, start: int, stop: int) -> None:
    K = mass.shape[1]
    weight, stack = np.empty(K), np.empty(K, dtype=np.int32)
    for w in range(start, stop):
        for k in range(K):
            weight[k] = mass[w, k] if total[w] > 0.0 else 1.0  # a word without mass is only proposed for uniformly
        alias.build(weight, keep[w], other[w], stack)


@kernel
def sweep_block(
    reported: I32, a: float, r0: float, base: int, documents: I64, first: int, last: int, z: I32, word: I32, phi: F32,
    totals: F64, keep: F32, other: I32, mass: F32, total: F64, z_then: I32, totals_then: F64, alpha: F64,
    alpha_keep: F32, alpha_other: I32, cwk: I32, key: np.uint64,
) -> int:  # fmt: skip
    """Make a document proposal and a word proposal for every token, then decide whether its report was background."""
    K, sum_alpha, changed = alpha.shape[0], alpha.sum(), 0
    cdk = np.zeros(K, dtype=np.int64)
    pool = np.empty(np.diff(documents[first : last + 1]).max() if last > first else 0, dtype=np.int32)
    chance = np.empty(pool.shape[0])  # a phi[w, k] + r0 of each token: a row of phi is far away, read it once
    for d in range(first, last):
        start, stop, n = documents[d], documents[d + 1], documents[d + 1] - documents[d]
        fill_background(z, start, stop, pool, sum_alpha, alpha_keep, alpha_other, cdk, key)
        for i in range(start, stop):
            w, k, at = reported[i - base], pool[i - start], np.uint64(i * _DRAWS)
            cdk[k] -= 1
            old = z[i] if totals.shape[0] > 0 else -1  # the topic that this token is part of
            taken, grown = shares(totals[old], 1) if old >= 0 else (0.0, 1.0)
            likely = _likely(a, phi[w, k], k == old, taken, grown) + r0
            u = uniform(key, at + np.uint64(2)) * (n - 1 + sum_alpha)
            if u < n - 1:  # the topic of another token: ∝ C_dk without this one
                j = min(int(u), n - 2)
                new = pool[j + (j >= i - start)]
            else:
                new = _from_table(alpha_keep, alpha_other, (u - (n - 1)) / sum_alpha)
            if new != k:
                likely_new = _likely(a, phi[w, new], new == old, taken, grown) + r0
                if uniform(key, at + np.uint64(3)) * likely < likely_new:
                    k, likely = new, likely_new
            u = uniform(key, at + np.uint64(4)) * (a * total[w] + K * r0)
            if u < K * r0:
                new = min(int(u / r0), K - 1)
            else:
                new = _from_table(keep[w], other[w], (u - K * r0) / (a * total[w]))
            if new != k:
                likely_new = _likely(a, phi[w, new], new == old, taken, grown) + r0
                then = z_then[i] if z_then.shape[0] > 0 else -1
                taken, grown = shares(totals_then[then], 1) if then >= 0 else (0.0, 1.0)
                held = _likely(a, mass[w, k], k == then, taken, grown) + r0
                held_new = _likely(a, mass[w, new], new == then, taken, grown) + r0
                part = held_new / (a * mass[w, new] + r0)  # of the table's proposals that count
                ratio, u = (cdk[new] + alpha[new]) * likely_new * held, uniform(key, at + np.uint64(5))
                if u < part and u * (cdk[k] + alpha[k]) * likely * held_new < part * ratio:
                    k, likely = new, likely_new
            chance[i - start] = likely
            cdk[k] += 1
            pool[i - start] = k
        words = reported[start - base : stop - base]
        changed += _decide_background(words, pool, chance, r0, z[start:stop], word[start:stop], cdk, cwk, key, start)
    return changed


@kernel
def _decide_background(
    words: I32, pool: I32, chance: F64, r0: float, z: I32, word: I32, cdk: I64, cwk: I32, key: np.uint64, start: int
) -> int:
    """Decide which reports of a document were background, count the others; return how many tokens changed."""
    changed = 0
    for i in range(z.shape[0]):
        k, cdk[pool[i]] = pool[i], 0
        signal = uniform(key, np.uint64((start + i) * _DRAWS + 6)) * chance[i] < chance[i] - r0
        changed += z[i] != (k if signal else -1)
        z[i], word[i] = (k, words[i]) if signal else (-1, -1)
        if signal:
            cwk[words[i], k] += 1
    return changed


@kernel
def _likely(a: float, phi: float, is_old: bool, taken: float, grown: float) -> float:
    """Return a phi, a report's likelihood in a topic; in the token's old topic without its own count."""
    return a * grown * max(phi - taken, 0.0) if is_old else a * phi


@kernel
def fill_background(
    z: I32, start: int, stop: int, pool: I32, sum_alpha: float, keep: F32, other: I32, cdk: I64, key: np.uint64
) -> None:
    """Give the background tokens of a document a topic each, as Polya's urn does; pool [n] gets the topics of all."""
    order, c = np.empty(stop - start, dtype=np.int32), 0  # the tokens that have a topic so far
    for i in range(start, stop):
        if z[i] >= 0:
            pool[i - start] = z[i]
            order[c] = i - start
            c += 1
    for i in range(start, stop):
        if z[i] < 0:
            u = uniform(key, np.uint64(i * _DRAWS)) * (c + sum_alpha)
            if u < c:
                pool[i - start] = pool[order[int(u)]]
            else:
                pool[i - start] = _from_table(keep, other, (u - c) / sum_alpha)
            order[c] = i - start
            c += 1
    for i in range(stop - start):
        cdk[pool[i]] += 1


@kernel
def _from_table(keep: F32, other: I32, u: float) -> int:
    """Draw from an alias table; u may have been rounded to 1."""
    return alias.draw(keep, other, min(u, 1.0 - 2.0**-52))
