"""What users are asked to do, the same for all."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from tertulia.federation.types import message
from tertulia.kernels.fedlda.sampling import Sampler
from tertulia.privacy.mechanisms.perturbation import Kind, Perturbation

_WORDED: tuple[Kind, ...] = ("rrp", "krr", "tkrr")  # whose tuples name a word


@message
class UserSettings:
    """What users are asked to do, the same for all."""

    mode: Literal["clear", "paper", "sound"]
    mechanism: Kind
    channel: Literal["krr", "subset"]
    epsilon: float | None
    delta: float
    gamma: float | None  # None: infinite
    sweeps: int
    sampler: Sampler
    alpha: float  # sum of theta's prior
    beta: float
    max_words: int  # M
    sampled: int  # l
    bookkeeping: Literal["converging", "paper"]
    users_per_round: float
    user_dropout: float
    arrival_rounds: int

    def no_laxer(self, epsilon: float | None) -> UserSettings:
        """The same with a shard's own epsilon, if that is stricter."""
        if self.epsilon is None or epsilon is None or epsilon >= self.epsilon:
            return self
        return dataclasses.replace(self, epsilon=epsilon)

    def perturbation(self) -> Perturbation:
        """What happens to words."""
        if self.mode == "clear" or self.epsilon is None:
            return Perturbation("none")
        return Perturbation(self.mechanism, self.epsilon, self.delta, math.inf if self.gamma is None else self.gamma)

    @property
    def drawn_once(self) -> bool:
        """Whether a token has the same word in all its reports: a move then takes back what an earlier one gave."""
        return self.bookkeeping == "converging" and self.perturbation().kind in _WORDED
