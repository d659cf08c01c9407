"""Noise-aware Gibbs sampling for LDA on private reports: the model includes the noise.

A token's report is background (weight r0 in every topic) or names word idx_j from topic k (weight a_j phi[k, idx_j]):
P(report | z) ∝ r0 + sum_j a_j phi[z, idx_j]. Each draw decides which. A background token is in no count; its topic and
its word are -1.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits, uniform, uniform32
from tertulia.kernels.core.simd import draw
from tertulia.kernels.core.vectors import LANES


@kernel
def sweep_collapsed(
    indptr: I64, idx: I32, a: F32, r0: float, base: int, documents: I64, first: int, last: int, z: I32, word: I32,
    cwk: I32, ck: I64, alpha: F64, beta: F64, key: np.uint64,
) -> int:  # fmt: skip
    """Redraw documents first..last-1 in place by collapsed Gibbs, the reference; return how many tokens changed.

    The reports' rows begin with token `base`; beta [V] is the prior of words.
    """
    K, sum_alpha, sum_beta = ck.shape[0], alpha.sum(), beta.sum()
    cdk, weight = np.zeros(K, dtype=np.int64), np.empty(K)
    masses = np.empty(np.diff(indptr).max() if indptr.shape[0] > 1 else 0)
    changed = 0
    for d in range(first, last):
        start, stop = documents[d], documents[d + 1]
        for i in range(start, stop):
            if z[i] >= 0:
                cdk[z[i]] += 1
        for i in range(start, stop):
            old, old_word = z[i], word[i]
            _move(old, old_word, -1, cdk, cwk, ck)
            for k in range(K):
                weight[k] = (cdk[k] + alpha[k]) / (ck[k] + sum_beta)
            from_, to = indptr[i - base], indptr[i - base + 1]
            total = r0 * (
                cdk.sum() + sum_alpha
            )  # of the background; then a_j (C_dk + alpha) (C_wk + beta) / (C_k + ..)
            rest = -total
            for j in range(from_, to):
                mass = 0.0
                for k in range(K):
                    mass += weight[k] * (cwk[idx[j], k] + beta[idx[j]])
                masses[j - from_] = a[j] * mass
                total += masses[j - from_]
            rest += total * uniform(key, np.uint64(i))
            z[i], word[i] = _choose(idx[from_:to], masses, weight, cwk, beta, rest)
            _move(z[i], word[i], 1, cdk, cwk, ck)
            changed += z[i] != old or word[i] != old_word
        cdk[:] = 0
    return changed


@kernel
def _move(k: int, w: int, by: int, cdk: I64, cwk: I32, ck: I64) -> None:
    if k >= 0:
        cdk[k] += by
        cwk[w, k] += by
        ck[k] += by


@kernel
def _choose(words: I32, masses: F64, weight: F64, cwk: I32, beta: F64, rest: float) -> tuple[int, int]:
    """Return the topic and the word at `rest` of the masses; a negative rest is in the background."""
    if rest < 0.0 or words.shape[0] == 0:
        return -1, -1
    j = 0
    while j < words.shape[0] - 1 and rest >= masses[j]:
        rest -= masses[j]
        j += 1
    w, K = words[j], weight.shape[0]
    mass = 0.0
    for k in range(K):
        mass += weight[k] * (cwk[w, k] + beta[w])
    goal, k = min(rest / masses[j], 1.0) * mass, 0
    goal -= weight[0] * (cwk[w, 0] + beta[w])
    while k < K - 1 and goal >= 0.0:
        k += 1
        goal -= weight[k] * (cwk[w, k] + beta[w])
    return k, w


@kernel
def sweep_given_phi(
    indptr: I64, idx: I32, a: F32, r0: float, base: int, documents: I64, first: int, last: int, z: I32, word: I32,
    phi: F32, totals: F64, alpha: F64, cwk: I32, key: np.uint64,
) -> int:  # fmt: skip
    """Redraw documents first..last-1 given phi [V, padded K] (partially collapsed Gibbs), and add to the counts cwk.

    The background is one topic more, number K: its weight is C_d. + sum alpha, and every report gives it r0. If phi is
    the mean of `phi.mean_totals`, what a token was taken for is left out of phi for its old topic.
    """
    K, width = cwk.shape[1], phi.shape[1] + LANES  # room for topic K
    weight, running = np.zeros(width, dtype=np.float32), np.empty(width, dtype=np.float32)
    evidence = np.zeros((1, width), dtype=np.float32)  # sum_j a_j phi[idx_j, k]
    cdk, sum_alpha, changed = np.zeros(K, dtype=np.int32), alpha.sum(), 0
    own = np.zeros(phi.shape[0], dtype=np.int32)  # [V] the token's own count
    for d in range(first, last):
        start, stop = documents[d], documents[d + 1]
        signals = _start_document(z, start, stop, cdk, weight, alpha)
        for i in range(start, stop):
            old, old_word = z[i], word[i]
            if old >= 0:
                signals -= 1
                cdk[old] -= 1
                weight[old] = alpha[old] + cdk[old]
            weight[K] = signals + sum_alpha
            from_, to = indptr[i - base], indptr[i - base + 1]
            add_evidence(idx, a, from_, to, phi, evidence)
            evidence[0, K] = r0
            taken, grown = 0.0, 1.0
            if old >= 0 and totals.shape[0] > 0:
                own[old_word] = 1
                taken, grown = shares(totals[old], 1)
                evidence[0, old] = leave_out(idx, a, from_, to, own, evidence[0, old], taken, grown)
            k = draw(weight, evidence, 0, running, uniform32(key, np.uint64(i)), old if old >= 0 else K)
            z[i], word[i] = -1, -1
            if k < K:
                u = uniform(bits(key, np.uint64(i)), np.uint64(1)) if to - from_ > 1 else 0.0
                if k != old:
                    taken, grown = 0.0, 1.0
                z[i], word[i] = k, choose_word(idx, a, from_, to, phi, k, evidence[0, k] * u / grown, own, taken)
                signals += 1
                cdk[k] += 1
                weight[k] = alpha[k] + cdk[k]
            own[old_word] = 0
            changed += z[i] != old or word[i] != old_word
        for i in range(start, stop):
            if z[i] >= 0:
                cwk[word[i], z[i]] += 1
    return changed


@kernel
def _start_document(z: I32, start: int, stop: int, cdk: I32, weight: F32, alpha: F64) -> int:
    """Set the counts of a document's topics; return how many of its tokens have one."""
    signals = 0
    cdk[:] = 0
    for i in range(start, stop):
        if z[i] >= 0:
            cdk[z[i]] += 1
            signals += 1
    for k in range(cdk.shape[0]):
        weight[k] = alpha[k] + cdk[k]
    return signals


