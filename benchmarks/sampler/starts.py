"""What it gives to find more clusters than topics and to merge those that are alike: the same training, twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.common import say
from benchmarks.sampler.corpora import parts
from benchmarks.sampler.curves import SCORES
from benchmarks.sampler.trainers import ALPHA, BETA
from benchmarks.sampler.worker import score
from tertulia.corpus import Corpus
from tertulia.kernels import lda
from tertulia.kernels.lda import clusters
from tertulia.kernels.lda.options import Learning


def merging(corpus: str, K: int, sweeps: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Means and standard deviations over seeds of trainings from K clusters, and from more that were merged."""
    train, heldout = parts(corpus)
    found = {}
    for name, many in {"plain": K, "merged": clusters.n_clusters(K, train.n_documents)}.items():
        with patch.object(clusters, "n_clusters", return_value=many):
            each = np.array([_scores(train, heldout, K, sweeps, seed) for seed in seeds])
        found[name] = [each.mean(axis=0).round(4).tolist(), each.std(axis=0).round(4).tolist()]
    say(f"{corpus} K = {K}: {found}")
    return found


def _scores(train: Corpus, heldout: Corpus, K: int, sweeps: int, seed: int) -> list[float]:
    V, learning = len(train.vocabulary), Learning(alpha=True)
    state = lda.train(train.words, train.documents, V, K, ALPHA / K, BETA, sweeps, seed, learning=learning)
    found = score(lda.topic_word(state), state.alpha, train, heldout)
    return [found[name] for name in SCORES]
