"""Test of each mechanism of a plan by itself, with the plan's parameters: many draws on two neighbouring inputs.

A mechanism that adds noise to numbers is fed zeros, and the largest number by which one unit may move one of them. A
channel for words reports one of two words, both on the list, or one off it.
"""

from __future__ import annotations

import math
import secrets
from functools import partial
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64
from tertulia.kernels.reports import Channel, reports_of_documents
from tertulia.operations.audit.tokens import ratio_of
from tertulia.privacy.accounting import guarantee_of
from tertulia.privacy.audit import sequential
from tertulia.privacy.audit.sequential import Draw
from tertulia.privacy.mechanisms import Mechanism, Randomiser
from tertulia.privacy.mechanisms.gaussian import epsilon_of
from tertulia.privacy.mechanisms.sampled_gaussian import SampledGaussian
from tertulia.privacy.mechanisms.shared_gaussian import SharedGaussian
from tertulia.privacy.mechanisms.token_reports import TokenReports
from tertulia.privacy.mechanisms.word_union import BITS as UNION_BITS
from tertulia.privacy.mechanisms.word_union import WordUnion
from tertulia.privacy.noise import NoiseKey, NoiseStream

_CELLS = 20_000_000  # entries of reports that are in memory at a time
_FAR = 2**30
_MOST_ENTRIES = 2e8  # of all reports


class Tested(NamedTuple):
    """What a mechanism claims for one use, and what draws show."""

    claimed: float
    lower_bound: float
    could_have_shown: float
    delta: float
    draws: int


def audit_mechanism(mechanism: Mechanism, delta: float, level: float, most: int) -> Tested | None:
    """Test one mechanism; None if it draws its noise in a way that cannot be tested by itself."""
    one = _one_token(mechanism)
    draws = _draws_of(one)
    tested = [_tested(one, draw, delta, level / len(draws), min(most, _affordable(one))) for draw in draws]
    return max(tested, key=lambda found: found.lower_bound, default=None)


def _tested(one: Mechanism, draw: Draw, delta: float, level: float, most: int) -> Tested:
    charge = one.charge() or {}
    if charge.get("type") == "GaussianDpEvent":
        mu = 1 / float(charge["noise_multiplier"])
        found = sequential.audit(draw, mu, level, most, of="mu")
        claimed, bound, most_shown = (epsilon_of(x, delta) for x in (mu, found.bound, found.could_have_shown))
        return Tested(claimed, bound, most_shown, delta, found.draws)
    pure = guarantee_of(one).epsilon
    at = 0.0 if pure < math.inf else delta
    claimed = guarantee_of(one, at).epsilon
    found = sequential.audit(draw, claimed, level, most, at)
    return Tested(claimed, found.bound, found.could_have_shown, at, found.draws)


def _one_token(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism of a single token for one that charges for a user's."""
    channel = getattr(mechanism, "channel", None)
    return mechanism if channel is None else TokenReports(mechanism.what, channel=channel)


def _affordable(mechanism: Mechanism) -> int:
    """Return how many draws are made at most: reports that name many words take long."""
    return int(_MOST_ENTRIES / mechanism.channel.expected_support()) if isinstance(mechanism, TokenReports) else 1 << 40


def _draws_of(mechanism: Mechanism) -> list[Draw]:
    """Return functions that draw scores on two neighbouring inputs."""
    if isinstance(mechanism, TokenReports):
        return [partial(_draw_reports, mechanism.channel)]
    move = None if isinstance(mechanism, Randomiser) else _farthest_or_none(mechanism)
    if move is None:
        return []
    # A word is named by its noisy weight: as nobody else has it, or as others have nearly enough of it.
    near = [int((mechanism.threshold - 0.5) * 2**UNION_BITS)] if isinstance(mechanism, WordUnion) else []
    return [partial(_draw_sums, mechanism, (base, base + move)) for base in (0, *near)]


def _farthest_or_none(mechanism: Mechanism) -> int | None:
    """Return the largest integer by which one unit may move a single number; None: it feeds on no numbers."""
    try:
        step = mechanism.distance((np.zeros(1, np.int64),), (np.full(1, _FAR, np.int64),)) / _FAR
    except (IndexError, ValueError):
        return None
    return int(mechanism.reach / step) if 0 < step < math.inf else None


def _draw_sums(mechanism: Mechanism, inputs: tuple[int, int], n: int) -> tuple[F64, F64]:
    """Draw n sums with the unit and n without it; with shared noise, that of all who share it."""
    rate = mechanism.rate if isinstance(mechanism, SampledGaussian) else 1.0
    shares = mechanism.shares if isinstance(mechanism, SharedGaussian) else 1
    without, found = inputs[0], list[F64]()
    for size in reversed(inputs):  # with the unit, then without
        if size == 0 and mechanism.grows:  # a word that nobody has is not among those that may be named
            found.append(np.zeros(n))
            continue
        coins = np.random.default_rng(secrets.randbits(128)).random((n, 1)) < rate
        x = np.where(coins, size, without).astype(np.int64)
        total = mechanism.apply(x, _fresh_noise()).astype(np.float64)
        for _ in range(1, shares):
            total = total + mechanism.apply(np.zeros_like(x), _fresh_noise())
        found.append(total[:, 0])
    return found[0], found[1]


def _fresh_noise() -> NoiseStream:
    return NoiseKey.fixed(secrets.token_bytes(32)).stream("audit", "audit", "audit")


def _draw_reports(channel: Channel, n: int) -> tuple[F64, F64]:
    """Draw reports of n tokens that are one word and of n that are another: the log of the likelihood ratio of both."""
    step = max(1, int(_CELLS / max(channel.expected_support(), 1.0)))
    found: tuple[list[F64], list[F64]] = ([], [])
    for first in range(0, n, step):
        size = min(step, n - first)
        for word, scores in enumerate(found):
            keys = np.frombuffer(secrets.token_bytes(32 * size), np.uint32).reshape(size, 8)
            words = np.full(size, word * (channel.V - 1), np.int32)
            made = reports_of_documents(words, np.arange(size + 1), channel, keys)
            scores.append(np.asarray(np.log(ratio_of(made, 0)) - np.log(ratio_of(made, channel.V - 1))))
    return np.concatenate(found[0]), np.concatenate(found[1])
