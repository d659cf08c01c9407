"""Noise of mode `sound`: Gaussian noise on sums over documents, in which no document counts for more than a constant.

Noise on the counts of units (mode `paper`) is added to each unit, and its guarantee is for words. Here the unit of
privacy is a document. Its topic shares stay at its party and are a function of the document and of topics that were
released before, so what it adds to the sum (10) is, too. That is clipped in the Frobenius norm, and the noise is added
to the sum, on a grid.

The clip norm is a public constant: 0.5 sqrt(words_per_document), about the norm of a usual document's expected counts.
"""

from __future__ import annotations

import math

from tertulia.errors import FormatError
from tertulia.methods.pctd.settings import SumNoise
from tertulia.privacy.mechanisms import Adjacency, Claim, Unit
from tertulia.privacy.mechanisms.gaussian import sigma_for
from tertulia.privacy.mechanisms.shared_gaussian import SharedGaussian

BITS = 14  # sums are in steps of 2^-14
_SOURCE = "PC-TD in mode sound, whole run"
_CLIP = 0.5  # of the root of a document's words
_MARGIN = 1.001  # the accountant's grid rounds epsilon up


def clip_of(noise: SumNoise) -> float:
    """Return the norm to which each document is cut.

    >>> clip_of(SumNoise(epsilon=8.0, rounds=5, delta=1e-6, words_per_document=100))
    5.0
    """
    return _CLIP * math.sqrt(noise.words_per_document)


def deviation(noise: SumNoise) -> float:
    """Return the standard deviation of the noise on each number of a round's sum."""
    if noise.epsilon is None:
        raise FormatError("mode 'sound' needs an epsilon")
    return _MARGIN * sigma_for(noise.epsilon, noise.delta, noise.rounds, shift=clip_of(noise))


def mechanism_of(what: str, noise: SumNoise, own: SumNoise | None = None, shares: int = 1) -> SharedGaussian:
    """Return the mechanism of each round's sum. A party's own noise counts where it is larger."""
    chosen = noise if own is None else max(noise, own, key=deviation)
    return SharedGaussian(
        what, sensitivity=clip_of(noise), sigma=deviation(chosen), bits=BITS, shares=shares,
        unit=Unit.DOCUMENT, adjacency=Adjacency.ADD_REMOVE,
        claimed=Claim(chosen.epsilon or math.inf, chosen.delta, _SOURCE),
    )  # fmt: skip
