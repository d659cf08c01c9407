"""Compile all kernels into numba's cache beside the sources, so that no later run waits.

`python -m tertulia.cli.precompile`
"""

from __future__ import annotations

import itertools
import time
from importlib.util import find_spec
from typing import Any, get_args

import numpy as np

from tertulia.api.federated import FTM, PCTD, FedLDA, GFedNTM
from tertulia.corpus.inputs import as_corpus
from tertulia.kernels import lda
from tertulia.kernels.lda import fold_in
from tertulia.kernels.lda.options import Learning, Phi
from tertulia.metrics import topic_coherence


def main() -> None:
    """Run each kernel once: the samplers by themselves, the metrics through a federation of two tiny parties."""
    started = time.monotonic()
    _run_samplers()
    texts = {"north": ["rain falls on rivers", "rivers rise"] * 10, "south": ["rain fills lakes", "lakes rise"] * 10}
    small: dict[str, Any] = {"topics": 2, "rounds": 2, "sweeps": 2}
    model = FTM(**small, vocabulary={"max_share": 1.0}).fit(texts, heldout=0.3)
    public = {"mode": "public", "words": model.vocabulary.words}
    for kind in ("lda", "sentence"):
        for mode in ("paper", "sound"):
            FTM(**small, mode=mode, model=kind, epsilon=8.0, vocabulary=public).fit(texts)
    for mode in ("clear", "paper"):
        PCTD(topics=2, rounds=2, mode=mode, vocabulary=public).fit(texts)
    for mechanism in ("rrp", "krr", "tkrr", "hm"):
        sampler = "mh" if mechanism == "rrp" else "gibbs"
        FedLDA(
            topics=2, rounds=1, mode="paper", mechanism=mechanism, epsilon=3.0, sampler=sampler, vocabulary=public
        ).fit(texts)
    if find_spec("torch"):
        GFedNTM(topics=2, epochs=1, batch_size=8, averaging="fedavg", vocabulary=public).fit(texts)
    corpus = as_corpus("north", texts["north"]).encode(model.vocabulary)
    for measure in ("npmi", "umass", "c_v"):
        topic_coherence(model, corpus, measure, top=2)
    print(f"kernels ready after {time.monotonic() - started:.1f} s")


def _run_samplers() -> None:
    """Every sampler, start and fold-in of LDA, on a few tokens."""
    words, documents = np.array([0, 1, 1, 2], dtype=np.int32), np.array([0, 3, 4])
    state = lda.init(words, documents, V=3, K=4, alpha=0.1, beta=0.01, key=1)
    learning = Learning(alpha=True, beta=True, every=1)
    for sampler, phi in itertools.product(lda.SAMPLERS, get_args(Phi)):
        state, _ = lda.run(words, documents, state, 1, 2, sampler, learning, phi=phi, monitor=True)
    topics = lda.topic_word(state)
    lda.init_from_topics(words, documents, topics, 0.1, 0.01, key=3)
    lda.train(words, documents, 3, 4, 0.1, 0.01, 0, 4, start=topics)
    lda.train(words, documents, 3, 2_000, 0.1, 0.01, 0, 4)  # so many that a document has few of them
    for dtype in (np.float32, np.float64):
        fold_in.theta(words, documents, topics.astype(dtype), 0.1)


if __name__ == "__main__":
    main()
