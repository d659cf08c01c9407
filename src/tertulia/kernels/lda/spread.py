"""Topics of too few documents: their counts could be read like these documents."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import I32, I64, Bool
from tertulia.kernels.core.jit import lean_kernel

# Tried: no document may have more than half of a topic's tokens (the dominance rule of official statistics). It hid the
# encoded files of 20 Newsgroups, which are few and long: perplexity 2503 instead of 1317. The attack that is measured
# (`benchmarks.secure --parts steered`) fails without it.


def widespread_topics(documents: I64, z: I32, K: int, least: int) -> Bool:
    """Tell which topics [K] at least `least` documents have; tokens without a topic have -1.

    >>> widespread_topics(np.array([0, 2, 4]), np.array([0, 0, 0, 1], np.int32), K=2, least=2)
    array([ True, False])
    """
    holders, latest = np.zeros(K, dtype=np.int64), np.full(K, -1, dtype=np.int64)
    if least > 1:
        count_holders(documents, z, holders, latest)
    return np.asarray(holders >= (least if least > 1 else 0))


@lean_kernel
def count_holders(documents: I64, z: I32, holders: I64, latest: I64) -> None:
    """Count the documents of each topic [K]; `latest` [K] holds the last such, at first -1."""
    for d in range(documents.shape[0] - 1):
        for i in range(documents[d], documents[d + 1]):
            if z[i] >= 0:
                holders[z[i]] += latest[z[i]] != d
                latest[z[i]] = d
