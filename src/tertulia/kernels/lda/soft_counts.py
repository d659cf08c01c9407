"""Expected counts: one step of EM for topics, with each document's own shares of topics (`fold_in`)."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.simd import dot
from tertulia.kernels.lda.fold_in import phi_by_word, settle

_PRESENT = 0.5  # a document has a topic if it has this number of expected tokens of it


def soft_counts(
    words: I32, documents: I64, topic_word: Array, alpha: F64, least: int = 1, threads: int = 1
) -> F64:  # fmt: skip
    """Return the expected number of tokens by word and topic [V, K]; 0 for topics of fewer than `least` documents."""
    K, V = topic_word.shape
    shares = settle(words, documents, topic_word, alpha, threads=threads)
    phi, rows = phi_by_word(topic_word, words, threads)
    found, holders = np.zeros((len(phi), K)), np.zeros(K, dtype=np.int64)
    add_expected(words, documents, rows, phi, shares, found, holders)
    if least > 1:
        found[:, holders < least] = 0.0
    counts, used = np.zeros((V, K)), np.unique(words)
    counts[used] = found[rows[used]]
    return counts


@kernel
def add_expected(words: I32, documents: I64, rows: I32, phi: F32, shares: F64, found: F64, holders: I64) -> None:
    """Add p(z = k | word, document) of each token to found [words in use + 1, K], and count each topic's documents [K].

    A document's tokens are added up here, not taken from its shares: these would grow with alpha, which a server sends.
    """
    K = shares.shape[1]
    theta, tokens = np.zeros(phi.shape[1], dtype=np.float32), np.empty(K)
    for d in range(documents.shape[0] - 1):
        tokens[:] = 0.0
        for k in range(K):
            theta[k] = shares[d, k]
        for i in range(documents[d], documents[d + 1]):
            r = rows[words[i]]
            mass = dot(theta, phi, r)
            if mass > 0.0:
                for k in range(K):
                    expected = theta[k] * phi[r, k] / mass
                    found[r, k] += expected
                    tokens[k] += expected
        for k in range(K):
            holders[k] += tokens[k] >= _PRESENT
