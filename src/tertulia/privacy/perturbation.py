"""How FedLDA's users perturb the words of their tuples: RRP and its rivals in one frame, with their exact laws.

Wang, Tong and Shi, "Federated Latent Dirichlet Allocation: A Local Differential Privacy Based Framework", AAAI 2020,
section 5. RRP keeps a word with probability 1 - eta; else it draws one from the user's own topics, and keeps the word
all the same if that lies in a topic's deserted tail. Theorem 1 says (epsilon, 2 delta)-LDP. It is false: a word in no
topic's head is told by itself alone. `real_finding` computes what holds for the model at hand.
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
HM_UNIT = 1 / 128  # of the hybrid mechanism's answers: they must be whole numbers to be summed exactly


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
        """The probability that a word is drawn anew: from the model by RRP, from V words by randomised response."""
        if self.kind == "rrp":
            return 1 / (self.delta * self._delta0() * math.exp(self.epsilon) + 1)  # Theorem 1
        if self.kind in ("krr", "tkrr"):
            return (V - 1) / (math.exp(self.epsilon) + V - 1)
        return 0.0

    def claim(self) -> Claim | None:
        """What the paper says of one tuple."""
        if self.kind == "rrp":
            return Claim(self.epsilon, 2 * self.delta, "FedLDA theorem 1, a tuple")
        return None if self.kind == "none" else Claim(self.epsilon, 0.0, f"FedLDA sec. 6, {_CLAIMED[self.kind]}")

    def coordinates(self, d: int) -> int:
        """How many of d coordinates a user of the hybrid mechanism answers (Wang et al., ICDE 2019, section IV)."""
        return max(1, min(d, int(self.epsilon / 2.5)))

    def _delta0(self) -> float:
        if math.isinf(self.gamma):
            return self.delta
        return self.delta - float((self.delta ** (-1 / self.gamma) + 1) ** -self.gamma)


_CLAIMED = {"krr": "a tuple", "tkrr": "a tuple", "hm": "a round"}


def heads(phi: Array, delta: float) -> Bool:
    """Which words [K, V] lie outside each topic's deserted tail, the longest one of mass delta at most.

    Words that are equally likely are deserted together or not at all, so that no topic deserts a word for its number.
    """
    rising = np.sort(phi, axis=1)
    mass = np.cumsum(rising, axis=1)  # of a word and all that are less likely
    first = (mass <= delta * mass[:, -1:] * (1 + 1e-12)).sum(axis=1, keepdims=True)  # the first word of the head
    return np.asarray(phi >= np.take_along_axis(rising, first, axis=1))


def covered(phi: Array, delta: float) -> Bool:
    """Which words [V] lie in the head of some topic."""
    return np.asarray(heads(phi, delta).any(axis=0))


def law(how: Perturbation, phi: Array, theta: Array) -> F64:
    """P(told v | word w), [V, V] with a row a word, for a user with topic shares theta [K]: Algorithm 3, exactly."""
    V = phi.shape[1]
    if how.kind == "none":
        return np.eye(V)
    if how.kind == "rrp":
        eta, drawn = how.eta(V), cover(how, phi, theta)
        return np.asarray(eta * drawn + (1 - eta * drawn.sum()) * np.eye(V))
    if how.kind == "hm":
        raise ConfigError("the hybrid mechanism perturbs the whole updating vector, not words: see `hybrid`")
    union = covered(phi, how.delta) if how.kind == "tkrr" else np.ones(V, dtype=np.bool_)
    n = int(union.sum())
    eta, inside = how.eta(n), union[:, None] & union
    told = np.where(inside, eta / max(n - 1, 1), np.where(union, 1 / n, 0.0))  # outside the union: any word of it
    told[np.arange(V)[union], np.arange(V)[union]] = 1 - eta
    return np.asarray(told)


def cover(how: Perturbation, phi: Array, theta: Array) -> F64:
    """g(v) = sum_k theta_k phi_k(v) [v in the head of k]: how likely RRP's second draw gives each word, [V]."""
    return np.asarray(theta @ (phi * heads(phi, how.delta)))


