"""Compile all kernels into numba's cache beside the sources, so that no later run waits.

`python -m tertulia.cli.precompile`
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from typing import Any, get_args

import numpy as np

from tertulia.api.federated import FTM, PCTD, Consensus, FedLDA, GFedNTM
from tertulia.corpus.inputs import as_corpus
from tertulia.kernels import lda
from tertulia.kernels.lda import fold_in
from tertulia.kernels.lda.options import Learning, Phi
from tertulia.metrics import completion, top_words_sparse, topic_coherence


def main() -> None:
    """Run each kernel once: the samplers by themselves, all else through federations of two tiny parties."""
    started = time.monotonic()
    warnings.simplefilter("ignore")  # toy parties have toy topics
    _run_samplers()
    texts = {"north": ["rain falls on rivers", "rivers rise"] * 10, "south": ["rain fills lakes", "lakes rise"] * 10}
    model = FTM(topics=2, rounds=2, sweeps=2, vocabulary={"max_share": 1.0}).fit(texts, heldout=0.3)
    for method in _methods({"mode": "public", "words": model.vocabulary.words}):
        method.fit(texts, heldout=0.3)
    corpus = as_corpus("north", texts["north"]).encode(model.vocabulary)
    for measure in ("npmi", "umass", "c_v"):
        topic_coherence(model, corpus, measure, top=2)
    for dtype in (np.float32, np.float64):  # of topics, as methods give them
        topics = model.topic_word.astype(dtype)
        top_words_sparse(topics, 2)
        completion(topics, 0.1, corpus)
    print(f"kernels ready after {time.monotonic() - started:.1f} s")


def _run_samplers() -> None:
    """Every sampler, start and fold-in of LDA, on a few tokens."""
    words, documents = np.array([0, 1, 1, 2], dtype=np.int32), np.array([0, 3, 4])
    state = lda.init(words, documents, V=3, K=4, alpha=0.1, beta=0.01, key=1)
    learning = Learning(alpha=True, beta=True, every=1)
    for sampler, phi in product(lda.SAMPLERS, get_args(Phi)):
        state, _ = lda.run(words, documents, state, 1, 2, sampler, learning, phi=phi, monitor=True)
    topics = lda.topic_word(state)
    lda.init_from_topics(words, documents, topics, 0.1, 0.01, key=3)
    lda.train(words, documents, 3, 4, 0.1, 0.01, 0, 4, start=topics)
    lda.train(words, documents, 3, 2, 0.1, 0.01, 4, 4, learning=learning)
    for dtype in (np.float32, np.float64):
        for infer in (fold_in.theta, fold_in.settle):
            infer(words, documents, topics.astype(dtype), 0.1)


def _methods(public: dict[str, Any]) -> Iterator[Any]:
    """Every method in the modes, channels and samplers that have kernels of their own."""
    small: dict[str, Any] = {"topics": 2, "rounds": 2, "sweeps": 2, "vocabulary": public}
    for kind, mode in product(("lda", "sentence"), ("paper", "sound")):
        yield FTM(**small, mode=mode, model=kind, epsilon=8.0)
    for channel, sampler in product(("krr", "subset", "laplace"), ("gibbs", "dense", "warp")):
        if channel == "krr" or sampler in ("gibbs", "dense"):  # the others are for reports of one word each
            yield FTM(**small, mode="sound", channel=channel, sampler=sampler, epsilon=8.0)
    yield Consensus(**small)
    for mode in ("clear", "paper"):
        yield PCTD(topics=2, rounds=2, mode=mode, vocabulary=public)
    users: dict[str, Any] = {"topics": 2, "rounds": 1, "vocabulary": public}
    for mechanism in ("rrp", "krr", "tkrr", "hm"):
        sampler = "mh" if mechanism == "rrp" else "gibbs"
        yield FedLDA(**users, mode="paper", mechanism=mechanism, epsilon=3.0, sampler=sampler)
    yield FedLDA(**users, mode="sound", epsilon=3.0)
    if find_spec("torch"):
        neural: dict[str, Any] = {"topics": 2, "epochs": 1, "batch_size": 8, "hidden": (4, 4), "vocabulary": public}
        for precision, normalisation in product(("float32", "float64"), ("sync", "batch", "layer")):
            yield GFedNTM(**neural, precision=precision, normalisation=normalisation)
        yield GFedNTM(**neural, averaging="fedavg")


if __name__ == "__main__":
    main()
