"""`tertulia warm`: compile all kernels in advance and store them on disk."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pkgutil import walk_packages
from typing import Any, get_args

from tertulia.cli.options import AsJson
from tertulia.errors import ConfigError
from tertulia.view import console

_NOWHERE = (
    "nothing can be stored: neither the installation's folder nor a cache in the home directory can be written, so "
    "every start compiles its kernels again. Set NUMBA_CACHE_DIR to a folder that can be written, for this command and "
    "for all later ones, or let who owns the installation run `tertulia warm`"
)
_EVERY = 5.0  # seconds between log lines


def warm(
    as_json: AsJson = False,
) -> None:
    """Compile all kernels in advance, in a minute or two; later runs of all users of this installation load them."""
    from tertulia.kernels.core import jit
    from tertulia.kernels.core.compile_lock import notify_compiled

    folder = jit.folder_or_none()
    if folder is None:
        raise ConfigError(_NOWHERE)
    _import_kernels()
    count = _Count(jit)
    warnings.simplefilter("ignore")  # toy parties have toy topics
    steps = console.Steps("compiling", len(jit.KERNELS), every=_EVERY)
    with steps, notify_compiled(lambda: steps(count.stored(), count.text())):
        run_kernels()
    stored, seconds = count.stored(), count.seconds()
    if as_json:
        facts = {"kernels": len(jit.KERNELS), "stored": stored, "compiled": count.compiled(), "seconds": seconds}
        console.print_json({**facts, "folder": str(folder)})
    else:
        console.line(f"{stored} kernels are on disk, {count.compiled()} of them new, after {seconds:.1f} s")


class _Count:
    """Counter of the kernels on disk, with an estimate of the time left."""

    def __init__(self, jit: Any) -> None:
        self._jit, self._started = jit, time.monotonic()
        self._before = self.stored()

    def stored(self) -> int:
        return sum(map(self._jit.is_stored, self._jit.KERNELS))

    def compiled(self) -> int:
        return self.stored() - self._before

    def seconds(self) -> float:
        return time.monotonic() - self._started

    def text(self) -> str:
        left = len(self._jit.KERNELS) - self.stored()
        return estimate(self.stored(), len(self._jit.KERNELS), self.seconds() / max(self.compiled(), 1) * left)


def estimate(done: int, of: int, seconds: float) -> str:
    """Describe the progress.

    >>> estimate(12, 41, 31.4)
    'kernel 12 of 41, about 30 s left'
    """
    return f"kernel {done} of {of}, about {max(round(seconds, -1), 1):.0f} s left"


def _import_kernels() -> None:
    """Import every module with kernels, so that they can be counted."""
    for room in ("tertulia.kernels", "tertulia.metrics"):
        for module in walk_packages(import_module(room).__path__, f"{room}."):
            if find_spec("torch") or not module.name.startswith("tertulia.kernels.neural"):
                import_module(module.name)


def run_kernels() -> None:
    """Run each kernel once: samplers directly, all others through federations of two tiny parties."""
    import numpy as np

    from tertulia.api.federated import FTM
    from tertulia.corpus.inputs import as_corpus
    from tertulia.metrics import completion, top_words_sparse, topic_coherence

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


def _run_samplers() -> None:
    """Run every sampler, start and fold-in of LDA on a few tokens."""
    import numpy as np

    from tertulia.kernels import lda
    from tertulia.kernels.lda import fold_in
    from tertulia.kernels.lda.options import Learning, Phi

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
    """Yield every method in the modes, channels and samplers that have their own kernels."""
    from tertulia.api.federated import FTM, PCTD, Consensus, FedLDA, GFedNTM, PrivateTopics

    small: dict[str, Any] = {"topics": 2, "rounds": 2, "sweeps": 2, "vocabulary": public}
    for kind, mode in product(("lda", "sentence"), ("paper", "sound")):
        yield FTM(**small, mode=mode, model=kind, epsilon=8.0)
    for channel, sampler in product(("krr", "subset", "laplace"), ("auto", "gibbs", "warp")):
        if channel == "krr" or sampler != "warp":  # which needs reports of one word each
            yield FTM(**small, mode="sound", channel=channel, sampler=sampler, epsilon=8.0)
    yield FTM(**small, mode="paper", epsilon=8.0, sampler="gibbs")
    yield Consensus(**small)
    for mode in ("clear", "paper"):
        yield PCTD(topics=2, rounds=2, mode=mode, vocabulary=public)
    yield PCTD(topics=2, rounds=2, mode="sound", epsilon=8.0, vocabulary=public)
    yield PrivateTopics(topics=2, rounds=1, mode="clear", vocabulary=public)
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
        private: dict[str, Any] = {"topics": 2, "rounds": 1, "hidden": (4, 4), "vocabulary": public, "mode": "doc"}
        for precision in ("float32", "float64"):
            yield GFedNTM(**private, epsilon=8.0, declared_documents=1000, sampling_rate=0.5, precision=precision)
