"""Audit of documents: canaries that are there or not, scored on all noisy tables that leave.

The auditor knows everything but the coins and the noise. It asks the recorded questions again, with all canaries, with
none, and with subsets that spell each canary's number in bits. A number of a table that moves only as one canary's
bits say belongs to that canary. The score of a canary is the best linear test of its own numbers. Their noise is
independent, or correlated between tables as what left shows beside what was fed: that finds noise that was used twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I64, Array, Bool
from tertulia.corpus import Corpus
from tertulia.operations.audit.canaries import Planted, join
from tertulia.operations.audit.recording import Noisy, Recording, inputs_of

_RIDGE = 1e-6  # of the covariance, relative


class Own(NamedTuple):
    """The numbers of one release that each belong to one canary."""

    place: I64  # [n] in the flat array
    owner: I64  # [n]
    move: F64  # [n] by which the canary moves it


class Scores(NamedTuple):
    """A score for each canary, normal with mean 0 (not there) or mu (there) and deviation 1 if the noise is."""

    scores: F64
    mu: F64  # by what the inputs show; 0: the canary moves nothing by itself


def directions(recording: Recording, background: Corpus, planted: Planted) -> tuple[list[Array], list[Own]]:
    """Return the inputs of all noisy releases without canaries, and what each canary moves by itself."""
    number = int(planted.owner.max()) + 1
    codes = np.arange(number) + 1

    def fed(there: Bool) -> list[Array]:
        return inputs_of(recording, join(background, planted, there))

    base, whole = fed(np.zeros(number, bool)), fed(np.ones(number, bool))
    moved = [_difference(x, y) for x, y in zip(base, whole, strict=True)]
    places = [np.flatnonzero(one) for one in moved]
    code, clean = [np.zeros(len(p), np.int64) for p in places], [np.ones(len(p), bool) for p in places]
    for bit in range(int(codes[-1]).bit_length()):
        for r, (x, y) in enumerate(zip(base, fed((codes >> bit) & 1 == 1), strict=True)):
            here = _difference(x, y)[places[r]]
            code[r] += (here != 0).astype(np.int64) << bit
            clean[r] &= (here == 0) | (here == moved[r][places[r]])
    kept = [ok & (c <= number) for ok, c in zip(clean, code, strict=True)]
    return base, [
        Own(p[k], c[k] - 1, d[p[k]].astype(np.float64)) for p, k, c, d in zip(places, kept, code, moved, strict=True)
    ]


def _difference(x: Array, y: Array) -> Array:
    """Subtract two inputs; those of other shapes have nothing in common (their number then follows the documents)."""
    return np.zeros(0) if x.shape != y.shape else (y - x).reshape(-1)


def scores_of(
    recording: Recording, others: Sequence[Recording], base: Sequence[Array], own: Sequence[Own], number: int
) -> Scores:
    """Score each canary. `others` are the parties whose noise is in the same sums, if only sums can be read."""
    total, information = np.zeros(number), np.zeros(number)
    for releases in groups(recording.noisy):
        noise = [_noise(recording.noisy[r]) + sum(_noise(other.noisy[r]) for other in others) for r in releases]
        weights = _weights(np.stack(noise))
        moves = np.zeros((len(releases), base[releases[0]].size))
        owner = np.full(base[releases[0]].size, -1, np.int64)
        seen = np.zeros_like(moves)
        for t, r in enumerate(releases):
            moves[t, own[r].place], owner[own[r].place] = own[r].move, own[r].owner
            fed = (recording.noisy[r].fed - base[r]).reshape(-1).astype(np.float64)
            seen[t] = noise[t] + fed
        cells = np.flatnonzero(owner >= 0)
        tested = weights @ moves[:, cells]
        total += np.bincount(owner[cells], (tested * seen[:, cells]).sum(axis=0), number)
        information += np.bincount(owner[cells], (tested * moves[:, cells]).sum(axis=0), number)
    mu = np.sqrt(np.maximum(information, 0.0))
    return Scores(np.divide(total, mu, out=np.zeros(number), where=mu > 0), mu)


def groups(noisy: Sequence[Noisy]) -> list[list[int]]:
    """Group releases of one thing in one shape, whose noise could be the same."""
    found: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for r, one in enumerate(noisy):
        found.setdefault((one.mechanism.what, one.fed.shape), []).append(r)
    return list(found.values())


def _noise(one: Noisy) -> F64:
    """Return what was added; numbers wrap modulo 2^64."""
    return np.asarray((one.left.astype(np.int64) - one.fed.astype(np.int64)).reshape(-1).astype(np.float64))


def _weights(noise: F64) -> F64:
    """Return the inverse covariance of the noise of several releases [T, T], as their numbers show it."""
    covariance = noise @ noise.T / noise.shape[1]
    spread = max(float(np.trace(covariance)) / len(covariance), 1e-300)
    if noise.shape[1] < 50 * len(covariance):  # too few numbers to tell a correlation from chance
        covariance = np.diag(np.diag(covariance))
    return np.asarray(np.linalg.inv(covariance + _RIDGE * spread * np.eye(len(covariance))))
