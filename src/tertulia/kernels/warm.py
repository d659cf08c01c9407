"""Compile every kernel into the on-disk cache, so that no later run waits: `python -m tertulia.kernels.warm`."""

from __future__ import annotations

import itertools
import time
from typing import Any, get_args

import numpy as np

from tertulia.kernels import lda
from tertulia.kernels.lda import fold_in


def compile_all() -> float:
    """Run every kernel once on a few tokens; return the seconds that it took (well under one, once all are cached)."""
    start = time.perf_counter()
    words, documents = np.array([0, 1, 1, 2], dtype=np.int32), np.array([0, 3, 4])
    state = lda.init(words, documents, V=3, K=4, alpha=0.1, beta=0.01, key=1)
    learn: dict[str, Any] = {"learn_alpha": True, "learn_beta": True, "learn_every": 1}
    for sampler, phi in itertools.product(lda.SAMPLERS, get_args(lda.Phi)):
        state, _ = lda.run(words, documents, state, 1, 2, sampler, phi=phi, monitor=True, **learn)
    topics = lda.topic_word(state)
    lda.init_from_topics(words, documents, topics, 0.1, 0.01, key=3)
    lda.train(words, documents, 3, 4, 0.1, 0.01, 0, 4, start=topics)
    lda.train(words, documents, 3, 2_000, 0.1, 0.01, 0, 4)  # so many that a document has few of them
    for dtype in (np.float32, np.float64):
        fold_in.theta(words, documents, topics.astype(dtype), 0.1)
    return time.perf_counter() - start


if __name__ == "__main__":
    print(f"kernels ready after {compile_all():.1f} s")
