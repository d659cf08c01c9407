"""Learned Dirichlet priors by Minka's fixed point ("Estimating a Dirichlet distribution", 2000, section 4).

Its digamma differences are finite sums, psi(n + a) - psi(a) = sum_{j<n} 1 / (a + j), so all it needs to know of the
documents is how many have more than j tokens in topic k. No D x K matrix is made.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

from tertulia._arrays import F64, I32, I64, Array
from tertulia.kernels.core.jit import kernel

_SMALLEST = 1e-6  # keeps a topic alive that holds no token now
_LARGEST = 1e6  # beyond this all documents look alike and the fixed point runs away


def learn_alpha(
    documents: I64, z: I32, alpha: F64, symmetric: bool = False, iterations: int = 200, tolerance: float = 1e-5
) -> F64:
    """The alpha [K] that makes the document-topic counts of z [N] most likely, from a first guess."""
    if symmetric:
        alpha = np.full_like(alpha, alpha.mean())
    counts, topic, j = _more_than(documents, z, alpha.shape[0])
    lengths = np.bincount(np.diff(documents))
    longer = lengths[::-1].cumsum()[::-1][1:]  # [longest] documents with more than j tokens
    for _ in range(iterations):
        gain = np.bincount(topic, counts / (alpha[topic] + j), minlength=alpha.shape[0])
        cost = (longer / (alpha.sum() + np.arange(longer.shape[0]))).sum()
        if cost == 0.0:
            return alpha  # no tokens, nothing to learn
        slope = gain.mean() if symmetric else gain
        step: F64 = np.clip(alpha * slope / cost, _SMALLEST, _LARGEST)
        if np.abs(step - alpha).max() <= tolerance * alpha.max():
            return step
        alpha = step
    return alpha


def learn_beta(cwk: I32, ck: I64, beta: float, iterations: int = 200, tolerance: float = 1e-5) -> float:
    """The symmetric beta that makes the topic-word counts most likely, from a first guess."""
    V = cwk.shape[0]
    cells = np.bincount(cwk.ravel())
    more = cells[::-1].cumsum()[::-1][1:]  # cells with a count above j
    if more.size == 0:
        return beta
    j = np.arange(more.shape[0])
    for _ in range(iterations):
        cost = V * (digamma(ck + V * beta) - digamma(V * beta)).sum()
        step = float(np.clip(beta * (more / (beta + j)).sum() / cost, _SMALLEST, _LARGEST))
        if abs(step - beta) <= tolerance * beta:
            return step
        beta = step
    return beta


def _more_than(documents: I64, z: I32, K: int) -> tuple[Array, I64, I64]:
    """How many documents have more than j tokens of topic k, for every (k, j) where there is one: three columns."""
    depth = deepest(documents, z, K)
    topic = np.repeat(np.arange(K), depth)
    offsets = np.cumsum(depth) - depth
    return tally(documents, z, offsets, depth.sum()), topic, np.arange(depth.sum()) - offsets[topic]


@kernel
def deepest(documents: I64, z: I32, K: int) -> I64:
    """The largest count of each topic in any document."""
    cdk = np.zeros(K, dtype=np.int64)
    depth = np.zeros(K, dtype=np.int64)
    for d in range(documents.shape[0] - 1):
        for i in range(documents[d], documents[d + 1]):
            cdk[z[i]] += 1
            depth[z[i]] = max(depth[z[i]], cdk[z[i]])
        for i in range(documents[d], documents[d + 1]):
            cdk[z[i]] = 0
    return depth


@kernel
def tally(documents: I64, z: I32, offsets: I64, size: int) -> I64:
    """At offsets[k] + j, the number of documents with more than j tokens of topic k."""
    more = np.zeros(size, dtype=np.int64)
    cdk = np.zeros(offsets.shape[0], dtype=np.int64)
    for d in range(documents.shape[0] - 1):
        for i in range(documents[d], documents[d + 1]):
            more[offsets[z[i]] + cdk[z[i]]] += 1
            cdk[z[i]] += 1
        for i in range(documents[d], documents[d + 1]):
            cdk[z[i]] = 0
    return more
