"""A tiny method that releases counts of documents under Gaussian noise, which parties share under secure sums."""

import math

import numpy as np

from tertulia.federation import fields
from tertulia.federation.types import Nothing, Planned, message, step
from tertulia.privacy.mechanisms import Claim
from tertulia.privacy.mechanisms.gaussian import sigma_for
from tertulia.privacy.mechanisms.shared_gaussian import SharedGaussian

WHAT, EPSILON, DELTA, BITS = "documents by length", 3.0, 1e-6, 12


@message
class Counts:
    counts: fields.CountChange  # [1, 4] in steps of 2^-12


def noise(shares=1):
    sigma = sigma_for(EPSILON, DELTA, rounds=1)
    return SharedGaussian(
        WHAT, sensitivity=1.0, sigma=sigma, bits=BITS, shares=shares, claimed=Claim(EPSILON, DELTA, "the plan")
    )


@step(doing="counting documents", replies="changes")
def count(party, state, ask: Nothing):
    lengths = np.diff(party.documents().documents)
    counts = np.bincount(np.minimum(lengths // 8, 3), minlength=4)[None] << BITS
    return state, Counts(party.release(counts, noise(party.noise_shares)))


STEPS = (count,)


def plan(config):
    return [Planned(count, "sum", noise(), 1)]


def train(fed, config, state):
    total = fed.sum(count, Nothing())
    fed.commit(total)
    return total.counts / 2.0**BITS


def epsilon_of_shift(shift, noise_multiplier):
    """Balle and Wang's epsilon at DELTA of Gaussian noise, by bisection: an oracle that shares no code."""
    from scipy.special import log_ndtr

    mu, low, high = shift / noise_multiplier, 0.0, 1e4
    for _ in range(200):
        epsilon = (low + high) / 2
        first, second = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
        low, high = (epsilon, high) if math.exp(first) - math.exp(second) > DELTA else (low, epsilon)
    return high
