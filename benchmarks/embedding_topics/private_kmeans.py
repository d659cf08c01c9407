"""Ideas of others for private k-means, on the same vectors: small implementations of ours, not their code.

| here | after | what is kept of it |
|---|---|---|
| `tree` | Google's differential-privacy library (Chang and Kamath 2021) | a tree of SimHash prefixes, split where noisy counts are large; noisy means of its leaves; k-means on these alone |
| `bounded` | FastLloyd (Diaa, Humphries, Kerschbaum 2024) | centres start far apart; a round sums differences from the centre, clipped to a radius around it |
| `server` | fed-dp-kmeans (Scott, Lampert, Saulpic 2025) | the server has public vectors, projects them on the noisy main directions of the documents, weights them by noisy numbers of nearest documents, clusters these, and does one noisy round |
| `lloyd` | DP-Lloyd (Su et al. 2016) | noisy sums and counts, from a start by k-means of public vectors |

All take unit vectors, one document as the unit (there or not), Gaussian noise in floating point as one server with all
documents would add it. `mu` is the whole of the clusters' budget: squares of mu of all steps add up to mu squared.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tertulia._arrays import F64, I64, Array

_DEPTH, _LEAF = 12, 4.0  # of the tree; a node splits if its count is this many deviations above 0
_ROUNDS, _RADIUS = 4, 0.8


def nearest(X: Array, centres: Array) -> I64:
    """Return the number of the nearest centre."""
    squares = (centres**2).sum(axis=1) - 2.0 * (X @ centres.T)
    found: I64 = squares.argmin(axis=1)
    return found


def kmeans(X: Array, K: int, weights: Array, seed: int, rounds: int = 25) -> F64:
    """Weighted k-means from k-means++; nothing here sees documents but through `X` and `weights`."""
    rng = np.random.default_rng(seed)
    mass = weights / weights.sum()
    centres = X[[rng.choice(len(X), p=mass)]].astype(np.float64)
    for _ in range(1, K):
        distance = ((X[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1) if len(X) < 5_000 else _far(X, centres)
        chance = mass * np.maximum(distance, 1e-12)
        centres = np.vstack((centres, X[rng.choice(len(X), p=chance / chance.sum())]))
    for _ in range(rounds):
        place = nearest(X, centres)
        total = np.bincount(place, weights, K)
        sums = np.zeros_like(centres)
        np.add.at(sums, place, X * weights[:, None])
        centres = np.where(total[:, None] > 0, sums / np.maximum(total, 1e-12)[:, None], centres)
    return centres


def _far(X: Array, centres: Array) -> F64:
    squares: F64 = np.maximum((X**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2.0 * X @ centres.T, 0.0)
    least: F64 = squares.min(axis=1)
    return least


def lloyd(X: Array, K: int, mu: float, rng: np.random.Generator, public: Array) -> F64:
    """DP-Lloyd from a public start: (x, 1) is added to one cluster, an L2 sensitivity of sqrt 2."""
    centres = kmeans(public, K, np.ones(len(public)), 0)
    sigma = np.sqrt(2.0 * _ROUNDS) / mu
    for _ in range(_ROUNDS):
        centres = _means(X, centres, sigma, rng)
    return centres


def _means(X: Array, centres: Array, sigma: float, rng: np.random.Generator) -> F64:
    place = nearest(X, centres)
    sums = np.zeros(centres.shape)
    np.add.at(sums, place, X)
    sums += sigma * rng.normal(size=sums.shape)
    count = np.bincount(place, minlength=len(centres)) + sigma * rng.normal(size=len(centres))
    known = count > sigma * np.sqrt(X.shape[1])  # otherwise the mean is noise alone
    return np.where(known[:, None], _ball(sums / np.maximum(count, 1.0)[:, None]), centres)


def _ball(X: Array) -> F64:
    found: F64 = X / np.maximum(np.linalg.norm(X, axis=-1, keepdims=True), 1.0)
    return found


def bounded(X: Array, K: int, mu: float, rng: np.random.Generator, public: Array) -> F64:
    """FastLloyd's rounds: a document adds its clipped difference from the centre, and counts 1."""
    centres = _apart(K, X.shape[1], rng)
    # clipped differences and counts are each scaled to a sensitivity of 1
    sigma = np.sqrt(2.0 * _ROUNDS) / mu
    for _ in range(_ROUNDS):
        place = nearest(X, centres)
        step = X - centres[place]
        step *= np.minimum(1.0, _RADIUS / np.maximum(np.linalg.norm(step, axis=1), 1e-12))[:, None]
        sums = np.zeros(centres.shape)
        np.add.at(sums, place, step)
        sums += _RADIUS * sigma * rng.normal(size=sums.shape)
        count = np.maximum(np.bincount(place, minlength=K) + sigma * rng.normal(size=K), 1.0)
        moved = sums / count[:, None]
        moved *= np.minimum(1.0, _RADIUS / np.maximum(np.linalg.norm(moved, axis=1), 1e-12))[:, None]
        centres = _ball(centres + moved)
    return centres


