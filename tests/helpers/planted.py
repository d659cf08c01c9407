"""Documents made from known topics, and how well a model has found these."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from tertulia.kernels.core.jit import freeze
from tertulia.kernels.lda import fold_in


class Planted(NamedTuple):
    """Words of documents of equal length, the documents' offsets, and the topics [K, V] that made them."""

    words: np.ndarray
    documents: np.ndarray
    topics: np.ndarray

    def split(self, n):
        """Words and offsets of the first n documents, and of the others."""
        at = self.documents[n]
        rest = self.documents[n:] - at
        return (self.words[:at], self.documents[: n + 1]), (self.words[at:], rest)


def planted(seed, D, length, V, K, alpha) -> Planted:
    """Every token has a topic of its own."""
    generator = np.random.default_rng(seed)
    topics = generator.dirichlet(np.full(V, 0.05), size=K)
    z = np.concatenate([generator.choice(K, size=length, p=p) for p in generator.dirichlet(np.full(K, alpha), size=D)])
    u = generator.random(len(z))
    words = np.empty(len(z), dtype=np.int32)
    for k in range(K):
        words[z == k] = np.searchsorted(topics[k].cumsum(), u[z == k]).clip(max=V - 1)
    return Planted(words, np.arange(0, D * length + 1, length), topics)


def uneven(V, K):
    """Words, offsets and topics at random: common words and rare ones, the last word absent, some documents empty."""
    generator = np.random.default_rng(0)
    documents = np.concatenate([[0], np.cumsum(generator.integers(0, 40, size=300))])
    words = ((V - 1) * generator.random(documents[-1]) ** 3).astype(np.int32)
    z = generator.integers(0, K, size=len(words)).astype(np.int32)
    return freeze(words, np.int32), freeze(documents, np.int64), z


def counts_of(words, z, V, K):
    """How often each word has each topic [V, K], the slow way."""
    cwk = np.zeros((V, K), dtype=np.int32)
    np.add.at(cwk, (words, z), 1)
    return cwk


def overlap(found, truth):
    """The mean of 1 - total variation over the best matching of topics."""
    shared = np.minimum(found[:, None], truth[None]).sum(axis=2)
    return shared[linear_sum_assignment(-shared)].mean()


def completion_perplexity(words, documents, topics, alpha):
    """Of every second token of a document given the others."""
    length = int(documents[1])
    seen, scored = words.reshape(-1, length)[:, ::2], words.reshape(-1, length)[:, 1::2]
    offsets = np.arange(0, seen.size + 1, seen.shape[1])
    theta = fold_in.theta(seen.ravel(), offsets, topics, alpha, threads=2)
    return float(np.exp(-np.log(np.einsum("dk,kdi->di", theta, topics[:, scored])).mean()))


def word_list(V):
    """Made-up words that no tokeniser changes."""
    return [f"word{chr(97 + v // 26)}{chr(97 + v % 26)}" for v in range(V)]


def texts_of(topics, active, seed, D=100, length=50):
    """Texts of some of the topics [K, V], mostly of one or two each."""
    generator, words, texts = np.random.default_rng(seed), word_list(topics.shape[1]), []
    for share in generator.dirichlet(np.full(len(active), 0.1), size=D):
        mixed = share @ topics[active]
        texts.append(" ".join(words[w] for w in generator.choice(len(mixed), size=length, p=mixed)))
    return texts
