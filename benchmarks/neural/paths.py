"""Milliseconds of one gradient, by hand (`tertulia.models.neural.backprop`) and by torch's autograd, on one core.

Batches of 64 documents of some hundred tokens, two hidden layers of 100. `sync` is the whole of SyncOpt's five
questions for one party. Ways take turns batch by batch, so a machine that slows down does so for all; medians of CPU
time. `ratio` is autograd over by hand: what hand-made gradients are worth.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.common import arguments, finish, say
from benchmarks.neural import autograd
from tertulia._arrays import Array
from tertulia.corpus.offsets import offsets_of
from tertulia.models.neural import sync_batch_norm
from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.bags import Bags, Batch, Noise
from tertulia.models.neural.network import Network

BATCH, BATCHES, WARM = 64, 10, 3
Way = Callable[[Batch, Noise], object]


def documents(V: int, n: int) -> Bags:
    """Return documents of Zipf-distributed words, of 10 to 1,000 tokens."""
    random, rank = np.random.default_rng(0), 1.0 / np.arange(1, V + 1)
    lengths = np.clip(random.lognormal(4.6, 0.7, n), 10, 1000).astype(int)
    counted = [np.unique(random.choice(V, m, p=rank / rank.sum()), return_counts=True) for m in lengths]
    words, counts = (np.concatenate(part) for part in zip(*counted, strict=True))
    offsets = offsets_of(np.array([len(own) for own, _ in counted]))
    return Bags(words, counts.astype(np.float32), offsets, np.arange(n, dtype=np.uint64), None)


def synchronise(network: Network, flat: Array, batch: Batch, noise: Noise) -> Array:
    """Ask the five questions of one party that holds the whole batch."""
    n, statistics, means = float(batch.size), tuple[Array, ...](), tuple[Array, ...]()
    for _ in network.features:
        sums = sync_batch_norm.sum_moments(network, flat, batch, noise, statistics)
        statistics = (*statistics, sync_batch_norm.statistics_of(sums, n))
    for _ in network.features:
        means = (*means, sync_batch_norm.slope_means(network, flat, batch, noise, statistics, means, n))
    return sync_batch_norm.gradient(network, flat, batch, noise, statistics, means, n)[0]


def ways(V: int, K: int) -> dict[str, dict[str, Way]]:
    """Return both ways to a gradient, for each norm."""
    batch = Network("prodlda", Sizes(V, K), "batch")
    layer = Network("prodlda", Sizes(V, K, shifts=True), "layer")
    plain, shifted = batch.initial_weights(0), layer.initial_weights(0)
    return {
        "batch": {
            "by hand": lambda b, noise: batch.gradient(plain, b, noise),
            "autograd": lambda b, noise: autograd.gradient(batch, plain, b, noise, autograd.batch_norm),
        },
        "sync": {
            "by hand": lambda b, noise: synchronise(batch, plain, b, noise),
            "autograd": lambda b, noise: autograd.five_questions(batch, plain, [b], noise),
        },
        "layer": {
            "by hand": lambda b, noise: layer.gradient(shifted, b, noise),
            "autograd": lambda b, noise: autograd.gradient(layer, shifted, b, noise, autograd.layer_norm),
        },
    }


def measure(V: int, K: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return median milliseconds of each way, and their ratio, by norm."""
    bags, both = documents(V, BATCH * BATCHES), ways(V, K)
    times: dict[tuple[str, str], list[float]] = {}
    for turn in range(rounds + WARM):
        batch = bags.select(np.arange(BATCH) + BATCH * (turn % BATCHES))
        for norm, found in both.items():
            for name, way in found.items():
                start = time.process_time()
                way(batch, Noise(0, turn))
                times.setdefault((norm, name), []).append(time.process_time() - start)
    medians = {key: 1e3 * float(np.median(spent[WARM:])) for key, spent in times.items()}
    rows = {}
    for norm in both:
        hand, graph = medians[norm, "by hand"], medians[norm, "autograd"]
        rows[norm] = {"by hand": round(hand, 2), "autograd": round(graph, 2), "ratio": round(graph / hand, 2)}
        say(f"V = {V}, K = {K}, {norm}: {rows[norm]}")
    return rows


def main() -> None:
    """Measure small and large vocabularies, with few and many topics."""
    quick = arguments("Gradients of neural topic models, by hand and by autograd").quick
    torch.set_num_threads(1)
    sizes = [(2000, 20)] if quick else [(2000, 20), (2000, 50), (10000, 20), (10000, 50)]
    found = {f"V={V}, K={K}": measure(V, K, 15 if quick else 40) for V, K in sizes}
    finish({"benchmark": "neural_paths", "unit": "milliseconds of CPU per gradient", "batch": BATCH, **found})


if __name__ == "__main__":
    main()
