"""Compile all kernels into numba's cache beside the sources, so that no later run waits.

`python -m tertulia.cli.precompile`
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

from tertulia.api.federated import FTM, PCTD, FedLDA, GFedNTM
from tertulia.corpus.inputs import as_corpus
from tertulia.kernels.warm import compile_all
from tertulia.metrics import topic_coherence


def main() -> None:
    """Run each kernel once: the samplers by themselves, the metrics through a federation of two tiny parties."""
    started = time.monotonic()
    compile_all()
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


if __name__ == "__main__":
    main()
