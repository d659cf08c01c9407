"""Parties whose documents are made from planted topics, of which no party holds all."""

import numpy as np

import tertulia as tt
from helpers.planted import word_list
from tertulia.metrics import match

V, K = 60, 6  # topic k owns the words 10k ... 10k+9
WORDS = word_list(V)
BAR = 0.9  # mean cosine with the planted topics; fixed before the first run


def planted() -> np.ndarray:
    topics = np.full((K, V), 0.001)
    for k in range(K):
        topics[k, 10 * k : 10 * k + 10] = np.linspace(2, 1, 10)
    return topics / topics.sum(axis=1, keepdims=True)


def party(rng: np.random.Generator, topics: list[int], documents: int) -> list[str]:
    """Documents of 60 words over some of the planted topics."""
    phi, texts = planted(), []
    for _ in range(documents):
        theta = rng.dirichlet(np.full(len(topics), 0.2))
        z = rng.choice(topics, size=60, p=theta)
        texts.append(" ".join(WORDS[rng.choice(V, p=phi[k])] for k in z))
    return texts


def recovered(model: tt.Topics) -> float:
    order = [model.vocabulary.index[word] for word in WORDS]
    return match(planted(), np.asarray(model.topic_word, float)[:, order])


def three_parties(seed: int) -> dict[str, list[str]]:
    rng = np.random.default_rng(seed)
    return {"a": party(rng, [0, 1, 2], 80), "b": party(rng, [2, 3, 4], 80), "c": party(rng, [4, 5, 0], 80)}
