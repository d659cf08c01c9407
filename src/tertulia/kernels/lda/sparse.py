"""Partially collapsed Gibbs (FTM, CIKM 2019, equations 6-7) for many topics, at the cost of those a document holds.

A sweep fixes Phi, either as a draw from its Dirichlet posterior (7) or as the mean of it. Then it draws every topic of
every document (6), theta integrated out. Given Phi, documents are independent, so threads share nothing that changes.

With phi_wk = scale_k (mass_wk + base) fixed within a sweep (see `sparse_phi`), a topic's weight has three parts,
    (C_dk + alpha_k) phi_wk = C_dk phi_wk + alpha_k scale_k mass_wk + alpha_k scale_k base.
The first is zero but for the topics of the document, the second but for those of the word, the third is the same for
all words. So a token costs the shorter of two lists, the document's topics or the word's; the other parts come from
running sums made once per sweep (cf. ESCA, Zaheer et al., AISTATS 2016, and SparseLDA, Yao et al., KDD 2009).

The draw is exact given phi, with theta integrated out and the token's own count removed. Where phi is the posterior
mean (`mean_rows`), that count is part of phi as well. So the old topic is taken out of all three parts and has a weight
of its own,
    (C_dk + alpha_k) (mass_wk - 1 + base) / (C_k - 1 + V beta).

The loop over tokens is not cut into functions: numba counts references in most functions that branch and take arrays,
which took three times as long.
"""

# Million tokens per CPU second on 20 Newsgroups (1.1 M tokens, V = 13,100), phi at its mean, one loaded core, one run
# each; after a warm start, but K = 10,000 from a random one:
#   K             100   300  1000  3000  10,000
#   sparse        8.0   4.6   3.4   2.6     2.3
#   warp           32    26    30    24      22   but a sweep does less: see there
# From a random start sparse is slow at first, for documents then hold many topics (IMDB, K = 100: 4.5; K = 1000: 1.6).

from __future__ import annotations

from typing import Any

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.guide_table import search
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import uniform
from tertulia.kernels.lda.sparse_phi import SCATTER, SHORT, Rows
from tertulia.kernels.lda.word_columns import U16, U32

_PROBE = 2  # looking a topic up in a table costs as much as reading this many entries of a row


def sweep(words: I32, documents: I64, z: I32, rows: Rows, key: np.uint64, threads: int) -> int:
    """Redraw every topic in place given phi; return how many changed."""
    jobs = [(words, documents, first, last, z, rows, key) for first, last in parallel.shares(documents, threads)]
    return sum(parallel.run(sweep_block, jobs, threads))


@kernel
def sweep_block(words: I32, documents: I64, first: int, last: int, z: I32, rows: Rows, key: np.uint64) -> int:
    """Redraw the topics of documents first..last-1: one long loop, see above."""
    starts, topics, mass, upto, tables, slot_topics, slot_mass, scale, base, (floor, guide), alpha, without = rows
    K, is_mean = scale.shape[0], without.shape[0] > 0
    cdk, pull = np.zeros(K, dtype=np.int32), np.zeros(K, dtype=np.float32)  # pull: C_dk scale_k
    held, running = np.empty(K + 1, dtype=np.uint32), np.empty(K + 1)  # held: the document's topics, in any order
    changed = 0
    for d in range(first, last):
        n, total = _collect(z[documents[d] : documents[d + 1]], scale, cdk, pull, held)
        for i in range(documents[d], documents[d + 1]):
            w, old = np.uintp(words[np.uintp(i)]), np.uintp(z[np.uintp(i)])  # unsigned: no check for negative indices
            cdk[old], total = cdk[old] - 1, total - scale[old]
            if cdk[old] == 0:
                n -= 1
                held[np.uintp(_find(held, old))] = held[np.uintp(n)]
            left = cdk[old] * np.float64(scale[old])
            pull[old] = 0.0 if is_mean else left
            start, size = starts[w], starts[w + np.uintp(1)] - starts[w]
            by_word = size <= max(_PROBE * n, SHORT)
            if by_word:
                document, own = _sum_word(topics, mass, start, size, pull, running, old)
            else:
                document, own = _sum_held(slot_topics, slot_mass, tables, w, base, pull, held, n, running, old)
            share = alpha[old] * scale[old] if is_mean else 0.0
            document += (cdk[old] + alpha[old]) * without[old] * max(own + base - 1.0, 0.0) if is_mean else 0.0
            length = np.uintp(size if by_word else n)
            running[length] = document
            rest = base * (total - left + pull[old]) if by_word else 0.0
            word = max((upto[np.uintp(start + size - 1)] if size > 0 else np.float32(0.0)) - share * own, 0.0)
            goal = uniform(key, np.uint64(i)) * (document + rest + word + (floor[K - 1] - share * base))
            if goal < document:
                j = np.uintp(_first_above(running, goal))
                new = old if j == length else np.uintp(topics[np.uintp(start) + j]) if by_word else np.uintp(held[j])
            elif goal < document + rest:
                new = np.uintp(held[np.uintp(_held_at((goal - document) / base, pull, held, n))])
            elif goal < document + rest + word:
                goal -= document + rest
                at = np.uintp(_search(upto, start, size, goal))
                if is_mean and topics[at] == old:
                    at = np.uintp(_search(upto, start, size, _detour(goal, word, upto[at], share * own)))
                new = np.uintp(topics[at])
            else:
                goal = _past(goal - document - rest - word, floor[old], share * base)
                new = np.uintp(search(floor, guide, goal / floor[K - 1])) if base > 0.0 else old
            n = _add(cdk, held, n, new)
            pull[old], pull[new] = left, np.float32(cdk[new]) * scale[new]
            total += scale[new]
            z[np.uintp(i)], changed = new, changed + (new != old)
        _release(cdk, pull, held, n)
    return changed


