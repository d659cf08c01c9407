"""The synthetic corpora of gFedNTM (sec. 4.1): LDA documents at nodes that share some topics and keep others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64
from tertulia.corpus import Corpus, TextOptions, Vocabulary
from tertulia.corpus.offsets import offsets_of
from tertulia.corpus.report import ReadReport


class Setting(NamedTuple):
    """The sizes of an experiment; those of the paper by default."""

    nodes: int = 5
    words: int = 5000
    topics: int = 50
    shared: int = 10  # K'
    eta: float = 0.01
    training: int = 10_000  # documents per node
    validation: int = 1_000


class Synthetic(NamedTuple):
    """Documents and the truth about them."""

    parties: dict[str, Corpus]
    validation: Corpus  # of all nodes
    beta: F64  # [K, V]
    theta: F64  # [validation documents, K]


def synthetic(setting: Setting, seed: int) -> Synthetic:
    """Draw topics and documents: alpha = 50 / K, lengths uniform in 150..250."""
    random = np.random.default_rng(seed)
    beta = dirichlet(random, setting.eta, setting.topics, setting.words)
    private = np.array_split(np.arange(setting.shared, setting.topics), setting.nodes)
    vocabulary = Vocabulary(tuple(f"term{v}" for v in range(setting.words)))
    parties, held, thetas = {}, [], []
    for node, own in enumerate(private):
        topics = np.concatenate((np.arange(setting.shared), own))
        n = setting.training + setting.validation
        theta = np.zeros((n, setting.topics))
        theta[:, topics] = dirichlet(random, 50.0 / setting.topics, n, len(topics))
        corpus = _documents(random, theta, beta, vocabulary, f"node{node}")
        parties[f"node{node}"] = corpus.select(np.arange(setting.training))
        held.append(corpus.select(np.arange(setting.training, n)))
        thetas.append(theta[setting.training :])
    return Synthetic(parties, Corpus.concatenate(held).encode(vocabulary), beta, np.concatenate(thetas))


def dirichlet(random: np.random.Generator, concentration: float, n: int, size: int) -> F64:
    """Draw symmetric Dirichlet vectors by logarithms of gammas, which do not vanish at small concentrations."""
    logs = np.log(random.gamma(concentration + 1.0, size=(n, size))) + np.log(random.random((n, size))) / concentration
    draws = np.exp(logs - logs.max(axis=1, keepdims=True))
    vectors: F64 = draws / draws.sum(axis=1, keepdims=True)
    return vectors


def _documents(random: np.random.Generator, theta: F64, beta: F64, vocabulary: Vocabulary, name: str) -> Corpus:
    import polars as pl

    lengths = random.integers(150, 251, len(theta))
    words = np.concatenate(
        [random.choice(beta.shape[1], n, p=p) for n, p in zip(lengths, theta @ beta, strict=True)]
    ).astype(np.int32)
    offsets = offsets_of(lengths)
    table = pl.DataFrame({"id": [f"{name}/{d}" for d in range(len(theta))]})
    return Corpus(words, offsets, offsets, offsets, vocabulary, table, TextOptions(), ReadReport())
