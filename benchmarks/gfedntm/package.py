"""Seconds per epoch against the package contextualized-topic-models 2.6.1, on the same data with the same batch size.

The package has no ProdLDA of its own; its ZeroShotTM with the bag of words in the embedding's place is one. It trains
in its own `fit`, and after each of its epochs we train one: trainers take turns in one process, so a machine that slows
down does so for both. Ratios are of CPU seconds on one thread; `wall_speedup` is of wall-clock seconds with all cores
for torch, and as many processes for the package's loader, as is its default. Losses are computed from both models by
one function after as many epochs.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from benchmarks.common import newsgroups, say
from benchmarks.neural.autograd import divergence, encode
from tertulia._arrays import F32, I64
from tertulia.corpus import Corpus, Vocabulary
from tertulia.models.neural.architecture import Kind, Sizes
from tertulia.models.neural.backprop import EPS
from tertulia.models.neural.bags import Bags, Noise, Schedule
from tertulia.models.neural.network import Network
from tertulia.models.neural.prodlda import prior_of
from tertulia.models.neural.training import Progress, train

WORDS, TOPICS, BATCH, WIDTH = 5000, 50, 64, 384
RATE = 2e-3  # the package's
DROPOUT = 0.2  # both trainers'
SCORED = 32 * BATCH  # documents


class Posterior(NamedTuple):
    """What a model makes of some documents, as `loss` reads it."""

    mean: Tensor  # [B, K]
    log_variance: Tensor
    prior_mean: Tensor  # [K]
    prior_log_variance: Tensor
    beta: Tensor  # [K, V]


def speedups(quick: bool) -> dict[str, Any] | None:
    """Return ratios of seconds, and both losses after the same number of epochs; None without the package."""
    try:
        from contextualized_topic_models.models import ctm
    except ModuleNotFoundError:
        say("the package is not installed: pip install --no-deps contextualized-topic-models==2.6.1")
        say("(without its dependencies: its torchvision does not fit a CPU build of torch)")
        return None
    corpus = documents(3200 if quick else 18_000)
    vectors = np.random.default_rng(0).normal(size=(corpus.n_documents, WIDTH)).astype(np.float32) / WIDTH**0.5
    rivals: list[tuple[Kind, Any]] = [("prodlda", ctm.ZeroShotTM), ("combinedtm", ctm.CombinedTM)]
    return {kind: compare(kind, rival, corpus, vectors, 12 if quick else 5) for kind, rival in rivals}


def documents(limit: int) -> Corpus:
    """Return newsgroup posts over the most frequent words."""
    corpus = newsgroups()
    frequent = np.sort(np.argsort(-corpus.document_frequency(), kind="stable")[:WORDS])
    corpus = corpus.encode(Vocabulary(tuple(corpus.vocabulary.words[v] for v in frequent)))
    full = np.flatnonzero(corpus.lengths > 0)
    return corpus.select(np.random.default_rng(0).permutation(full)[:limit])


def compare(kind: Kind, rival: Any, corpus: Corpus, vectors: F32, epochs: int) -> dict[str, float]:
    """Compare both trainers on one thread, and again on all cores."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = Race(kind, corpus, vectors).run(rival, epochs, 0, time.process_time)
        torch.set_num_threads(os.cpu_count() or 1)
        wall = Race(kind, corpus, vectors).run(rival, 3, os.cpu_count() or 1, time.perf_counter)
    finally:
        torch.set_num_threads(before)
    found = alone | {"wall_speedup": wall["speedup"]}
    say(f"{kind}: {found}")
    return found