@kernel
def _collect(z: I32, scale: F32, cdk: I32, pull: F32, held: U32) -> tuple[int, float]:
    """Collect the topics z of a document; return how many it holds and the sum of their pulls."""
    n, total = 0, 0.0
    for k in z:
        if cdk[k] == 0:
            held[n] = k
            n += 1
        cdk[k] += 1
        pull[k] = np.float32(cdk[k]) * scale[k]
        total += scale[k]
    return n, total


@kernel
def _release(cdk: I32, pull: F32, held: U32, n: int) -> None:
    """Clear the arrays of the document."""
    for j in range(n):
        cdk[held[j]], pull[held[j]] = 0, 0.0


@kernel
def _find(held: U32, k: np.uintp) -> int:
    j = 0
    while held[np.uintp(j)] != k:
        j += 1
    return j


@kernel
def _add(cdk: I32, held: U32, n: int, k: np.uintp) -> int:
    """Count a token of topic k; return how many topics the document holds now. Without a branch, see above."""
    held[np.uintp(n)] = k  # no harm if it is held already
    cdk[k] += 1
    held_now: int = n + (cdk[k] == 1)
    return held_now


@kernel
def _sum_word(
    topics: U16, mass: F32, start: int, size: int, pull: F32, running: F64, old: np.uintp
) -> tuple[float, Any]:
    """Compute running sums of C_dk scale_k mass_wk over the word's topics; return their total, and topic old's mass."""
    total, own = 0.0, np.float32(0.0)
    for j in range(size):
        k = np.uintp(topics[np.uintp(start + j)])
        total += pull[k] * mass[np.uintp(start + j)]
        running[np.uintp(j)] = total
        if k == old:
            own = mass[np.uintp(start + j)]
    return total, own


@kernel
def _sum_held(
    slot_topics: U16, slot_mass: F32, tables: I64, w: np.uintp, base: float, pull: F32, held: U32, n: int,
    running: F64, old: np.uintp,
) -> tuple[float, float]:  # fmt: skip
    """Compute running sums of C_dk phi_wk over the document's topics; return their total, and topic old's mass."""
    total, table, mask = 0.0, tables[w], tables[w + np.uintp(1)] - tables[w] - 1
    for j in range(n):
        k = np.int64(held[np.uintp(j)])
        total += pull[np.uintp(k)] * (slot_mass[np.uintp(_slot(slot_topics, slot_mass, table, mask, k))] + base)
        running[np.uintp(j)] = total
    return total, slot_mass[np.uintp(_slot(slot_topics, slot_mass, table, mask, np.int64(old)))]


@kernel
def _slot(slot_topics: U16, slot_mass: F32, table: int, mask: int, k: Any) -> Any:
    """Find the slot of topic k, or a free one."""
    s = (k * SCATTER) & mask
    while slot_mass[np.uintp(table + s)] != 0.0 and slot_topics[np.uintp(table + s)] != k:
        s = (s + 1) & mask
    return table + s


@kernel
def _first_above(running: F64, goal: float) -> int:
    j = 0
    while running[np.uintp(j)] <= goal:
        j += 1
    return j


@kernel
def _held_at(goal: float, pull: F32, held: U32, n: int) -> int:
    """Find the place in held where the running sum of pulls passes `goal`."""
    for j in range(n - 1):
        goal -= pull[held[np.uintp(j)]]
        if goal < 0.0:
            return j
    return n - 1


@kernel
def _search(upto: F32, start: int, size: int, goal: float) -> int:
    """Find the first place of a row whose running sum exceeds `goal`, or its last."""
    low, high = start, start + size - 1
    while low < high:
        middle = (low + high) >> 1
        if upto[np.uintp(middle)] > goal:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _past(goal: float, upto: float, width: float) -> float:
    """Return the goal among running sums, given one without a place that ends at `upto`."""
    return goal + width if goal >= upto - width else goal


@kernel
def _detour(goal: float, whole: Any, upto: Any, width: Any) -> Any:
    """Return another goal for one that fell on an excluded place, which ends at `upto`.

    Goals end at `whole`, so the last part of a row, as long as the place is wide, is out of reach. A goal that falls on
    the place is sent there, or behind the place if that is later. So the place need not be searched for beforehand.
    """
    return goal - (upto - width) + max(whole, upto)
