"""Private Metropolis-Hastings (iFTM, algorithms 1 and 2): draws in O(1), acceptance in O(entries of the unit).

Every unit gets a document proposal (17, 23) and then a word proposal for each of its words (20, 25), accepted with
probability min(1, p(z') q(z) / (p(z) q(z'))). The papers print the ratio upside down in (21, 26), and right in (18, 24)
and in the expanded forms (19, 22, 27, 28). The hats take the unit out of C^DK.

With `fresh` off, proposals are the papers': alias tables built once a sweep from the counts, and q is what a table was
built from, never the live counts. Such a table remembers the very topic that is to be redrawn, so that the chain is off
the posterior by an amount that falls as one over a document's length and a word's count. With `fresh` on, a document
proposal is the live topic of another unit of the document, or one drawn from alpha, and the tables of words are built
from the Phi drawn for the sweep: neither knows the unit's own topic, and the chain is exact at the same cost.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tertulia.arrays import F32, F64, I32, I64, Bool
from tertulia.kernels import alias, blocks
from tertulia.kernels.compiled import kernel
from tertulia.kernels.private_ahead import Block, block_of, log_likelihood, look_ahead, place
from tertulia.kernels.private_gibbs import Entries, Units
from tertulia.kernels.rng import bits, uniform

_WORDS = 256  # words a block of tables
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
    """Tables of the words that occur, from their log weights [V, K]."""
    V, K = log_weight.shape
    used = np.bincount(words, minlength=V) > 0
    tables = Tables(np.empty((V, K), dtype=np.float32), np.empty((V, K), dtype=np.int32), log_weight)
    jobs = [(tables, used, start, min(start + _WORDS, V)) for start in range(0, V, _WORDS)]
    blocks.run(tables_block, jobs, threads)
    return tables


@kernel
def tables_block(tables: Tables, used: Bool, start: int, stop: int) -> None:
    """Tables of those words start..stop-1 that are used."""
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
    tables: Tables,
    alpha: F64,
    fresh: bool,
    key: np.uint64,
) -> int:
    """Move the topics of documents start..stop-1 in place given log phi [K, V]; return how many changed."""
    block = block_of(units, units.documents[start], units.documents[stop], entries, log_phi)
    keep, other = np.empty(alpha.shape[0], dtype=np.float32), np.empty(alpha.shape[0], dtype=np.int32)
    alias.build(alpha.copy(), keep, other, np.empty(alpha.shape[0], dtype=np.int32))
    prior = Prior(alpha, alpha.sum(), keep, other)
    _propose(block, start, stop, z, tables, prior, fresh, key)
    look_ahead(block)
    cdk = np.zeros(alpha.shape[0], dtype=np.int64)
    changed = 0
    for d in range(start, stop):
        first, last = units.documents[d], units.documents[d + 1]
        cdk[:] = 0
        for u in range(first, last):
            cdk[z[u]] += 1
        stale = cdk.copy()
        for u in range(first, last):
            old = z[u]
            cdk[old] -= 1
            if fresh:
                new = _by_document_fresh(block, u, first, last, z, prior, bits(key, _DOCUMENT))
            else:
                new = _by_document(block, u, cdk, stale, alpha, bits(key, _DOCUMENT))
            z[u] = _by_words(block, u, new, tables, cdk, alpha, bits(key, _WORD))
            cdk[z[u]] += 1
            changed += z[u] != old
    return changed


@kernel
def _propose(
    block: Block, start: int, stop: int, z: I32, tables: Tables, prior: Prior, fresh: bool, key: np.uint64
) -> None:
    """Fill the places of all units: (17), (23) and (20), (25). A fresh document proposal is but a guess as yet."""
    units, K = block.units, prior.alpha.shape[0]
    keep, other, stack = np.empty(K, dtype=np.float32), np.empty(K, dtype=np.int32), np.empty(K, dtype=np.int32)
    for d in range(start, stop):
        first, last = units.documents[d], units.documents[d + 1]
        if not fresh and first < last:
            weight = prior.alpha.copy()
            for u in range(first, last):
                weight[z[u]] += 1.0
            alias.build(weight, keep, other, stack)
        for u in range(first, last):
            at, chance = place(block, u), uniform(bits(key, _DOCUMENT), _TWO * np.uint64(u))
            block.topic[at] = z[u]
            block.topic[at + 1] = (
                _another(z, u, first, last, prior, chance) if fresh else alias.draw(keep, other, chance)
            )
            for t in range(units.tokens[u], units.tokens[u + 1]):
                w, chance = units.words[t], uniform(bits(key, _WORD), _TWO * np.uint64(t))
                block.topic[at + 2 + t - units.tokens[u]] = alias.draw(tables.keep[w], tables.other[w], chance)


@kernel
def _by_document(block: Block, u: int, cdk: I64, stale: I64, alpha: F64, key: np.uint64) -> int:
    """The topic of unit u after the document proposal: (18), (19), (24), (27)."""
    at = place(block, u)
    old, new = block.topic[at], block.topic[at + 1]
    p = (cdk[new] + alpha[new]) / (cdk[old] + alpha[old])
    q = (stale[old] + alpha[old]) / (stale[new] + alpha[new])
    return _moved(block, u, old, new, math.log(p * q), uniform(key, _TWO * np.uint64(u) + _ONE))


@kernel
def _by_document_fresh(block: Block, u: int, first: int, last: int, z: I32, prior: Prior, key: np.uint64) -> int:
    """The same with a fresh proposal: q is the prior's part of p, and the two cancel."""
    at = place(block, u)
    new = _another(z, u, first, last, prior, uniform(key, _TWO * np.uint64(u)))
    if block.topic[at + 1] != new:  # the other unit has moved since
        block.topic[at + 1], block.known[at + 1] = new, np.nan
    return _moved(block, u, block.topic[at], new, 0.0, uniform(key, _TWO * np.uint64(u) + _ONE))


@kernel
def _by_words(block: Block, u: int, old: int, tables: Tables, cdk: I64, alpha: F64, key: np.uint64) -> int:
    """The topic of unit u, now `old`, after a proposal from each of its words: (22), (28)."""
    at, first = place(block, u) + 2, block.units.tokens[u]
    for t in range(first, block.units.tokens[u + 1]):
        w, new = block.units.words[t], block.topic[at + t - first]
        log_q = np.float64(tables.log_weight[w, old]) - np.float64(tables.log_weight[w, new])
        log_p = math.log((cdk[new] + alpha[new]) / (cdk[old] + alpha[old]))
        old = _moved(block, u, old, new, log_p + log_q, uniform(key, _TWO * np.uint64(t) + _ONE))
    return old


@kernel
def _moved(block: Block, u: int, old: int, new: int, log_ratio: float, chance: float) -> int:
    """New or old, where log_ratio is that of the priors and proposals, and the whole unit's likelihood is to come."""
    if new == old:
        return old
    log_ratio += log_likelihood(block, u, new) - log_likelihood(block, u, old)
    return new if math.log(chance) < log_ratio else old


@kernel
def _another(z: I32, u: int, first: int, last: int, prior: Prior, chance: float) -> int:
    """A topic with probability ∝ C_dk + alpha_k, unit u left out: that of another unit, or one drawn from alpha."""
    others = last - first - 1
    at = chance * (others + prior.mass)
    if at < others:
        other = first + int(at)
        k: int = z[other + (other >= u)]
        return k
    return alias.draw(prior.keep, prior.other, (at - others) / prior.mass)
