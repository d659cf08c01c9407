"""EM over semantic units, each a few words of one document that share a topic: PC-TD's E-step, in log space.

Units are stretches of the token array, in the order of their documents. What a document adds to the M-step is a
function of its own (`document_statistic`), so that it can be bounded before anything is summed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core import parallel
from tertulia.kernels.core.checks import check_documents, check_size
from tertulia.kernels.core.jit import freeze, kernel

_FAINTEST = 1e-30  # a smaller share of a topic cannot matter; squares of much smaller ones would cost a hundred others
_FAR = np.log(_FAINTEST)


class SemanticUnits(NamedTuple):
    """The semantic units of some documents."""

    words: I32  # [N] word of each token
    bounds: I64  # [S, 2] first token of each unit, and the one after its last
    documents: I64  # [D+1] unit offsets

    @property
    def shape(self) -> tuple[int, int]:
        """How many documents and how many units there are."""
        return len(self.documents) - 1, len(self.bounds)


def semantic_units(words: Array, documents: Array, bounds: Array, V: int) -> SemanticUnits:
    """Check the units [S, 2] of documents (token offsets [D+1]), and find those of each document.

    A unit may be empty; none may cross the end of its document.
    """
    words, documents = check_documents(words, documents, V)
    bounds = np.asarray(bounds, dtype=np.int64).reshape(-1, 2)
    starts, ends = bounds[:, 0], bounds[:, 1]
    first = np.searchsorted(starts, documents[:-1])
    offsets = np.concatenate((first, [len(bounds)])).astype(np.int64)
    home_end = np.repeat(documents[1:], np.diff(offsets)) if len(bounds) and first[0] == 0 else ends - 1
    if np.any(ends < starts) or np.any(starts[1:] < ends[:-1]) or np.any(ends > home_end):
        raise InputError("units must follow one another, each within one document: use `corpus.units(kind, n)`")
    return SemanticUnits(words, freeze(bounds, np.int64), freeze(offsets, np.int64))


def responsibilities(found: SemanticUnits, log_phi: Array, theta: Array, threads: int = 1) -> tuple[F64, F64]:
    """Compute the share [S, K] of each topic in each unit, and the log likelihood [S] of the units.

    `log_phi` [V, K] are logarithms of words' probabilities, `theta` [D, K] the documents' topic shares.
    """
    S, K = found.shape[1], log_phi.shape[1]
    check_size(len(log_phi), K)
    r, log_likelihood = np.empty((S, K)), np.empty(S)
    log_theta, none = log_shares(found, theta, K), freeze(np.zeros((0, K)), np.float64)
    log_phi = freeze(log_phi, np.float64)
    jobs = [
        (*found, first, last, log_phi, log_theta, none, r, log_likelihood)
        for first, last in parallel.cuts(found.documents, threads)
    ]
    parallel.run(share_block, jobs, threads)
    return r, log_likelihood


def log_shares(found: SemanticUnits, theta: Array, K: int) -> F64:
    """Compute the logarithms [D, K] of topic shares; a share of 0 is replaced by the smallest that has a logarithm."""
    D = found.shape[0]
    if theta.shape != (D, K):
        raise InputError(f"theta has shape {theta.shape}: {D} documents and {K} topics are needed")
    return freeze(np.log(np.maximum(theta, _FAINTEST)), np.float64)


def shares(found: SemanticUnits, r: F64) -> F64:
    """Compute the topic shares [D, K] of documents, means over their units; those without units get equal shares."""
    D, K = len(found.documents) - 1, r.shape[1]
    theta = np.full((D, K), 1.0 / K)
    counts = np.diff(found.documents)
    some = counts > 0
    if some.any():
        theta[some] = np.add.reduceat(r, found.documents[:-1][some], axis=0) / counts[some, None]
    return theta


def statistics(found: SemanticUnits, r: F64, V: int) -> F64:
    """Compute the expected counts [V, K] of words in topics, over all documents."""
    return np.asarray(_sum_documents(found.words, found.bounds, found.documents, freeze(r, np.float64), V))


@kernel
def share_block(
    words: I32, bounds: I64, documents: I64, first: int, last: int, log_phi: F64, log_theta: F64, noise: F64, r: F64,
    log_likelihood: F64,
) -> None:  # fmt: skip
    """Compute responsibilities of units of documents first..last-1; `noise` [their units, K] is added to logarithms."""
    K = log_phi.shape[1]
    x = np.empty(K)
    for d in range(first, last):
        for u in range(documents[d], documents[d + 1]):
            for k in range(K):
                x[k] = log_theta[d, k]
            for i in range(bounds[u, 0], bounds[u, 1]):
                w = words[i]
                for k in range(K):
                    x[k] += log_phi[w, k]
            peak = -np.inf
            for k in range(K):
                if noise.shape[0]:
                    x[k] += noise[u - documents[first], k]
                peak = max(peak, x[k])
            total = 0.0
            for k in range(K):
                r[u, k] = np.exp(x[k] - peak) if x[k] - peak > _FAR else 0.0
                total += r[u, k]
            for k in range(K):
                r[u, k] /= total
            log_likelihood[u] = peak + np.log(total)


@kernel
def document_statistic(
    words: I32, bounds: I64, first: int, last: int, r: F64, place: I64, mine: I64, found: F64
) -> int:
    """Sum what units first..last-1 of a document add: row j of `found` is of word mine[j]; return the number of rows.

    `place` [V] holds -1 everywhere, before and after.
    """
    n = 0
    for u in range(first, last):
        for i in range(bounds[u, 0], bounds[u, 1]):
            w = words[i]
            if place[w] < 0:
                place[w], mine[n] = n, w
                for k in range(r.shape[1]):
                    found[n, k] = 0.0
                n += 1
            j = place[w]
            for k in range(r.shape[1]):
                found[j, k] += r[u, k]
    for j in range(n):
        place[mine[j]] = -1
    return n


@kernel
def _sum_documents(words: I32, bounds: I64, documents: I64, r: F64, V: int) -> F64:
    D = documents.shape[0] - 1
    total = np.zeros((V, r.shape[1]))
    place = np.full(V, -1, dtype=np.int64)
    longest = 0
    for d in range(D):
        if documents[d + 1] > documents[d]:
            longest = max(longest, bounds[documents[d + 1] - 1, 1] - bounds[documents[d], 0])
    mine, found = np.empty(longest, dtype=np.int64), np.empty((longest, r.shape[1]))
    for d in range(D):
        n = document_statistic(words, bounds, documents[d], documents[d + 1], r, place, mine, found)
        for j in range(n):
            w = mine[j]
            for k in range(r.shape[1]):
                total[w, k] += found[j, k]
    return total
