"""Exact posteriors of tiny corpora by enumeration, and how far a chain is from them."""

import itertools

import numpy as np

from tertulia.kernels import lda


def total_variation(seen, p):
    """Between how often states were seen and their probabilities.

    A chain worth n independent draws from p itself is off by about sqrt(states / (2 pi n)).
    """
    return 0.5 * np.abs(seen / seen.sum() - p).sum()


def topics_posterior(words, documents, state):
    """The probability of every assignment, labels and all, phi integrated out: [K^N], token i is digit i."""
    joint = [
        lda.log_joint(words, documents, state._replace(z=np.array(z[::-1], dtype=np.int32)))
        for z in itertools.product(range(len(state.alpha)), repeat=len(words))
    ]
    p = np.exp(np.array(joint) - max(joint))
    return p / p.sum()
