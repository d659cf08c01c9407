"""What the fields of messages may hold. A party's door checks every message by these, before data are touched.

Axes of the same name are equally long throughout a message, and `V` is the number of its words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from tertulia._arrays import Array

MOST_COUNT = 2**30  # kernels count in 32 bits, and add a party's own tokens
LEAST_PRIOR, MOST_PRIOR = 1e-20, 1e9  # what kernels take: beyond, 32 bits hold 0 or infinity


@dataclass(frozen=True)
class Numbers:
    """An array's axes by name, the kinds of numbers (NumPy's letters), the least and the most of them."""

    axes: tuple[str, ...]
    kinds: str = "f"
    least: float = -math.inf
    most: float = math.inf


@dataclass(frozen=True)
class Between:
    """A number's bounds."""

    least: float
    most: float


Counts = Annotated[Array, Numbers(("K", "V"), "iuf", 0, MOST_COUNT)]
NoisyCounts = Annotated[Array, Numbers(("K", "V"), "iuf", -MOST_COUNT, MOST_COUNT)]
TopicWord = Annotated[Array, Numbers(("K", "V"), "f", 0, MOST_COUNT)]
OwnTopics = Annotated[Array, Numbers(("K_p", "V"), "f", 0, MOST_COUNT)]  # as many topics as a party has itself
Prior = Annotated[Array, Numbers(("K",), "f", LEAST_PRIOR, MOST_PRIOR)]
Flat = Annotated[Array, Numbers(("n",), "f")]
Pairs = Annotated[Array, Numbers(("2", "*"), "f")]  # a digit is a length, and "*" any
Bytes = Annotated[Array, Numbers(("bytes",), "u")]
Offsets = Annotated[Array, Numbers(("*",), "i", 0)]
Places = Annotated[Array, Numbers(("*",), "iu", 0, MOST_COUNT)]
Fraction = Annotated[float, Between(0, 1)]