def exact(told: Array) -> tuple[float, float]:
    """The smallest epsilon of a law [V, V] at delta = 0, and the least delta that no epsilon can do without."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(told.max(axis=0) > 0, told.max(axis=0) / told.min(axis=0), 1.0)
    never = [told[w][told[other] == 0].sum() for w in range(len(told)) for other in range(len(told))]
    return float(np.log(ratio.max())), float(max(never))


def delta_at(told: Array, epsilon: float) -> float:
    """The delta of a law [V, V] at this epsilon: the largest hockey-stick divergence of two words."""
    gaps = told[:, None] - math.exp(epsilon) * told[None]
    return float(np.maximum(gaps, 0).sum(axis=2).max())


class Finding(NamedTuple):
    """What RRP really guarantees to a word, for one model and one user's topics."""

    epsilon: float  # at delta = 0
    delta: float  # at the claimed epsilon
    uncovered: int  # words in no topic's head
    broken: int  # words whose own epsilon exceeds the claimed one


def real_finding(how: Perturbation, phi: Array, theta: Array) -> Finding:
    """RRP's true cost for any V, in closed form: epsilon(v) = ln(1 + keep / (eta g(v))).

    >>> phi = np.array([[0.5, 0.25, 0.12, 0.07, 0.04, 0.02], [0.12, 0.25, 0.5, 0.07, 0.04, 0.02]])
    >>> real_finding(Perturbation("rrp", 7.5), phi, np.array([0.5, 0.5]))[:3]
    (inf, 0.9507..., 2)
    """
    eta, drawn = how.eta(phi.shape[1]), cover(how, phi, theta)
    keep = 1 - eta * float(drawn.sum())
    with np.errstate(divide="ignore"):
        epsilon = np.log1p(keep / (eta * drawn))
    told = keep + eta * drawn.min() * (1 - math.exp(how.epsilon))
    return Finding(float(epsilon.max()), max(0.0, told), int((drawn == 0).sum()), int((epsilon > how.epsilon).sum()))


class Hybrid(NamedTuple):
    """The hybrid mechanism's answers to -1, 0 and 1, in units of HM_UNIT."""

    values: I64  # [n]
    probability: F64  # [3, n]


def hybrid(epsilon: float) -> Hybrid:
    """Wang et al. (ICDE 2019), section III: the piecewise mechanism, or else Duchi's, on a grid so that sums are whole.

    Answers are cells of the piecewise density, two units wide, and two atoms. A cell's masses are integrals of
    densities whose ratio is e^epsilon at most, so theirs is too; the middle of each cell stands for it.
    """
    half = math.exp(epsilon / 2)
    C = (half + 1) / (half - 1)
    reach = math.ceil(C / (2 * HM_UNIT))
    edges = np.arange(-reach, reach + 1, dtype=np.float64) * (2 * HM_UNIT)
    duchi = 1 / half if epsilon > 0.61 else 1.0  # 0.61 is their epsilon*
    rows = []
    for t in (-1.0, 0.0, 1.0):
        left = (C + 1) / 2 * t - (C - 1) / 2
        inner = _overlap(edges, left, left + C - 1) * half / (half + 1) / (C - 1)
        outer = (_overlap(edges, -C, left) + _overlap(edges, left + C - 1, C)) / (half + 1) / (C + 1)
        up = (math.expm1(epsilon) * t + math.exp(epsilon) + 1) / (2 * math.exp(epsilon) + 2)
        rows.append(np.concatenate([(1 - duchi) * (inner + outer), duchi * np.array([1 - up, up])]))
    atom = round((math.exp(epsilon) + 1) / math.expm1(epsilon) / HM_UNIT)
    middles = 2 * np.arange(-reach, reach) + 1
    return Hybrid(np.concatenate([middles, [-atom, atom]]).astype(np.int64), np.array(rows))


def _overlap(edges: F64, low: float, high: float) -> F64:
    return np.asarray(np.maximum(0.0, np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)))
