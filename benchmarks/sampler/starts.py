"""The gain of each part of the start: the same training from clusters, from merged clusters, with general topics.

The last start has no bound on the size of a merged cluster.
"""

from __future__ import annotations

import math
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
from tertulia.kernels.lda import clusters, starts
from tertulia.kernels.lda.options import Learning

STARTS = {  # clusters for each topic; of the topics; the largest cluster, in means
    "clusters": (1, 0.0, 8),
    "merged": (3, 0.0, 8),
    "general": (1, 0.06, 8),
    "both": (3, 0.06, 8),
    "unbounded": (3, 0.06, math.inf),
}


def compare_starts(corpus: str, K: int, sweeps: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Compute means and standard deviations over seeds, by start."""
    train, heldout = parts(corpus)
    found = {}
    for name, (more, general, largest) in STARTS.items():
        with patch.multiple(clusters, _MORE=more, _LARGEST=largest), patch.object(starts, "_GENERAL", general):
            each = np.array([_scores(train, heldout, K, sweeps, seed) for seed in seeds])
        spread = each.std(axis=0, ddof=1) if len(seeds) > 1 else np.zeros(len(SCORES))
        found[name] = [each.mean(axis=0).round(4).tolist(), spread.round(4).tolist()]
    say(f"{corpus} K = {K}: {found}")
    return found


def _scores(train: Corpus, heldout: Corpus, K: int, sweeps: int, seed: int) -> list[float]:
    V, learning = len(train.vocabulary), Learning(alpha=True)
    state = lda.train(train.words, train.documents, V, K, ALPHA / K, BETA, sweeps, seed, learning=learning)
    found = score(lda.topic_word(state), state.alpha, train, heldout)
    return [found[name] for name in SCORES]
