"""Options and results that all samplers of LDA share: the kind of Phi, when priors are learned, a sweep's facts.

Every call of `run` counts its sweeps from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

from tertulia._arrays import F64, I32, I64
from tertulia.errors import InputError
from tertulia.kernels.lda import priors

Phi = Literal["draw", "mean"]
LearnAlpha = bool | Literal["symmetric"]


class Learning(NamedTuple):
    """A schedule of fitting priors: which ones, and after how many sweeps each time.

    Alpha is [K] numbers, or one for all topics ("symmetric").
    """

    alpha: LearnAlpha = False
    beta: bool = False
    every: int = 10

    @property
    def learns(self) -> bool:
        """Whether any prior is fitted at all."""
        return bool(self.alpha or self.beta)

    def is_due(self, sweep: int) -> bool:
        """Whether priors are fitted after this sweep."""
        return self.learns and (sweep + 1) % self.every == 0

    def stretches(self, sweeps: int) -> list[range]:
        """Return the sweeps between which priors may be fitted; the last stretch may be shorter."""
        return [range(first, min(first + self.every, sweeps)) for first in range(0, sweeps, self.every)]

    def fit(
        self, documents: I64, z: I32, alpha: F64, beta: float, counts: Callable[[], tuple[I32, I64]]
    ) -> tuple[F64, float]:
        """Fit alpha to topics z [N], and beta to counts of words in topics, which are made only if it is learned."""
        if self.alpha:
            alpha = priors.learn_alpha(documents, z, alpha, symmetric=self.alpha == "symmetric")
        if self.beta:
            beta = priors.learn_beta(*counts(), beta)
        return alpha, beta


NEVER = Learning()


class SweepInfo(NamedTuple):
    """Facts about the last sweep of a run; `log_joint` is NaN unless `monitor` was set."""

    changed: int
    log_joint: float


def check_options(
    sampler: str, samplers: tuple[str, ...], phi: str, sweeps: int, threads: int, learning: Learning
) -> None:
    """Raise on options that no sampler takes."""
    if sampler not in samplers:
        raise InputError(f"sampler = {sampler!r}: choose one of {', '.join(samplers)}")
    if phi not in get_args(Phi):
        raise InputError(f"phi = {phi!r}: choose 'draw' (exact) or 'mean' (an approximation)")
    if sweeps < 0:
        raise InputError(f"sweeps = {sweeps}: it cannot be negative")
    if threads < 1 or learning.every < 1:
        raise InputError(f"threads = {threads}, learning every {learning.every} sweeps: both must be at least 1")
