"""What reports say before tokens have topics: the words that they name, and expected counts by topic.

A report is evidence for a topic, or background: P(report | z = k) ∝ r0 + sum_j a_j phi[k, idx_j]. One step of EM finds
each document's own shares of topics, then the expected number of tokens of each word that are no background.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.kernels.core.checks import check_alpha
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.noise_aware import Source, check_offsets, pieces
from tertulia.kernels.noise_aware.state import spread

_STEPS = 15  # of EM for a document's shares
_PRESENT = 0.5  # a document has a topic if it has this number of expected tokens of it


def named_words(source: Source, documents: Array) -> tuple[I32, I64]:
    """Return the words that reports name loudest, and where documents begin among them.

    Under randomised response that is one word per report, under subset selection all that a report names, and of
    Laplace reports the largest entry.
    """
    documents = check_offsets(source, documents)
    words, per_token = [np.zeros(0, np.int32)], np.zeros(int(documents[-1]), np.int64)
    for base, reports, first, last in pieces(source, documents, 0, len(documents) - 1):
        token = np.repeat(np.arange(len(reports.indptr) - 1), np.diff(reports.indptr))
        loudest = np.zeros(len(reports.indptr) - 1, np.float32)
        np.maximum.at(loudest, token, reports.a)
        kept = reports.a >= loudest[token]
        words.append(reports.idx[kept])
        start, stop = int(documents[first]), int(documents[last])
        per_token[start:stop] = np.bincount(token[kept], minlength=len(loudest))[start - base : stop - base]
    ends: I64 = np.concatenate(([0], np.cumsum(per_token)))[documents]
    return np.concatenate(words), ends


def expected_counts(source: Source, documents: Array, topic_word: Array, alpha: F64, least: int = 1) -> F64:
    """Return the expected number of tokens by word and topic [V, K]; 0 for topics of fewer than `least` documents."""
    documents, (K, V) = check_offsets(source, documents), topic_word.shape
    phi, alpha = spread(topic_word), check_alpha(alpha, K)
    found, holders = np.zeros((V, K)), np.zeros(K, dtype=np.int64)
    for base, r, first, last in pieces(source, documents, 0, len(documents) - 1):
        add_expected(r.indptr, r.idx, r.a, r.r0, base, documents, first, last, phi, alpha, found, holders)
    if least > 1:
        found[:, holders < least] = 0.0
    return found


@kernel
def add_expected(
    indptr: I64, idx: I32, a: F32, r0: float, base: int, documents: I64, first: int, last: int, phi: F32, alpha: F64,
    found: F64, holders: I64,
) -> None:  # fmt: skip
    """Add the expected counts of documents first..last-1 to found [V, K], and count each topic's documents [K]."""
    K, longest = found.shape[1], 0
    for d in range(first, last):
        longest = max(longest, documents[d + 1] - documents[d])
    evidence, theta, pull = np.empty((longest, K)), np.empty(K), np.empty(K)
    for d in range(first, last):
        start, n = documents[d] - base, documents[d + 1] - documents[d]
        for i in range(n):
            evidence[i, :] = 0.0
            for j in range(indptr[start + i], indptr[start + i + 1]):
                for k in range(K):
                    evidence[i, k] += a[j] * phi[idx[j], k]
        theta[:] = 1.0 / K
        for _ in range(_STEPS):
            pull[:] = alpha
            for i in range(n):
                mass = _mass(theta, evidence, i, r0)
                for k in range(K):
                    pull[k] += theta[k] * evidence[i, k] / mass
            whole = pull.sum()
            for k in range(K):
                theta[k] = pull[k] / whole
        pull[:] = 0.0
        for i in range(n):
            mass = _mass(theta, evidence, i, r0)
            for j in range(indptr[start + i], indptr[start + i + 1]):
                for k in range(K):
                    expected = theta[k] * a[j] * phi[idx[j], k] / mass
                    found[idx[j], k] += expected
                    pull[k] += expected
        for k in range(K):
            holders[k] += pull[k] >= _PRESENT


@kernel
def _mass(theta: F64, evidence: F64, i: int, r0: float) -> float:
    """Return the likelihood of a report under a document's shares."""
    mass = r0
    for k in range(theta.shape[0]):
        mass += theta[k] * evidence[i, k]
    return mass
