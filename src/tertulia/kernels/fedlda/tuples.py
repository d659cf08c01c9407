"""The tuples (w, k1, k2) by which FedLDA's users report what has changed: chosen, perturbed, added up (algorithms 1-3).

A token's tuple asks the server to move it from topic k1 (-1: it has none yet) to k2. A user pads the list with dummies
to M and sends l of them, chosen uniformly without replacement. The choice is part of the model's randomness; reported
words are drawn from a secret key, by ChaCha20, one block per tuple.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, U64, Array, Bool
from tertulia.kernels.core import alias, parallel
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import uniform
from tertulia.kernels.core.vectors import LANES
from tertulia.kernels.fedlda.sampling import I16
from tertulia.kernels.reports import Channel, reports
from tertulia.kernels.reports.chacha import U32, initial_state, many_tokens, one_token

_WORDS = 8 * LANES  # 64-bit words in sixteen blocks


class SentTuples(NamedTuple):
    """The tuples of a round, in the order of users; their words are still the true ones."""

    token: I64  # [n] the token of the tuple
    user: I32  # [n]
    word: I32  # [n]
    origin: I16  # [n] k1, or -1
    target: I16  # [n] k2


def choose(
    words: Array, documents: Array, z: I16, reported: I16, answering: Array, M: int, sampled: int, key: int | np.uint64,
    threads: int = 1,
) -> SentTuples:  # fmt: skip
    """Pad each answering user's tuples to M and choose l = `sampled` of them: the real ones among those."""
    chosen = np.zeros(len(words), dtype=np.bool_)
    shared = (freeze(documents, np.int64), z, reported, freeze(answering, np.bool_), M, sampled, np.uint64(key), chosen)
    parallel.run(_choose, [(*shared, *cut) for cut in parallel.cuts(documents, threads)], threads)
    token = np.flatnonzero(chosen)
    user = (np.searchsorted(documents, token, side="right") - 1).astype(np.int32)
    return SentTuples(token, user, np.asarray(words)[token], reported[token], z[token])


@kernel
def _choose(
    documents: I64, z: I16, reported: I16, answering: Bool, M: int, sampled: int, key: np.uint64, chosen: Bool,
    first: int, last: int,
) -> None:  # fmt: skip
    """Choose among the real tuples by selection sampling (Knuth, TAOCP 2, algorithm 3.4.2 S); dummies come last."""
    for d in range(first, last):
        if not answering[d]:
            continue
        left, places = M, sampled
        for i in range(documents[d], documents[d + 1]):
            if z[i] != reported[i] and left > 0:
                if uniform(key, np.uint64(i)) * left < places:
                    chosen[i] = True
                    places -= 1
                left -= 1


def add_up(word: Array, origin: I16, target: I16, K: int, V: int) -> I64:
    """Add up the moves of all tuples, [K, V]."""
    total = np.zeros((K, V), dtype=np.int64)
    _add(freeze(word, np.int32), origin, target, total)
    return total


@kernel
def _add(word: I32, origin: I16, target: I16, total: I64) -> None:
    for j in range(word.shape[0]):
        if origin[j] >= 0:
            total[origin[j], word[j]] -= 1
        total[target[j], word[j]] += 1


def perturb_krr(word: I32, epsilon: float, V: int, key: bytes, threads: int = 1) -> I32:
    """Perturb words by k-ary randomised response over all words."""
    return reports(word, Channel("krr", epsilon, V), key, "tuples", threads=threads).idx


def perturb_tkrr(word: I32, union: Bool, epsilon: float, key: bytes, threads: int = 1) -> I32:
    """Perturb words by k-ary randomised response over some words; any other word is reported as one of these."""
    members = np.flatnonzero(union).astype(np.int32)
    place = np.full(len(union), -1, dtype=np.int32)
    place[members] = np.arange(len(members), dtype=np.int32)
    within = place[word]
    if len(members) < 2:
        return np.full(len(word), members[0] if len(members) else 0, dtype=np.int32)
    _draw_missing(initial_state(key), within, len(members))
    return members[reports(within, Channel("krr", epsilon, len(members)), key, "truncated", threads=threads).idx]


@kernel
def _draw_missing(state: U32, place: I32, n: int) -> None:
    """Replace each -1 by a uniform number below n (64 bits: the bias is below 2^-32)."""
    out = np.empty(16 * LANES, dtype=np.uint32)
    for group in range(0, place.shape[0], LANES):
        many_tokens(state, 0, group, out)
        for lane in range(min(LANES, place.shape[0] - group)):
            if place[group + lane] < 0:
                place[group + lane] = min(int(_unit(out, lane, 0) * n), n - 1)


