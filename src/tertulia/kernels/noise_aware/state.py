"""The state of a chain of noise-aware LDA, its counts, and the Phi and priors that follow from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core.checks import check_alpha, check_beta
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits, gamma
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.options import Learning, Phi
from tertulia.kernels.lda.phi import NO_TOTALS, draw_phi, mean_phi, mean_totals


class AwareState(NamedTuple):
    """The state of a chain. A background token, whose report is taken for noise, has topic and word -1."""

    z: I32  # [N] topic of each token
    word: I32  # [N] word each token is taken to have, one that its report names
    cwk: I32  # [V, K] tokens of word w in topic k, background tokens left out
    ck: I64  # [K]
    alpha: F64  # [K]
    beta: float | F64  # the prior of words, one number or [V]


def empty_state(z: I32, word: I32, V: int, alpha: F64, beta: float | F64) -> AwareState:
    """Make a state in which nothing counts yet."""
    K = len(alpha)
    return AwareState(z, word, np.zeros((V, K), dtype=np.int32), np.zeros(K, dtype=np.int64), alpha, beta)


def count_state(z: I32, word: I32, state: AwareState) -> AwareState:
    """Return the state with topics z [N] and words, and their counts."""
    V, K = state.cwk.shape
    cells = word[z >= 0].astype(np.int64) * K + z[z >= 0]
    cwk = np.bincount(cells, minlength=V * K).reshape(V, K).astype(np.int32)
    ck = cwk.sum(axis=0, dtype=np.int64)
    return AwareState(z, word, cwk, ck, check_alpha(state.alpha, K), check_prior(state.beta, V))


def spread(topic_word: Array) -> F32:
    """Transpose topics [K, V] to [V, padded K] for samplers, every topic of mass 1."""
    K, V = topic_word.shape
    phi = np.zeros((V, padded_width(K)), dtype=np.float32)
    phi[:, :K] = (topic_word / np.maximum(topic_word.sum(axis=1, keepdims=True), np.finfo(float).tiny)).T
    return phi


def current_phi(state: AwareState, others: I32 | None, how: Phi, key: np.uint64, threads: int) -> tuple[F32, F64]:
    """Return phi [V, padded K] for a sweep: drawn from its posterior, or the mean of it with its `phi.mean_totals`."""
    _, _, cwk, ck, _, beta = state
    if others is not None:
        cwk = cwk + others
        ck = cwk.sum(axis=0, dtype=np.int64)
    totals = NO_TOTALS if how == "draw" else mean_totals(ck, np.broadcast_to(beta, cwk.shape[:1]).sum())
    if isinstance(beta, float):
        return draw_phi(cwk, ck, beta, key, threads) if how == "draw" else mean_phi(cwk, ck, beta), totals
    phi = np.zeros((cwk.shape[0], padded_width(cwk.shape[1])), dtype=np.float32)
    if how == "draw":
        _draw_rows(cwk, beta, key, phi)
    else:
        phi[:, : cwk.shape[1]] = cwk + beta[:, None]
    phi[:, : cwk.shape[1]] /= phi[:, : cwk.shape[1]].sum(axis=0, dtype=np.float64)
    return phi, totals


def fit_priors(documents: I64, z: I32, state: AwareState, learning: Learning) -> AwareState:
    """Fit alpha to topics z, and beta to the state's counts if it is one number."""
    if not isinstance(state.beta, float):
        alpha, _ = learning._replace(beta=False).fit(documents, z, state.alpha, 0.0, lambda: (state.cwk, state.ck))
        return state._replace(alpha=alpha)
    alpha, beta = learning.fit(documents, z, state.alpha, state.beta, lambda: (state.cwk, state.ck))
    return state._replace(alpha=alpha, beta=beta)


def check_prior(beta: float | Array, V: int) -> float | F64:
    """Check the prior of words, one number or [V]; [V] must sum to 1 at least, or draws could all be 0."""
    if np.ndim(beta) == 0:
        return check_beta(float(beta))
    prior = np.array(beta, dtype=np.float64)
    if prior.shape != (V,) or not (np.all(np.isfinite(prior)) and np.all(prior > 0) and prior.sum() >= 1):
        raise InputError(f"beta has shape {prior.shape}: give a positive number for each of the {V} words, 1 in sum")
    return prior


@kernel
def _draw_rows(cwk: I32, beta: F64, key: np.uint64, phi: F32) -> None:
    """Draw Gamma(C_wk + beta_w) variates."""
    K = cwk.shape[1]
    for w in range(cwk.shape[0]):
        for k in range(K):
            phi[w, k] = gamma(cwk[w, k] + beta[w], bits(key, np.uint64(w * K + k)))