@kernel
def add_evidence(idx: I32, a: F32, from_: int, to: int, phi: F32, evidence: F32) -> None:
    """Set evidence [1, padded K] to sum_j a_j phi[idx_j, k]."""
    evidence[:] = 0.0
    row = evidence[0, : phi.shape[1]]
    for j in range(from_, to):
        words = phi[idx[j]]
        for k in range(words.shape[0]):
            row[k] += a[j] * words[k]


@kernel
def shares(total: float, n: int) -> tuple[float, float]:
    """Return (taken, grown), to leave n tokens out of the phi of a topic with `total`.

    The phi of a word that c of these tokens have is then grown (phi - taken c).
    """
    return 1.0 / total, total / (total - n)


@kernel
def leave_out(idx: I32, a: F32, from_: int, to: int, own: I32, evidence: float, taken: float, grown: float) -> float:
    """Leave counts own [V] out of the evidence sum_j a_j phi[idx_j] of a topic."""
    part = 0.0
    for j in range(from_, to):
        if own[idx[j]] > 0:
            part += a[j] * own[idx[j]]
    return grown * max(evidence - taken * part, 0.0)


@kernel
def choose_word(idx: I32, a: F32, from_: int, to: int, phi: F32, k: int, rest: float, own: I32, taken: float) -> int:
    """Return the word at `rest` of the masses a_j (phi[idx_j, k] - taken own[idx_j])."""
    chosen = from_
    for j in range(from_, to):
        mass = a[j] * phi[idx[j], k] - a[j] * taken * own[idx[j]]
        if mass > 0.0:
            chosen = j
            rest -= mass
            if rest < 0.0:
                break
    w: int = idx[chosen]
    return w
