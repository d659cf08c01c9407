"""Global semantic consistency (PC-TD, eq. 12 and 13): related words pull each other up within a topic.

It is the server's own affair: it looks at the summed model and at public knowledge about words, never at documents.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64
from tertulia.corpus.word_vectors import Relations, read_relations, read_vectors, similarities
from tertulia.methods.pctd.settings import PCTDSettings


def known_relations(config: PCTDSettings, words: tuple[str, ...]) -> Relations | None:
    """Read the relations of the vocabulary's words, if the settings name any."""
    if config.vectors is not None:
        return similarities(read_vectors(config.vectors, words), config.neighbours, config.min_cosine)  # (12)
    return None if config.relations is None else read_relations(config.relations, words)


def make_consistent(phi: F64, known: Relations | None, tau: float) -> F64:
    """Move topics [K, V] towards words that have relatives in them.

    The paper normalises over all words. Here the words with relations keep their total, so that a word of which nothing
    is known keeps its probability.
    """
    if known is None or tau == 0:
        return phi
    p = phi[:, known.numbers]  # [K, A]
    pull = p * (known.R @ p.T).T  # p(w|z) (R p)_w
    quadratic = pull.sum(axis=1, keepdims=True)  # p^T R p
    moved = p + tau * np.divide(pull, quadratic, out=np.zeros_like(p), where=quadratic > 0)  # (13)
    total, sums = p.sum(axis=1, keepdims=True), moved.sum(axis=1, keepdims=True)
    adjusted = phi.copy()
    adjusted[:, known.numbers] = moved * np.divide(total, sums, out=np.zeros_like(sums), where=sums > 0)
    return adjusted
