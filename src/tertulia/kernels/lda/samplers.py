"""Stretches of sweeps, one function for each sampler, which redraws topics z [N] in place, once per random stream.

Arrays that a sampler keeps between sweeps (counts, tokens sorted by word) are made from z at the start of a stretch.
Each function returns how many topics the last sweep changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I32, I64
from tertulia.errors import InputError
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import blocked, gibbs, sparse, warp
from tertulia.kernels.lda.counts import counts, frequency
from tertulia.kernels.lda.phi import draw_phi
from tertulia.kernels.lda.sparse_phi import mean_rows, phi_rows
from tertulia.kernels.lda.word_columns import columns

DENSE_CELLS = 2**27  # V x K up to which counts are a plain array: half a gigabyte
_SWEEP, _PHI = 0, 1  # labels of the random streams within a sweep


class Stretch(NamedTuple):
    """Some sweeps over a corpus."""

    words: I32
    documents: I64
    V: int
    z: I32
    alpha: F64
    beta: float
    streams: list[np.uint64]  # one for each sweep
    phi: str
    threads: int


def _gibbs(stretch: Stretch) -> int:
    words, documents, V, z, alpha, beta, streams, _, _ = stretch
    cwk = counts(words, z, V, len(alpha))
    ck, changed = cwk.sum(axis=0, dtype=np.int64), 0
    for stream in streams:
        changed = gibbs.sweep(words, documents, z, cwk, ck, alpha, beta, derive(stream, _SWEEP))
    return changed


def _blocked(stretch: Stretch) -> int:
    words, documents, V, z, alpha, beta, streams, _, threads = stretch
    counted, changed = blocked.count(words, z, V, len(alpha)), 0
    for stream in streams:
        found = blocked.sweep(words, documents, z, counted, alpha, beta, derive(stream, _SWEEP), threads=threads)
        changed = found.changed
    return changed


def _sparse(stretch: Stretch) -> int:
    words, documents, V, z, alpha, beta, streams, phi, threads = stretch
    by_word, changed = columns(words, V, threads), 0
    if phi == "draw" and V * len(alpha) > DENSE_CELLS:
        raise InputError(f"phi = 'draw' fills {V} words x {len(alpha)} topics: too many, use phi = 'mean' or 'warp'")
    for stream in streams:
        if phi == "draw":
            cwk = counts(words, z, V, len(alpha))
            drawn = draw_phi(cwk, frequency(z, len(alpha)), beta, derive(stream, _PHI), threads)
            rows = phi_rows(drawn, alpha, threads)
        else:
            rows = mean_rows(by_word, z, alpha, beta, threads)
        changed = sparse.sweep(words, documents, z, rows, derive(stream, _SWEEP), threads)
    return changed


def _warp(stretch: Stretch) -> int:
    words, documents, V, z, alpha, beta, streams, _, threads = stretch
    by_word = columns(words, V, threads)
    packed = warp.pack(by_word.places, z, threads)
    ck, changed = frequency(z, len(alpha)), 0
    for stream in streams:
        ck, changed = warp.sweep(documents, by_word, packed, ck, alpha, beta, derive(stream, _SWEEP), threads)
    z[:] = warp.unpack(by_word.places, packed, threads)
    return changed


SAMPLERS: dict[str, Callable[[Stretch], int]] = {
    "gibbs": _gibbs,
    "blocked": _blocked,
    "sparse": _sparse,
    "warp": _warp,
}
