"""Words that many documents hold, chosen under noise: differentially private set union by the weighted Gaussian.

Each document gives weight 1 / sqrt(n) to its n words, of which at most `words_per_document` count, so it moves the
weights by at most 1 in the L2 norm. Words whose weight plus Gaussian noise passes a threshold are named. Words that
only one document holds are named with probability delta / 2 at most (Gopi et al., "Differentially Private Set Union",
ICML 2020). Weights lie on a grid of 2^-20, and the noise is drawn exactly on it.

A document that becomes another moves the weights of words that both data sets hold by at most 2. Each data set has
words that the other lacks. None of these is named with probability 1 - delta / 2 at least, in both data sets. So that
part of the outcome differs by delta / 2 at most, as if a document was added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tertulia._arrays import Array, Bool
from tertulia.privacy.mechanisms import EventData, Mechanism, norm_between, whole_numbers
from tertulia.privacy.mechanisms.gaussian import sigma_for

if TYPE_CHECKING:
    from tertulia.privacy.noise import NoiseStream

BITS = 20  # of the grid of weights
_CELLS = 1 << 21  # of documents that are processed at a time, times words


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
    grows: ClassVar[bool] = True

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

    def distance(self, one: Sequence[Array], other: Sequence[Array]) -> float:
        """Return the L2 norm of the difference, off the grid; words that one side lacks have weight 0 there."""
        size = max(len(one[0]), len(other[0]))
        weights, others = (np.pad(x, (0, size - len(x))) for x in (one[0], other[0]))
        return math.ldexp(norm_between(weights, others, 2), -BITS)

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """Add noise to the weights, and compare with the threshold."""
        steps = Fraction(self.sigma) * 2**BITS
        noisy = whole_numbers(x, self.what) + noise.gaussian(x.size, steps).reshape(x.shape)
        return np.asarray(noisy > math.ceil(self.threshold * 2**BITS)).astype(np.uint8)


def word_weights(words: Array, documents: Array, size: int, words_per_document: int) -> Array:
    """Sum the weights of words, in steps of the grid [size]; of a document its first distinct words count.

    `words` [N] are tokens, `documents` [D + 1] the offsets of documents. Which words of a document count depends on
    that document alone. The numbers of words depend on all documents, so they must not decide it.
    """
    weights, step = np.zeros(size, np.int64), max(1, _CELLS // max(size, 1))
    places = np.empty(step * size, np.int64)
    for start in range(0, len(documents) - 1, step):
        offsets = documents[start : start + step + 1]
        tokens = words[offsets[0] : offsets[-1]]
        document = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        counts = _first_distinct(document * size + tokens, places)
        before = np.concatenate(([0], np.cumsum(counts)))
        counts &= before[:-1] - before[offsets[:-1] - offsets[0]][document] < words_per_document
        document = document[counts]
        steps = np.floor(2**BITS / np.sqrt(np.maximum(np.bincount(document), 1))).astype(np.int64)
        np.add.at(weights, tokens[counts], steps[document])
    return weights


def _first_distinct(values: Array, places: Array) -> Bool:
    """Mark the first of equal values; `places` is memory for the place of each possible value."""
    order = np.arange(len(values))
    places[values[::-1]] = order[::-1]  # what is written last stays
    return np.asarray(places[values] == order)