class Race:
    """Our trainer of one kind, its data, and the same data for the package."""

    def __init__(self, kind: Kind, corpus: Corpus, vectors: F32) -> None:
        V, D = len(corpus.vocabulary), corpus.n_documents
        ones = np.ones(corpus.n_tokens, np.float32)
        self.bow = sparse.csr_matrix((ones, corpus.words, corpus.documents), shape=(D, V), copy=True)
        self.bow.sum_duplicates()  # in place: without a copy it would scramble the corpus
        self.context = self.bow.toarray() if kind == "prodlda" else vectors
        self.tokens = dict(enumerate(corpus.vocabulary.words))
        self.network = Network(kind, Sizes(V, TOPICS, 0 if kind == "prodlda" else WIDTH), "batch")
        self.bags = Bags.of(corpus, None if kind == "prodlda" else vectors)
        self.schedule = Schedule.over(D, BATCH, 0)
        self.ours = Progress(self.network.initial_weights(0), self.network.initial_statistics(), 0.0)
        self.seconds: dict[str, list[float]] = {"package": [], "ours": []}

    def run(self, rival: Any, epochs: int, loaders: int, clock: Callable[[], float]) -> dict[str, float]:
        """Let the package fit for some epochs, ours in between; medians of seconds, and losses."""
        from contextualized_topic_models.datasets.dataset import CTMDataset

        race = self

        class Rival(rival):  # type: ignore[misc]
            def _train_epoch(self, loader: Any) -> Any:
                started = clock()
                result = super()._train_epoch(loader)
                race.seconds["package"].append(clock() - started)
                race.epoch(clock)
                return result

        torch.manual_seed(0)
        theirs = Rival(
            bow_size=len(self.tokens), contextual_size=self.context.shape[1], n_components=TOPICS, batch_size=BATCH,
            lr=RATE, num_epochs=epochs, num_data_loader_workers=loaders,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs.fit(CTMDataset(self.context, self.bow, self.tokens), do_train_predictions=False)
        # The first epoch compiles, or loads what was compiled.
        medians = {name: float(np.median(times[1:])) for name, times in self.seconds.items()}
        return {
            "speedup": medians["package"] / medians["ours"], "epoch_seconds": medians["ours"],
            "package_epoch_seconds": medians["package"], "loss": self.loss(self.posterior),
            "package_loss": self.loss(partial(self.posterior_of, theirs.model.train())),
        }  # fmt: skip

    def epoch(self, clock: Callable[[], float]) -> None:
        """Run one epoch of ours."""
        first = len(self.seconds["ours"]) * self.schedule.batches
        started = clock()
        steps = range(first, first + self.schedule.batches)
        self.ours = train(self.network, self.ours, self.bags, self.schedule, steps, RATE)
        self.seconds["ours"].append(clock() - started)

    def posterior(self, chosen: I64) -> Posterior:
        """Return our model's posterior of some documents."""
        network, weights = self.network, self.network.tensors(self.ours.weights)
        inputs = network.inputs(self.bags.select(chosen), Noise(1, int(chosen[0])))
        raw = encode(weights, inputs)
        mean, log_variance = functional.batch_norm(raw, None, None, training=True, eps=EPS).chunk(2, dim=1)
        return Posterior(mean, log_variance, *prior_of(weights, network.sizes, mean), weights["beta"])

    def posterior_of(self, model: Any, chosen: I64) -> Posterior:
        """Return the posterior of the package's model."""
        bow, context = (torch.from_numpy(part) for part in (self.bow[chosen].toarray(), self.context[chosen]))
        mean, log_variance = model.get_posterior(bow, context)
        return Posterior(mean, log_variance, model.prior_mean, model.prior_variance.log(), model.beta)

    @torch.no_grad()
    def loss(self, posterior: Callable[[I64], Posterior]) -> float:
        """Return the training objective of the first documents: with dropout, a draw of theta, and norms of batches."""
        noise, total = torch.Generator().manual_seed(0), 0.0
        for start in range(0, SCORED, BATCH):
            chosen = np.arange(start, start + BATCH)
            given = posterior(chosen)
            normal = torch.randn(given.mean.shape, generator=noise)
            kept = (torch.rand(given.mean.shape, generator=noise) >= DROPOUT) / (1.0 - DROPOUT)
            theta = torch.softmax(given.mean + torch.exp(0.5 * given.log_variance) * normal, dim=1) * kept
            logits = functional.batch_norm(theta @ given.beta, None, None, training=True, eps=EPS)
            counts = torch.from_numpy(self.bow[chosen].toarray())
            total -= float((counts * torch.log_softmax(logits, dim=1)).sum())
            total += float(divergence(*given[:4]).sum())
        return total / SCORED
