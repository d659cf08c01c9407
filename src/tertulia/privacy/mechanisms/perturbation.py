"""The perturbation of words in FedLDA's tuples: RRP and its rivals, and what they really guarantee.

Wang, Tong and Shi, "Federated Latent Dirichlet Allocation: A Local Differential Privacy Based Framework", AAAI 2020,
section 5. RRP keeps a word with probability 1 - eta; else it draws one from the user's own topics, and keeps the word
all the same if that lies in a topic's deserted tail. Theorem 1 says (epsilon, 2 delta)-LDP. It is false: a word in no
topic's head is reported by itself alone. `real_finding` computes what holds for the model at hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from tertulia._arrays import F64, I64, Array, Bool
from tertulia.errors import ConfigError
from tertulia.privacy.mechanisms import Claim

Kind = Literal["none", "rrp", "krr", "tkrr", "hm"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_LARGEST = 40.0
HYBRID_GRID = 1 / 128  # of the hybrid mechanism's answers: they must be whole multiples to be summed exactly


@dataclass(frozen=True)
class Perturbation:
    """A mechanism and its parameters; gamma is Theorem 1's, infinite unless said (delta0 is then delta).

    >>> round(Perturbation("rrp", 7.5).eta(V=3309), 4)
    0.0524
    """

    kind: Kind
    epsilon: float = math.inf
    delta: float = 0.1
    gamma: float = math.inf

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"mechanism = {self.kind!r}: choose one of {', '.join(KINDS)}")
        if self.kind != "none" and not 0 < self.epsilon <= _LARGEST:
            raise ConfigError(f"epsilon = {self.epsilon}: it must be positive, and {_LARGEST:g} at most")
        if not 0 < self.delta < 1:
            raise ConfigError(f"delta = {self.delta}: the mass of a topic's deserted tail lies between 0 and 1")
        if not self.gamma >= 1:
            raise ConfigError(f"gamma = {self.gamma}: theorem 1 needs at least 1")

    def eta(self, V: int) -> float:
        """Return the probability that a word is redrawn: from the model by RRP, from V words by randomised response."""
        if self.kind == "rrp":
            return 1 / (self.delta * self._delta0() * math.exp(self.epsilon) + 1)  # Theorem 1
        if self.kind in ("krr", "tkrr"):
            return (V - 1) / (math.exp(self.epsilon) + V - 1)
        return 0.0

    def claim(self) -> Claim | None:
        """Return the paper's claim for one tuple."""
        if self.kind == "rrp":
            return Claim(self.epsilon, 2 * self.delta, "FedLDA theorem 1, per tuple")
        return None if self.kind == "none" else Claim(self.epsilon, 0.0, f"FedLDA sec. 6, {_CLAIMED[self.kind]}")

    def coordinates(self, d: int) -> int:
        """Return how many of d coordinates a user of the hybrid mechanism answers (Wang et al., ICDE 2019, sec. IV)."""
        return max(1, min(d, int(self.epsilon / 2.5)))

    def _delta0(self) -> float:
        if math.isinf(self.gamma):
            return self.delta
        return self.delta - float((self.delta ** (-1 / self.gamma) + 1) ** -self.gamma)


_CLAIMED = {"krr": "per tuple", "tkrr": "per tuple", "hm": "per round"}


def heads(phi: Array, delta: float) -> Bool:
    """Find the words [K, V] outside each topic's deserted tail, the longest tail of mass delta at most.

    Words that are equally likely are deserted together or not at all, so that no topic deserts a word for its number.
    """
    rising = np.sort(phi, axis=1)
    mass = np.cumsum(rising, axis=1)  # of a word and all that are less likely
    first = (mass <= delta * mass[:, -1:] * (1 + 1e-12)).sum(axis=1, keepdims=True)  # the first word of the head
    return np.asarray(phi >= np.take_along_axis(rising, first, axis=1))


def words_in_heads(phi: Array, delta: float) -> Bool:
    """Find the words [V] in the head of some topic."""
    return np.asarray(heads(phi, delta).any(axis=0))


def redraw_probability(how: Perturbation, phi: Array, theta: Array) -> F64:
    """Compute g(v) = sum_k theta_k phi_k(v) [v in the head of k]: a word's probability in RRP's second draw [V]."""
    return np.asarray(theta @ (phi * heads(phi, how.delta)))


