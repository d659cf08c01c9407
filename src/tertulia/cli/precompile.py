"""Compile all kernels into numba's cache beside the sources, so that no later run waits.

`python -m tertulia.cli.precompile`
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from typing import Any

from tertulia.api.federated import FTM, PCTD, Consensus, FedLDA, GFedNTM
from tertulia.corpus.inputs import as_corpus
from tertulia.kernels.warm import compile_all
from tertulia.metrics import topic_coherence


def main() -> None:
    """Run each kernel once: the samplers by themselves, all else through federations of two tiny parties."""
    started = time.monotonic()
    compile_all()
    texts = {"north": ["rain falls on rivers", "rivers rise"] * 10, "south": ["rain fills lakes", "lakes rise"] * 10}
    model = FTM(topics=2, rounds=2, sweeps=2, vocabulary={"max_share": 1.0}).fit(texts, heldout=0.3)
    for method in _methods({"mode": "public", "words": model.vocabulary.words}):
        method.fit(texts)
    corpus = as_corpus("north", texts["north"]).encode(model.vocabulary)
    for measure in ("npmi", "umass", "c_v"):
        topic_coherence(model, corpus, measure, top=2)
    print(f"kernels ready after {time.monotonic() - started:.1f} s")


def _methods(public: dict[str, Any]) -> Iterator[Any]:
    """Every method in the modes, channels and samplers that have kernels of their own."""
    lda: dict[str, Any] = {"topics": 2, "rounds": 2, "sweeps": 2, "vocabulary": public}
    for kind, mode in product(("lda", "sentence"), ("paper", "sound")):
        yield FTM(**lda, mode=mode, model=kind, epsilon=8.0)
    for channel, sampler in product(("krr", "subset", "laplace"), ("gibbs", "dense", "mh", "warp")):
        if channel == "krr" or sampler in ("gibbs", "dense"):  # the others are for reports of one word each
            yield FTM(**lda, mode="sound", channel=channel, sampler=sampler, epsilon=8.0)
    yield Consensus(**lda)
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
