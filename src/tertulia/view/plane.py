"""Topics in a plane, for the maps of plots and pages: Hellinger distances and multidimensional scaling."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64, Array

_STEPS = 200  # of SMACOF


def hellinger(topic_word: Array) -> F64:
    """Compute the Hellinger distances of topics, [K, K]: 0 for the same words, 1 for none in common."""
    roots = np.sqrt(topic_word.astype(np.float64))
    overlap = np.clip(roots @ roots.T, 0.0, 1.0)
    distances: F64 = np.sqrt(1.0 - overlap)
    np.fill_diagonal(distances, 0.0)
    return distances


def to_plane(distances: F64) -> F64:
    """Find positions [K, 2] with similar distances: classical scaling, then steps of SMACOF."""
    K = len(distances)
    centred = distances**2 - (distances**2).mean(axis=0)
    values, vectors = np.linalg.eigh(-0.5 * (centred - centred.mean(axis=1, keepdims=True)))
    places: F64 = np.zeros((K, 2))
    found = min(K, 2)
    places[:, :found] = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :found]
    places *= np.sign(places[np.abs(places).argmax(axis=0), range(2)])  # the sign of an eigenvector is arbitrary
    for _ in range(_STEPS):
        now = _between(places)
        ratio = np.divide(distances, now, out=np.zeros_like(now), where=now > 1e-12)
        places = (ratio.sum(axis=1, keepdims=True) * places - ratio @ places) / K
    return places


def _between(places: F64) -> F64:
    return np.asarray(np.linalg.norm(places[:, None] - places[None], axis=2))


def faithful_or_none(distances: F64, places: F64) -> float | None:
    """Return the correlation of distances in the plane with the true ones; None for too few topics."""
    pairs = np.triu_indices(len(distances), 1)
    true, drawn = distances[pairs], _between(places)[pairs]
    if len(true) < 3 or true.std() < 1e-9 or drawn.std() < 1e-9:
        return None
    return float(np.corrcoef(true, drawn)[0, 1])
