"""Private Metropolis-Hastings (iFTM, algorithms 1 and 2): draws in O(1), acceptance in O(entries of the unit).

Every unit gets a document proposal (17, 23) and then a word proposal for each of its words (20, 25), accepted with
probability min(1, p(z') q(z) / (p(z) q(z'))). The papers print the ratio upside down in (21, 26), and right in (18, 24)
and in the expanded forms (19, 22, 27, 28). The hats take the unit out of C^DK.

With `fresh` off, proposals are the papers': alias tables built once per sweep from the counts, and q is what a table
was built from, never the live counts. Such a table remembers the very topic that is to be redrawn, so that the chain is
off the posterior: by 0.02 to 0.07 in total variation on toys, less in long documents (tests). With `fresh` on, a
document proposal is the live topic of another unit of the document, or one drawn from alpha, and the tables of words
are built from the Phi drawn for the sweep: neither knows the unit's own topic, and the chain is exact given Phi, for a
fifth more time. Where Phi is a mean, the unit is left out of its likelihood, but not of the tables: use `gibbs` there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, Bool
from tertulia.kernels.core import alias, parallel
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits, uniform
from tertulia.kernels.core.scalars import copy_cells
from tertulia.kernels.ftm_paper.gibbs import Entries, PhiCounts, Units, log_without
from tertulia.kernels.ftm_paper.unit_likelihoods import find, look_ahead, sum_entries

_WORDS = 256  # words in a block of tables
_DOCUMENT, _WORD = np.uint64(0), np.uint64(1)  # labels of the random streams within a sweep
_ONE, _TWO = np.uint64(1), np.uint64(2)


class Tables(NamedTuple):
    """Alias tables of words, and the log weights that they were built from, all [V, K]."""

    keep: F32
    other: I32
    log_weight: F32


class Prior(NamedTuple):
    """Alpha, its sum, and its alias table."""

    alpha: F64  # [K]
    mass: float
    keep: F32  # [K]
    other: I32  # [K]


def word_tables(words: I32, log_weight: F32, threads: int) -> Tables:
    """Build tables of the words that occur, from their log weights [V, K]."""
    V, K = log_weight.shape
    used = np.bincount(words, minlength=V) > 0
    tables = Tables(np.empty((V, K), dtype=np.float32), np.empty((V, K), dtype=np.int32), log_weight)
    jobs = [(tables, used, start, min(start + _WORDS, V)) for start in range(0, V, _WORDS)]
    parallel.run(tables_block, jobs, threads)
    return tables


@kernel
def tables_block(tables: Tables, used: Bool, start: int, stop: int) -> None:
    """Build tables of those words start..stop-1 that are used."""
    stack = np.empty(tables.keep.shape[1], dtype=np.int32)
    for w in range(start, stop):
        if used[w]:
            weight = np.exp((tables.log_weight[w] - tables.log_weight[w].max()).astype(np.float64))
            alias.build(weight, tables.keep[w], tables.other[w], stack)


@kernel
def sweep_block(
    units: Units,
    start: int,
    stop: int,
    z: I32,
    entries: Entries,
    log_phi: F32,
    counted: PhiCounts,
    tables: Tables,
    alpha: F64,
    fresh: bool,
    key: np.uint64,
) -> int:
    """Move the topics of documents start..stop-1 in place given log phi [K, V]; return how many changed."""
    first, last = units.documents[start], units.documents[stop]
    places = 2 * (last - first) + units.tokens[last] - units.tokens[first]  # see look_ahead
    topic, known = np.empty(places, dtype=np.int32), np.empty(places)
    keep, other = np.empty(alpha.shape[0], dtype=np.float32), np.empty(alpha.shape[0], dtype=np.int32)
    alias.build(alpha.copy(), keep, other, np.empty(alpha.shape[0], dtype=np.int32))
    prior = Prior(alpha, alpha.sum(), keep, other)
    _propose(units, start, stop, z, tables, prior, fresh, key, topic)
    look_ahead(units, first, last, entries, log_phi, topic, known)
    if counted.totals.shape[0] > 0:
        _leave_out(units, first, last, z, counted, known)
    return _accept(units, start, stop, z, entries, log_phi, tables, prior, fresh, key, topic, known)


@kernel
def _leave_out(units: Units, first: int, last: int, z: I32, counted: PhiCounts, known: F64) -> None:
    """Set the likelihoods of units first..last-1 in their old topics, at their first places, themselves left out."""
    words, tokens, at = units.words, units.tokens, 0
    for u in range(first, last):
        known[at] = log_without(words, tokens[u], tokens[u + 1], z[u], counted)
        at += 2 + tokens[u + 1] - tokens[u]


@kernel
def _propose(
    units: Units,
    start: int,
    stop: int,
    z: I32,
    tables: Tables,
    prior: Prior,
    fresh: bool,
    key: np.uint64,
    topic: I32,
) -> None:
    """Fill the places: (17), (23) and (20), (25). A fresh document proposal is but a guess as yet."""
    words, tokens, documents = units.words, units.tokens, units.documents
    word_keep, word_other, alpha, K = tables.keep, tables.other, prior.alpha, prior.alpha.shape[0]
    keep, other, stack = prior.keep.copy(), prior.other.copy(), np.empty(K, dtype=np.int32)
    by_document, by_word = bits(key, _DOCUMENT), bits(key, _WORD)
    at = 0
    for d in range(start, stop):
        first, last = documents[d], documents[d + 1]
        if not fresh and first < last:
            weight = alpha.copy()
            for u in range(first, last):
                weight[z[u]] += 1.0
            alias.build(weight, keep, other, stack)
        for u in range(first, last):
            topic[at], chance = z[u], uniform(by_document, _TWO * np.uint64(u))
            if fresh:
                topic[at + 1] = _another(z, u, first, last, prior.mass, keep, other, chance)
            else:
                topic[at + 1] = alias.draw(keep, other, chance)
            at += 2
            for t in range(tokens[u], tokens[u + 1]):
                topic[at] = alias.draw(word_keep[words[t]], word_other[words[t]], uniform(by_word, _TWO * np.uint64(t)))
                at += 1


@kernel
def _accept(
    units: Units,
    start: int,
    stop: int,
    z: I32,
    entries: Entries,
    log_phi: F32,
    tables: Tables,
    prior: Prior,
    fresh: bool,
    key: np.uint64,
    topic: I32,
    known: F64,
) -> int:
    """Let every unit accept or refuse what its places propose, in turn; return how many have moved."""
    words, tokens, documents, log_q = units.words, units.tokens, units.documents, tables.log_weight
    alpha, mass, keep, other = prior.alpha, prior.mass, prior.keep, prior.other
    indptr, idx, value = entries.indptr, entries.idx, entries.value
    by_document, by_word = bits(key, _DOCUMENT), bits(key, _WORD)
    cdk, stale = np.empty(alpha.shape[0]), np.empty(alpha.shape[0])  # units of the document in each topic, + alpha
    at = moved = 0
    for d in range(start, stop):
        copy_cells(alpha, cdk)
        for u in range(documents[d], documents[d + 1]):
            cdk[z[u]] += 1.0
        copy_cells(cdk, stale)
        for u in range(documents[d], documents[d + 1]):
            old, now, t = z[u], z[u], tokens[u]
            first, last = indptr[t - entries.first], indptr[tokens[u + 1] - entries.first]
            cdk[old] -= 1.0
            if fresh:
                chance = uniform(by_document, _TWO * np.uint64(u))
                new = _another(z, u, documents[d], documents[d + 1], mass, keep, other, chance)
                if topic[at + 1] != new:  # the other unit has moved since
                    topic[at + 1], known[at + 1] = new, np.nan
            for j in range(at + 1, at + 2 + tokens[u + 1] - t):
                new = topic[j]
                if new != now:
                    w, by, i = (t + j - at - 2, by_word, t + j - at - 2) if j > at + 1 else (t, by_document, u)
                    log_ratio = _log_ratio(j - at - 1, cdk, stale, log_q, words[w], now, new, fresh)
                    log_ratio += _log_likelihood(topic, known, at, new, idx, value, first, last, log_phi)
                    log_ratio -= _log_likelihood(topic, known, at, now, idx, value, first, last, log_phi)
                    if math.log(uniform(by, _TWO * np.uint64(i) + _ONE)) < log_ratio:
                        now = new
            at += 2 + tokens[u + 1] - t
            cdk[now] += 1.0
            z[u] = now
            moved += now != old
    return moved


@kernel
def _log_ratio(word: int, cdk: F64, stale: F64, log_q: F32, w: int, now: int, new: int, fresh: bool) -> float:
    """Compute the log ratio of priors and proposals: (22), (28), or (19), (27) for a document proposal."""
    if word:
        return math.log(cdk[new] / cdk[now]) + np.float64(log_q[w, now]) - np.float64(log_q[w, new])
    if fresh:
        return 0.0  # q is the prior's part of p
    return math.log(cdk[new] / cdk[now] * stale[now] / stale[new])


@kernel
def _log_likelihood(
    topic: I32, known: F64, at: int, k: int, idx: I32, value: F32, first: int, last: int, log_phi: F32
) -> float:
    """Return the log likelihood of the whole unit in topic k; add it up if `look_ahead` did not."""
    j = find(topic, at, k)
    if math.isnan(known[j]):
        known[j] = sum_entries(idx, value, first, last, log_phi, k)
    total: float = known[j]
    return total


@kernel
def _another(z: I32, u: int, first: int, last: int, mass: float, keep: F32, other: I32, chance: float) -> int:
    """Draw a topic with probability ∝ C_dk + alpha_k, unit u left out: another unit's, or one from alpha."""
    others = last - first - 1
    at = chance * (others + mass)
    if at < others:
        j = first + int(at)
        k: int = z[j + (j >= u)]
        return k
    return alias.draw(keep, other, (at - others) / mass)
