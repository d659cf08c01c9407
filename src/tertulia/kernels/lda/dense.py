"""Partially collapsed Gibbs for LDA (FTM, CIKM 2019, equations 6-7): exact, and parallel over documents.

A sweep draws Phi from its Dirichlet posterior (7) and then, with Phi fixed and theta integrated out, every topic of
every document (6). Given Phi, documents are independent: threads share nothing but Phi and the counts for the next
sweep, whole numbers that add up to the same whatever the order. Arithmetic is in float32: a conditional probability
carries a relative error of ~1e-6.

Phi may also be the posterior mean given the topics before the sweep. Then a token's own count is part of Phi, and is
left out of it for the old topic: (C_wk - 1 + beta) / (C_k - 1 + V beta), as in collapsed Gibbs.

`run_beside` sweeps over one party's documents while the counts of all others stand still (AD-LDA, Newman et al., JMLR
2009). There Phi is the posterior mean given everybody's counts: those of the others as last heard, and one's own as
they move.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.kernels.core import parallel
from tertulia.kernels.core.atomics import fetch_add
from tertulia.kernels.core.jit import freeze, kernel, lean_kernel
from tertulia.kernels.core.rng import derive, uniform32
from tertulia.kernels.core.simd import draw, pad_with_zeros
from tertulia.kernels.lda.phi import mean_phi, mean_totals


def sweep(
    words: I32, documents: I64, z: I32, phi: F32, totals: F64, alpha: F64, key: np.uint64, cwk: I32, ck: I64,
    threads: int,
) -> int:  # fmt: skip
    """Redraw every topic given phi [V, padded K] (6); z, their counts cwk [V, K] and ck [K] change in place.

    If phi is the mean given z, totals [K] are those of `phi.mean_totals`; if it is a draw, they are empty. Returns how
    many topics have changed.
    """
    fixed = (z, phi, totals, pad_with_zeros(alpha), key, cwk.reshape(-1), ck, threads == 1)
    jobs = [(words, documents, *some, *fixed) for some in parallel.shares(documents, threads)]
    return sum(parallel.run(sweep_block, jobs, threads))


def run_beside(
    words: I32, documents: I64, z: I32, others: I32, alpha: F64, beta: float, sweeps: int, key: int, threads: int = 1
) -> tuple[I32, I32]:
    """Sweep from topics z [N] beside the others' counts [V, K]; return the new topics and one's own counts [V, K]."""
    z = np.array(z, dtype=np.int32)
    V, K = others.shape
    everyone: I32 = others + counts(words, z, V, K)
    ck = everyone.sum(axis=0, dtype=np.int64)
    for s in range(sweeps):
        phi = mean_phi(everyone, ck, beta, threads)
        sweep(words, documents, z, phi, mean_totals(ck, V * beta), alpha, derive(key, s), everyone, ck, threads)
    return z, everyone - others


def counts(words: I32, z: I32, V: int, K: int) -> I32:
    """Tokens of word w in topic k, [V, K].

    By one thread: two that each look for their own words take twice as long (1.3 million tokens: 12 and 6 ms).
    """
    cwk = np.zeros((V, K), dtype=np.int32)
    count_tokens(freeze(words, np.int32), freeze(z, np.int32), cwk)
    return cwk


@kernel
def sweep_block(
    words: I32, documents: I64, first: int, last: int, z: I32, phi: F32, totals: F64, alpha: F32, key: np.uint64,
    cwk: I32, ck: I64, alone: bool,
) -> int:  # fmt: skip
    """Redraw the topics of documents first..last-1; unless alone, other threads may add to cwk [V * K] and ck too."""
    K = alpha.shape[0]
    cdk, gained = np.zeros(K, dtype=np.int32), np.zeros(K, dtype=np.int64)
    weight = alpha.copy()  # C_dk + alpha_k
    running = np.empty(K, dtype=np.float32)
    grow, drop = _shares(totals)
    changed = 0
    for d in range(first, last):
        start, stop = documents[d], documents[d + 1]
        for i in range(start, stop):
            cdk[z[i]] += 1
        for i in range(start, stop):
            weight[z[i]] = alpha[z[i]] + np.float32(cdk[z[i]])
        for i in range(start, stop):
            w, old = words[i], z[i]
            cdk[old] -= 1
            weight[old] = alpha[old] + np.float32(cdk[old])
            if grow.shape[0] > 0:
                weight[old] *= max(grow[old] - drop[old] / phi[w, old], np.float32(0.0))
            new = draw(weight, phi, w, running, uniform32(key, np.uint64(i)), old)
            cdk[new] += 1
            weight[old] = alpha[old] + np.float32(cdk[old])
            weight[new] = alpha[new] + np.float32(cdk[new])
            if new != old:
                z[i] = new
                gained[old] -= 1
                gained[new] += 1
                changed += 1
                _move(cwk, w * ck.shape[0], old, new, alone)
        for i in range(start, stop):
            cdk[z[i]] = 0
            weight[z[i]] = alpha[z[i]]
    for k in range(ck.shape[0]):
        fetch_add(ck, k, gained[k])
    return changed


@kernel
def _shares(totals: F64) -> tuple[F32, F32]:
    """Without a token of topic k, its phi is grow_k phi - drop_k; totals are C_k + V beta."""
    grow, drop = np.zeros(totals.shape[0], dtype=np.float32), np.zeros(totals.shape[0], dtype=np.float32)
    for k in range(totals.shape[0]):
        if totals[k] > 1.0:  # else no token is there
            grow[k], drop[k] = totals[k] / (totals[k] - 1.0), 1.0 / (totals[k] - 1.0)
    return grow, drop


@kernel
def _move(cwk: I32, row: int, old: int, new: int, alone: bool) -> None:
    if alone:
        cwk[row + old] -= 1
        cwk[row + new] += 1
    else:
        fetch_add(cwk, row + old, -1)
        fetch_add(cwk, row + new, 1)


@lean_kernel
def count_tokens(words: I32, z: I32, cells: Array) -> None:
    """Count all tokens in cells [V, K or more]."""
    for i in range(z.shape[0]):
        cells[words[i], z[i]] += 1


def frequency(x: I32, n: int) -> I64:
    """How often each of 0..n-1 occurs in x: numpy's `bincount` would make a copy of twice the size."""
    seen = np.zeros(n, dtype=np.int64)
    count_items(freeze(x, np.int32), seen)
    return seen


@lean_kernel
def count_items(x: I32, seen: I64) -> None:
    """Add to seen [n] how often each of 0..n-1 occurs in x."""
    for i in range(x.shape[0]):
        seen[x[i]] += 1
