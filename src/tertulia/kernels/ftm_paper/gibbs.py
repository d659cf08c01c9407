"""Private Gibbs (iFTM, equations 6-8 and 13-15): the O(K) reference of private Metropolis-Hastings, exact given Phi.

LDA and SentenceLDA are one sampler here: tokens come in *units* that share a topic, and a unit is a word in the one, a
sentence in the other. C^DK counts units. With Phi fixed for the sweep, the likelihood of a unit is
exp(sum_w n_w log phi_zw) (8, 15), where n_w are the entries of its tokens' privatised one-hot vectors; without noise,
the entry 1 at the word itself. Given Phi, documents are independent, so threads share nothing that changes.

Only this step is exact: with noise, Phi is drawn from counts of the raw words, and a chain of both steps has no joint
posterior.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import uniform
from tertulia.kernels.core.scalars import first_above


class Units(NamedTuple):
    """A corpus as its sampler sees it."""

    words: I32  # [N] the word that a token counts for in C^KW
    tokens: I64  # [U+1] token offsets of units
    documents: I64  # [D+1] unit offsets of documents


class Entries(NamedTuple):
    """The entries above tau of privatised tokens: those of token t are indptr[t - first] .. indptr[t - first + 1]."""

    indptr: I64
    idx: I32
    value: F32
    first: int


class PhiCounts(NamedTuple):
    """The counts that Phi is the mean of, with those of all units."""

    cwk: I32  # [V, K]
    totals: F64  # [K] C_k + V beta; empty if Phi is a draw, or units are known by reports only
    beta: float


@kernel
def sweep_block(
    units: Units, start: int, stop: int, z: I32, entries: Entries, log_phi: F32, counted: PhiCounts, alpha: F64,
    key: np.uint64,
) -> int:  # fmt: skip
    """Redraw the topics of documents start..stop-1 in place given log phi [V, K]; return how many changed.

    If phi is a mean, the whole unit is left out of it for its old topic.
    """
    K = alpha.shape[0]
    cdk = np.zeros(K, dtype=np.int64)
    log_likelihood = np.empty(K)
    cumulative = np.empty(K)
    changed = 0
    for d in range(start, stop):
        cdk[:] = 0
        for u in range(units.documents[d], units.documents[d + 1]):
            cdk[z[u]] += 1
        for u in range(units.documents[d], units.documents[d + 1]):
            old = z[u]
            cdk[old] -= 1
            _add_up(entries, units.tokens[u], units.tokens[u + 1], log_phi, log_likelihood)
            if counted.totals.shape[0] > 0:
                log_likelihood[old] = log_without(units.words, units.tokens[u], units.tokens[u + 1], old, counted)
            largest = log_likelihood.max()
            total = 0.0
            for k in range(K):  # (6), (13)
                total += (cdk[k] + alpha[k]) * math.exp(log_likelihood[k] - largest)
                cumulative[k] = total
            new = first_above(cumulative, total * uniform(key, np.uint64(u)))
            cdk[new] += 1
            z[u] = new
            changed += new != old
    return changed


@kernel
def _add_up(entries: Entries, start: int, stop: int, log_phi: F32, log_likelihood: F64) -> None:
    """Compute the log likelihood of tokens start..stop-1 under every topic: (8), (15)."""
    log_likelihood[:] = 0.0
    for e in range(entries.indptr[start - entries.first], entries.indptr[stop - entries.first]):
        row, value = log_phi[entries.idx[e]], np.float64(entries.value[e])
        for k in range(log_likelihood.shape[0]):
            log_likelihood[k] += value * row[k]


@kernel
def log_without(words: I32, start: int, stop: int, k: int, counted: PhiCounts) -> float:
    """Compute the log likelihood in topic k of its tokens start..stop-1, all of them left out of the counts."""
    total = -(stop - start) * math.log(counted.totals[k] - (stop - start))
    for t in range(start, stop):
        same = 0
        for other in range(start, stop):
            same += words[other] == words[t]
        total += math.log(counted.cwk[words[t], k] - same + counted.beta)
    return total
