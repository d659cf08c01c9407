"""Partially collapsed Gibbs for LDA (FTM, CIKM 2019, equations 6-7): exact, and parallel over documents.

A sweep draws Phi from its Dirichlet posterior (7) and then, with Phi fixed and theta integrated out, every topic of
every document (6). Given Phi, documents are independent: threads share nothing but Phi, and integer counts add up to
the same whatever their order. Arithmetic is in float32: a conditional probability carries a relative error of ~1e-6.
"""

from __future__ import annotations

import numpy as np

from tertulia.arrays import F32, F64, I32, I64
from tertulia.kernels import blocks
from tertulia.kernels.compiled import frozen, kernel
from tertulia.kernels.lanes import draw
from tertulia.kernels.rng import uniform32


def sweep(words: I32, documents: I64, z: I32, phi: F32, alpha: F64, key: np.uint64, threads: int) -> tuple[I32, int]:
    """Redraw every topic in place given phi [V, padded K] (6); return their counts [V, K] and how many changed."""
    V, K = phi.shape[0], alpha.shape[0]
    lanes = np.zeros(phi.shape[1], dtype=np.float32)
    lanes[:K] = alpha
    fixed = (z, phi, frozen(lanes, np.float32), key)
    jobs = [(words, documents, *some, *fixed) for some in blocks.cuts(documents, threads)]
    changed = sum(blocks.run(sweep_block, jobs, threads))
    return counts(words, z, V, K, threads), changed


def counts(words: I32, z: I32, V: int, K: int, threads: int = 1) -> I32:
    """Tokens of word w in topic k, [V, K].

    Each thread looks at all tokens and counts those of its words: cheaper than to add up counts of its own.
    """
    words, z = frozen(words, np.int32), frozen(z, np.int32)
    cwk = np.zeros((V, K), dtype=np.int32)
    ends = np.concatenate([[0], np.cumsum(frequency(words, V))])
    blocks.run(count_block, [(words, z, *some, cwk) for some in blocks.cuts(ends, threads)], threads)
    return cwk


@kernel
def sweep_block(words: I32, documents: I64, first: int, last: int, z: I32, phi: F32, alpha: F32, key: np.uint64) -> int:
    """Redraw the topics of documents first..last-1."""
    K = alpha.shape[0]
    cdk = np.zeros(K, dtype=np.int32)
    weight = alpha.copy()  # C_dk + alpha_k
    running = np.empty(K, dtype=np.float32)
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
            new = draw(weight, phi, w, running, uniform32(key, np.uint64(i)), old)
            cdk[new] += 1
            weight[new] = alpha[new] + np.float32(cdk[new])
            z[i] = new
            changed += new != old
        for i in range(start, stop):
            cdk[z[i]] = 0
            weight[z[i]] = alpha[z[i]]
    return changed


@kernel
def count_block(words: I32, z: I32, first: int, last: int, cwk: I32) -> None:
    """Count the tokens of words first..last-1 in cwk [V, K]."""
    for i in range(z.shape[0]):
        if first <= words[i] < last:
            cwk[words[i], z[i]] += 1


@kernel
def frequency(x: I32, n: int) -> I64:
    """How often each of 0..n-1 occurs in x: numpy's `bincount` would make a copy of twice the size."""
    seen = np.zeros(n, dtype=np.int64)
    for i in range(x.shape[0]):
        seen[x[i]] += 1
    return seen
