"""Seconds an epoch against the package contextualized-topic-models 2.6.1, on the same data with the same batch size.

The package has no ProdLDA of its own; its ZeroShotTM with the bag of words in the embedding's place is one. Trainers
take turns in one process on one thread, and CPU seconds are counted, so that a busy machine is no advantage for either.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.common import newsgroups, say
from tertulia.corpus import Corpus, Vocabulary
from tertulia.models.bags import Bags, Schedule
from tertulia.models.network import Kind, Network
from tertulia.models.prodlda import Sizes
from tertulia.models.training import Progress, train

WORDS, TOPICS, BATCH, WIDTH = 5000, 50, 64, 384


def speedups(quick: bool) -> dict[str, Any] | None:
    """Ratios of CPU seconds, and both losses after the same number of epochs; None without the package."""
    try:
        from contextualized_topic_models.models import ctm
    except ModuleNotFoundError:
        say("the package is not installed: pip install --no-deps contextualized-topic-models==2.6.1")
        say("(without its dependencies: its torchvision does not fit a CPU build of torch)")
        return None
    corpus = documents(3200 if quick else 19_000)
    vectors = np.random.default_rng(0).normal(size=(corpus.n_documents, WIDTH)).astype(np.float32) / WIDTH**0.5
    rivals: list[tuple[Kind, Any]] = [("prodlda", ctm.ZeroShotTM), ("combinedtm", ctm.CombinedTM)]
    return {kind: _race(kind, rival, corpus, vectors, 3 if quick else 5) for kind, rival in rivals}


def documents(limit: int) -> Corpus:
    """Newsgroup posts over the most frequent words."""
    corpus = newsgroups()
    frequent = np.sort(np.argsort(-corpus.document_frequency(), kind="stable")[:WORDS])
    corpus = corpus.encode(Vocabulary(tuple(corpus.vocabulary.words[v] for v in frequent)))
    full = np.flatnonzero(corpus.lengths > 0)
    return corpus.select(np.random.default_rng(0).permutation(full)[:limit])


def _race(kind: Kind, rival: Any, corpus: Corpus, vectors: Any, epochs: int) -> dict[str, float]:
    from contextualized_topic_models.datasets.dataset import CTMDataset
    from torch.utils.data import DataLoader

    V = len(corpus.vocabulary)
    bow = sparse.csr_matrix(
        (np.ones(corpus.n_tokens, np.float32), corpus.words, corpus.documents), shape=(corpus.n_documents, V)
    )
    bow.sum_duplicates()
    context = bow.toarray() if kind == "prodlda" else vectors
    dataset = CTMDataset(context, bow, dict(enumerate(corpus.vocabulary.words)))
    theirs = rival(bow_size=V, contextual_size=context.shape[1], n_components=TOPICS, num_data_loader_workers=0)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, drop_last=True)
    network = Network(kind, Sizes(V, TOPICS, 0 if kind == "prodlda" else WIDTH), "batch")
    bags = Bags.of(corpus, None if kind == "prodlda" else vectors)
    schedule = Schedule.over(bags.n_documents, BATCH, 0)
    ours = Progress(network.start(0), network.resting(), 0.0)
    seconds: dict[str, list[float]] = {"package": [], "ours": []}
    loss = 0.0
    for epoch in range(epochs):
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, loss = theirs._train_epoch(loader)
        seconds["package"].append(time.process_time() - started)
        started = time.process_time()
        steps = range(epoch * schedule.batches, (epoch + 1) * schedule.batches)
        ours = train(network, ours, bags, schedule, steps, theirs.lr)
        seconds["ours"].append(time.process_time() - started)
    medians = {name: float(np.median(times)) for name, times in seconds.items()}
    found = {
        "speedup": medians["package"] / medians["ours"], "epoch_seconds": medians["ours"],
        "package_epoch_seconds": medians["package"], "loss": ours.loss, "package_loss": float(loss),
    }  # fmt: skip
    say(f"{kind}: {found}")
    return found