class Finding(NamedTuple):
    """RRP's real guarantee for a word, for one model and one user's topics."""

    epsilon: float  # at delta = 0
    delta: float  # at the claimed epsilon
    outside: int  # words in no topic's head
    broken: int  # words whose own epsilon exceeds the claimed one


def real_finding(how: Perturbation, phi: Array, theta: Array) -> Finding:
    """Compute RRP's true cost for any V, in closed form: epsilon(v) = ln(1 + keep / (eta g(v))).

    >>> phi = np.array([[0.5, 0.25, 0.12, 0.07, 0.04, 0.02], [0.12, 0.25, 0.5, 0.07, 0.04, 0.02]])
    >>> [round(float(found), 4) for found in real_finding(Perturbation("rrp", 7.5), phi, np.array([0.5, 0.5]))[:3]]
    [inf, 0.9507, 2.0]
    """
    eta, drawn = how.eta(phi.shape[1]), redraw_probability(how, phi, theta)
    keep = 1 - eta * float(drawn.sum())
    with np.errstate(divide="ignore"):
        epsilon = np.log1p(keep / (eta * drawn))
    delta = max(0.0, keep + eta * drawn.min() * (1 - math.exp(how.epsilon)))
    return Finding(float(epsilon.max()), delta, int((drawn == 0).sum()), int((epsilon > how.epsilon).sum()))


def finding_text(how: Perturbation, phi: Array, shares: F64, once: bool) -> str:
    """Say what the mechanism really guarantees for a word, with this model. The text is part of the charge's id."""
    V = phi.shape[1]
    if how.kind == "hm":
        return f"the whole updating vector: epsilon {how.epsilon:g} in each round"
    whose = "the word of one token alone, drawn once" if once else "the word of one tuple alone, drawn anew each time"
    if how.kind == "krr":
        return f"{whose}: epsilon {how.epsilon:g}"
    if how.kind == "tkrr":
        named = int(words_in_heads(phi, how.delta).sum())
        return f"{whose}: epsilon {how.epsilon:g}; {named} of {V} words are ever reported"
    true = real_finding(how, phi, shares)
    epsilon = "no epsilon" if math.isinf(true.epsilon) else f"epsilon {true.epsilon:.1f}"
    return (
        f"theorem 1 fails for {true.broken} of {V} words, {true.outside} are in no topic's head; {whose}, of a user "
        f"with average topics: {epsilon} at delta 0, delta {true.delta:.3f} at the claimed epsilon"
    )


class Hybrid(NamedTuple):
    """The hybrid mechanism's answers to -1, 0 and 1, as multiples of HYBRID_GRID."""

    values: I64  # [n]
    probability: F64  # [3, n]


def hybrid_answers(epsilon: float) -> Hybrid:
    """Return the piecewise mechanism, or Duchi's, on a grid so that sums are whole (Wang et al., ICDE 2019, sec. III).

    Answers are cells of the piecewise density, two grid steps wide, and two atoms. A cell's masses are integrals of
    densities whose ratio is e^epsilon at most, so theirs is too; the middle of each cell stands for it.
    """
    half = math.exp(epsilon / 2)
    C = (half + 1) / (half - 1)
    reach = math.ceil(C / (2 * HYBRID_GRID))
    edges = np.arange(-reach, reach + 1, dtype=np.float64) * (2 * HYBRID_GRID)
    duchi = 1 / half if epsilon > 0.61 else 1.0  # 0.61 is their epsilon*
    rows = []
    for t in (-1.0, 0.0, 1.0):
        left = (C + 1) / 2 * t - (C - 1) / 2
        inner = _overlap(edges, left, left + C - 1) * half / (half + 1) / (C - 1)
        outer = (_overlap(edges, -C, left) + _overlap(edges, left + C - 1, C)) / (half + 1) / (C + 1)
        up = (math.expm1(epsilon) * t + math.exp(epsilon) + 1) / (2 * math.exp(epsilon) + 2)
        rows.append(np.concatenate([(1 - duchi) * (inner + outer), duchi * np.array([1 - up, up])]))
    atom = round((math.exp(epsilon) + 1) / math.expm1(epsilon) / HYBRID_GRID)
    middles = 2 * np.arange(-reach, reach) + 1
    return Hybrid(np.concatenate([middles, [-atom, atom]]).astype(np.int64), np.array(rows))


def _overlap(edges: F64, low: float, high: float) -> F64:
    return np.asarray(np.maximum(0.0, np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)))