def perturb_rrp(
    sent: SentTuples, documents: Array, z: I16, phi: Array, head: Bool, alpha: Array, eta: float, key: bytes,
    threads: int = 1,
) -> I32:  # fmt: skip
    """Perturb the words of tuples by algorithm 3; phi and head are [K, V]."""
    K, V = phi.shape
    keep, other = np.empty((K, V), dtype=np.float32), np.empty((K, V), dtype=np.int32)
    _topic_tables(np.ascontiguousarray(phi, dtype=np.float64), keep, other)
    reported = sent.word.copy()
    threshold = np.uint64(min(int(eta * 2.0**64), 2**64 - 1))
    shared = (freeze(documents, np.int64), z, sent.user, keep, other, head, freeze(alpha, np.float64), threshold)
    cuts = parallel.cuts(np.arange(len(reported) + 1), threads)
    jobs = [(initial_state(key), *shared, reported, *cut) for cut in cuts]
    parallel.run(_perturb_rrp, jobs, threads)
    return reported


@kernel
def _topic_tables(phi: F64, keep: F32, other: I32) -> None:
    stack = np.empty(phi.shape[1], dtype=np.int32)
    for k in range(phi.shape[0]):
        alias.build(phi[k].copy(), keep[k], other[k], stack)


@kernel
def _perturb_rrp(
    state: U32, documents: I64, z: I16, user: I32, keep: F32, other: I32, head: Bool, alpha: F64, eta: np.uint64,
    reported: I32, start: int, stop: int,
) -> None:  # fmt: skip
    out, sum_alpha = np.empty(16 * LANES, dtype=np.uint32), alpha.sum()
    bounds = np.cumsum(alpha)
    for group in range(start, stop, LANES):
        many_tokens(state, 0, group, out)
        for lane in range(min(LANES, stop - group)):
            if _bits(out, lane, 0) >= eta:  # lines 1-3
                continue
            first, last = documents[user[group + lane]], documents[user[group + lane] + 1]
            u = _unit(out, lane, 1) * (last - first + sum_alpha)
            if u < last - first:  # theta_i is (C_dk + alpha_k) / (n + sum alpha)
                k = int(z[first + int(u)])
            else:
                k = min(np.searchsorted(bounds, u - (last - first), "right"), alpha.shape[0] - 1)
            w = alias.draw(keep[k], other[k], _unit(out, lane, 2))
            if head[k, w]:  # lines 7-10
                reported[group + lane] = w


def answer_hybrid(
    words: Array, documents: Array, z: I16, reported: I16, answering: Array, shape: tuple[int, int], coordinates: int,
    values: I64, thresholds: U64, key: bytes,
) -> I64:  # fmt: skip
    """Answer by the hybrid mechanism: each user reports a few random coordinates of its updates; summed, [K, V].

    `thresholds` [3, n] are the cumulated probabilities of the answers `values` [n] to -1, 0 and 1, times 2^64.
    """
    total = np.zeros(shape, dtype=np.int64)
    users = np.flatnonzero(answering)
    arrays = (freeze(words, np.int32), freeze(documents, np.int64), z, reported, users)
    _answer_hybrid(initial_state(key), *arrays, coordinates, values, thresholds, total)
    return total


@kernel
def _answer_hybrid(
    state: U32, words: I32, documents: I64, z: I16, reported: I16, users: I64, coordinates: int, values: I64,
    thresholds: U64, total: I64,
) -> None:  # fmt: skip
    K, V = total.shape
    out = np.empty(16 * LANES, dtype=np.uint32)
    stream, chosen = out.view(np.uint64), np.empty(coordinates, dtype=np.int64)
    for d in users:
        one_token(state, 0, d, out)
        n, at = 0, 0
        while n < coordinates and at < _WORDS // 2:
            cell = min(int((stream[at] >> np.uint64(11)) * 2.0**-53 * (K * V)), K * V - 1)
            at += 1
            if not (chosen[:n] == cell).any():
                chosen[n] = cell
                n += 1
        for c in range(n):
            k, w, t = chosen[c] // V, chosen[c] % V, 0
            for i in range(documents[d], documents[d + 1]):
                if words[i] == w and z[i] != reported[i]:
                    t += int(z[i] == k) - int(reported[i] == k)
            t = min(max(t, -1), 1)
            j = np.searchsorted(thresholds[t + 1], stream[_WORDS // 2 + c], "right")
            total[k, w] += values[min(j, values.shape[0] - 1)]


@kernel
def _bits(out: U32, lane: int, j: int) -> np.uint64:
    """Return 64-bit word j of a lane's block."""
    return np.uint64(out[2 * j * LANES + lane]) | np.uint64(out[(2 * j + 1) * LANES + lane]) << np.uint64(32)


@kernel
def _unit(out: U32, lane: int, j: int) -> float:
    """Return 64-bit word j of a lane's block as a number in [0, 1)."""
    return (_bits(out, lane, j) >> np.uint64(11)) * 2.0**-53