def _apart(K: int, d: int, rng: np.random.Generator) -> F64:
    """Points in the ball that are far from each other (sphere packing by trial: the best of many draws)."""
    found: list[F64] = []
    for _ in range(K):
        drawn = rng.normal(size=(200, d))
        drawn *= 0.5 / np.linalg.norm(drawn, axis=1, keepdims=True)
        far = np.min([np.linalg.norm(drawn - c, axis=1) for c in found], axis=0) if found else np.ones(200)
        found.append(drawn[far.argmax()])
    return np.array(found)


def tree(X: Array, K: int, mu: float, rng: np.random.Generator, public: Array) -> F64:
    """Google's tree: noisy counts decide where to split, noisy sums of leaves are the points of a last k-means."""
    counts_mu, sums_mu = np.sqrt(0.3) * mu, np.sqrt(0.7) * mu
    sigma = np.sqrt(_DEPTH) / counts_mu  # a document is in one node of each level
    side = X @ rng.normal(size=(X.shape[1], _DEPTH)) > 0
    nodes, at = [np.arange(len(X))], 0
    leaves: list[I64] = []
    while nodes and at < _DEPTH:
        following: list[I64] = []
        for members in nodes:
            for half in (members[side[members, at]], members[~side[members, at]]):
                noisy = len(half) + sigma * rng.normal()
                (following if noisy > max(_LEAF * sigma, len(X) / (20.0 * K)) and at < _DEPTH - 1 else leaves).append(
                    half
                )
        nodes, at = following, at + 1
    points, weights = [], []
    for members in leaves:
        noise = np.sqrt(2.0) / sums_mu
        count = len(members) + noise * rng.normal()
        if count > _LEAF * noise:
            points.append((X[members].sum(axis=0) + noise * rng.normal(size=X.shape[1])) / count)
            weights.append(count)
    if len(points) < K:
        return _apart(K, X.shape[1], rng)
    return kmeans(_ball(np.array(points)), K, np.array(weights), 0)


def server(X: Array, K: int, mu: float, rng: np.random.Generator, public: Array) -> F64:
    """The start of fed-dp-kmeans from public vectors, and one noisy round after it."""
    part = mu / np.sqrt(3.0)
    outer = X.T @ X
    noise = rng.normal(size=outer.shape) / part
    noisy = outer + np.triu(noise) + np.triu(noise, 1).T
    main = np.linalg.eigh(noisy)[1][:, -min(K, X.shape[1]) :]
    place = nearest(X @ main, public @ main)
    weights = np.maximum(np.bincount(place, minlength=len(public)) + rng.normal(size=len(public)) / part, 0.0)
    centres = _ball(kmeans(public, K, weights + 1e-9, 0))
    return _means(X, centres, np.sqrt(2.0) / part, rng)


KMEANS: dict[str, Callable[[Array, int, float, np.random.Generator, Array], F64]] = {
    "lloyd": lloyd, "tree": tree, "bounded": bounded, "server": server,
}  # fmt: skip
