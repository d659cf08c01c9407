"""The exact laws of FedLDA's mechanisms over words, against which code and claims are checked."""

import math

import numpy as np

from tertulia.privacy.mechanisms.perturbation import redraw_probability, words_in_heads


def law(how, phi, theta):
    """P(reported v | word w), [V, V] with a row for each w, for a user with topic shares theta [K]: algorithm 3."""
    V = phi.shape[1]
    if how.kind == "none":
        return np.eye(V)
    if how.kind == "rrp":
        eta, drawn = how.eta(V), redraw_probability(how, phi, theta)
        return eta * drawn + (1 - eta * drawn.sum()) * np.eye(V)
    union = words_in_heads(phi, how.delta) if how.kind == "tkrr" else np.ones(V, dtype=bool)
    n = int(union.sum())
    eta, inside = how.eta(n), union[:, None] & union
    reported = np.where(inside, eta / max(n - 1, 1), np.where(union, 1 / n, 0.0))  # outside the union: any word of it
    reported[np.arange(V)[union], np.arange(V)[union]] = 1 - eta
    return reported


def smallest_epsilon(reported):
    """The smallest epsilon of a law [V, V] at delta = 0, and the least delta that no epsilon can do without."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(reported.max(axis=0) > 0, reported.max(axis=0) / reported.min(axis=0), 1.0)
    never = [reported[w][reported[other] == 0].sum() for w in range(len(reported)) for other in range(len(reported))]
    return float(np.log(ratio.max())), float(max(never))


def delta_at(reported, epsilon):
    """The delta of a law [V, V] at this epsilon: the largest hockey-stick divergence of two words."""
    gaps = reported[:, None] - math.exp(epsilon) * reported[None]
    return float(np.maximum(gaps, 0).sum(axis=2).max())
