"""Words that many documents hold, chosen under noise: differentially private set union by the weighted Gaussian.

Each document gives weight 1 / sqrt(n) to its n words, of which at most `words_per_document` count, so it moves the
weights by at most 1 in the L2 norm. Words whose weight plus Gaussian noise passes a threshold are named. Words that
only one document holds are named with probability delta / 2 at most (Gopi et al., "Differentially Private Set Union",
ICML 2020). Weights lie on a grid of 2^-20, and the noise is drawn exactly on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tertulia._arrays import Array
from tertulia.privacy.mechanisms import EventData, Mechanism, whole_numbers
from tertulia.privacy.mechanisms.gaussian import sigma_for

if TYPE_CHECKING:
    from tertulia.privacy.noise import NoiseStream

BITS = 20  # of the grid of weights


@dataclass(frozen=True)
class WordUnion(Mechanism):
    """Weights of words, in steps of the grid, thresholded under noise: 1 for words that may be named.

    >>> round(WordUnion("words", epsilon=3.0, delta=1e-6, words_per_document=100).threshold, 2)
    9.2
    """

    epsilon: float = field(kw_only=True)
    delta: float = field(kw_only=True)
    words_per_document: int = field(kw_only=True)
    sensitivity: float = field(default=1.0, kw_only=True)
    name: ClassVar[str] = "word-union"

    @cached_property
    def sigma(self) -> float:
        """The deviation of the noise; half of delta is for the threshold."""
        return sigma_for(self.epsilon, self.delta / 2, rounds=1)

    @cached_property
    def threshold(self) -> float:
        """The weight above which a word is named: t words of one new document all stay below with high probability."""
        normal, least = NormalDist(), -math.inf
        for t in range(1, self.words_per_document + 1):
            rest = -math.expm1(math.log1p(-self.delta / 2) / t)  # 1 - (1 - delta / 2)^(1 / t)
            least = max(least, 1 / math.sqrt(t) - self.sigma * normal.inv_cdf(rest))
        return least

    def charge(self) -> EventData:
        """Return Gaussian noise on all weights, and the chance that a word of one document is named."""
        gaussian = {"type": "GaussianDpEvent", "noise_multiplier": self.sigma}
        failure = {"type": "EpsilonDeltaDpEvent", "epsilon": 0.0, "delta": self.delta / 2}
        return {"type": "ComposedDpEvent", "events": [gaussian, failure]}

    def params(self) -> dict[str, Any]:
        """Return epsilon, delta, and the number of words that count in a document."""
        return {"epsilon": self.epsilon, "delta": self.delta, "words_per_document": self.words_per_document}

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """Add noise to the weights, and compare with the threshold."""
        steps = Fraction(self.sigma) * 2**BITS
        noisy = whole_numbers(x, self.what) + noise.gaussian(x.size, steps).reshape(x.shape)
        return np.asarray(noisy > math.ceil(self.threshold * 2**BITS)).astype(np.uint8)


def word_weights(words: Array, documents: Array, size: int, words_per_document: int) -> Array:
    """Sum the weights of words, in steps of the grid [size]; a document's first distinct words count.

    `words` [N] are tokens, `documents` [D + 1] the offsets of documents.
    """
    weights = np.zeros(size, np.int64)
    for start, stop in pairwise(documents.tolist()):
        distinct = np.unique(words[start:stop])
        distinct = distinct[distinct >= 0][:words_per_document]
        if len(distinct):
            weights[distinct] += math.floor(2**BITS / math.sqrt(len(distinct)))
    return weights
