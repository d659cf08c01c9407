"""Parties with topics that they share and topics of their own, and the model that made them."""

from collections.abc import Sequence

import numpy as np
import polars as pl

import tertulia as tt
from helpers.planted import word_list

V, K = 60, 6  # topic k owns the words 10k ... 10k+9
WORDS = word_list(V)
SHARED = {"a": [0, 1, 2, 3], "b": [0, 1, 2, 4], "c": [0, 1, 5]}  # 0, 1 all; 2 a and b; 3, 4 and 5 one each
YEARS = {"by": "year", "since": "2024", "until": "2026"}


def model() -> tt.Topics:
    topics = np.full((K, V), 0.0005)
    for k in range(K):
        topics[k, 10 * k : 10 * k + 10] = 1.0
    return tt.Topics(topics / topics.sum(axis=1, keepdims=True), tt.Vocabulary(tuple(WORDS)))


def texts(topics: list[int], n: int, seed: int = 0) -> list[str]:
    """Documents of one topic each, in turn, all parties' alike but for the topics."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS[10 * k : 10 * k + 10], 30)) for k in (topics[i % len(topics)] for i in range(n))]


def dated(topics: list[int], dates: Sequence[str | None], seed: int = 0) -> pl.DataFrame:
    """Documents with their dates."""
    return pl.DataFrame({"text": texts(topics, len(dates), seed), "date": dates})


def parties(n: int = 48) -> dict[str, list[str]]:
    return {name: texts(topics, n, seed) for seed, (name, topics) in enumerate(SHARED.items())}
