"""A sweep of `blocked` in plain Python: the probability of every topic that a token may get, and of every outcome."""

from itertools import pairwise, product

import numpy as np


class Sweep:
    """What stands still for a sweep, and what for a block."""

    def __init__(self, cells, alpha, beta):
        self.alpha, self.beta, self.V = alpha, beta, len(cells)
        self.pull = alpha / (cells.sum(axis=0) + self.V * beta)
        self.sums = cells @ self.pull
        self.begin_block(cells)

    def collapsed(self, w, old, cdk):
        """The same of collapsed Gibbs, but for counts of words that stand still for a block."""
        own, _, _ = self.parts(w, old, cdk + self.alpha)
        return own / own.sum(), own.sum()

    def begin_block(self, cells):
        self.cells, self.topics = cells.astype(float), cells.sum(axis=0).astype(float)

    def parts(self, w, old, cdk):
        """The weights of topics [K] by the document's own, and the sums of the two parts with alpha; cdk without it."""
        V, beta = self.V, self.beta
        cw, ck = self.cells[w].copy(), self.topics.copy()
        cw[old] -= 1
        ck[old] -= 1
        return cdk * (cw + beta) / (ck + V * beta), max(self.sums[w] - self.pull[old], 0.0), self.pull.sum() * beta

    def chances(self, w, old, cdk):
        """The probability of each topic [K], and what all weights add up to."""
        own, rest, floor = self.parts(w, old, cdk)
        whole = own.sum() + rest + floor
        row = self.pull * self.cells[w]
        refused = self.pull[old] / row.sum()  # the own count was drawn: try again, sixteen times
        row[old] -= self.pull[old]
        from_row = row / row.sum() * (1 - refused**16) if row.sum() > 1e-12 else np.zeros_like(row)
        from_row[old] += refused**16 if row.sum() > 1e-12 else 1.0
        return (own + rest * from_row + floor * self.pull / self.pull.sum()) / whole, whole

    def document(self, words, z, new, collapsed=False):
        """The probability that a document's topics z become `new`, and its log likelihood on the way."""
        cdk, p, logs = np.bincount(z, minlength=len(self.alpha)).astype(float), 1.0, 0.0
        for w, old, drawn in zip(words, z, new, strict=True):
            cdk[old] -= 1
            chance, whole = (self.collapsed if collapsed else self.chances)(w, old, cdk)
            p, logs = p * chance[drawn], logs + np.log(whole)
            cdk[drawn] += 1
        return p, logs - len(words) * np.log(len(words) - 1 + self.alpha.sum())


def count(words, z, V, K):
    cells = np.zeros((V, K))
    np.add.at(cells, (words, z), 1)
    return cells


def outcomes(words, documents, z, V, alpha, beta, collapsed=False, others=0.0):
    """The probability of all topics [K^N] after a sweep whose blocks are documents; token i is digit i.

    `others` [V, K] are counts of somebody else.
    """
    K = len(alpha)
    sweep, ends = Sweep(count(words, z, V, K) + others, alpha, beta), {tuple(z): 1.0}
    for start, stop in pairwise(documents):
        after = {}
        for now, p in ends.items():
            sweep.begin_block(count(words, np.array(now), V, K) + others)
            for new in product(range(K), repeat=stop - start):
                end = (*now[:start], *new, *now[stop:])
                chance, _ = sweep.document(words[start:stop], now[start:stop], new, collapsed)
                after[end] = after.get(end, 0.0) + p * chance
        ends = after
    law = np.zeros(K ** len(words))
    for end, p in ends.items():
        law[sum(k * K**i for i, k in enumerate(end))] = p
    return law
