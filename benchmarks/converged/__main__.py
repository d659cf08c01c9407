"""Longer runs: our defaults against 1,000 iterations of tomotopy with its own priors, of which it learns alpha.

`benchmarks.sampler` asks how soon we reach what a peer has after a few sweeps. Here ours train as long as their
defaults say, and as long as tomotopy does, on medical abstracts, each seed in turn, one thread, CPU seconds without
reading. All are scored by document completion on the same held-out documents, each with its own alpha; random topics
(draws around the word frequencies) and the word frequencies themselves stand beside them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.common import data, finish, parser, say, split_heldout, time_cpu
from benchmarks.sampler.trainers import align, tokens
from tertulia._arrays import F64, Array
from tertulia.api.lda import LDA
from tertulia.corpus import Corpus, read
from tertulia.corpus.splits import is_heldout
from tertulia.metrics import completion
from tertulia.metrics.perplexity import unigram

FILE = "medical_abstracts_2888.parquet"
HELDOUT = 0.1
WORDS = {"min_documents": 1, "max_share": 1.0}  # the words are chosen already
Model = tuple[Array, F64]  # topics [K, V], alpha [K]
Train = Callable[[Corpus, int, int], Model]  # of documents, number of topics, seed


def ours(corpus: Corpus, K: int, seed: int, **settings: Any) -> Model:
    """`tt.LDA` with its defaults but for these."""
    model = LDA(topics=K, vocabulary=WORDS, **settings).fit(corpus, seed=seed)
    return model.topic_word, model.alpha


def tomotopy(corpus: Corpus, K: int, seed: int, iterations: int) -> Model:
    """Tomotopy with its own priors, which learns alpha every ten iterations."""
    import tomotopy as tp

    model = tp.LDAModel(k=K, seed=seed + 1)
    for document in tokens(corpus):
        model.add_doc(document)
    model.train(iterations, workers=1)
    found = np.array([model.get_topic_word_dist(k) for k in range(K)])
    return align(found, list(model.used_vocabs), corpus), np.asarray(model.alpha, np.float64)


def at_random(corpus: Corpus, K: int, seed: int) -> Model:
    """Topics that have learned nothing: draws around the word frequencies."""
    rng = np.random.default_rng(seed)
    frequencies = unigram(corpus)[0]
    return rng.dirichlet(1e4 * frequencies + 1e-3, K), np.full(K, 5.0 / K)


def trainers(iterations: int) -> dict[str, Train]:
    """Who takes part."""
    return {
        "random topics": at_random,
        "tt.LDA": ours,
        f"tt.LDA, {iterations} sweeps": lambda c, K, s: ours(c, K, s, sweeps=iterations),
        f"tt.LDA, {iterations} sweeps, alpha learned": lambda c, K, s: ours(
            c, K, s, sweeps=iterations, learn_alpha=True
        ),
        "tomotopy, 100 iterations": lambda c, K, s: tomotopy(c, K, s, 100),
        f"tomotopy, {iterations} iterations": lambda c, K, s: tomotopy(c, K, s, iterations),
    }


def measure(train: Train, parts: tuple[Corpus, Corpus], K: int, seeds: int) -> dict[str, Any]:
    """Perplexity of held-out documents, each seed's beside the mean, and CPU seconds."""
    found = []
    for seed in range(seeds):
        seconds, (phi, alpha) = time_cpu(partial(train, parts[0], K, seed))
        found.append((completion(phi, alpha, parts[1]).perplexity, seconds))
    perplexity, cpu = np.array(found).T
    return {
        "perplexity": round(float(perplexity.mean()), 1),
        "seeds": [round(float(x), 1) for x in perplexity],
        "cpu_s": round(float(np.median(cpu)), 1),
    }


def options() -> argparse.Namespace:
    """Read the command line."""
    command = parser("LDA at convergence: our defaults and tomotopy's")
    command.add_argument("--topics", type=int, default=50)
    command.add_argument("--seeds", type=int, default=3)
    command.add_argument("--iterations", type=int, default=1000, help="of tomotopy, and sweeps of ours")
    return command.parse_args()


def main() -> None:
    """Run the benchmark."""
    chosen = options()
    seeds, iterations = (1, 200) if chosen.quick else (chosen.seeds, chosen.iterations)
    corpus = read(data(FILE))
    parts = split_heldout(corpus, np.array([is_heldout(name, HELDOUT) for name in corpus.table["id"]]), 5)
    say(f"{parts[0]}, {parts[1].n_documents} documents held out")
    ours(parts[0].select(np.arange(50)), 5, 0, sweeps=2, learn_alpha=True)  # loads the kernels
    rows: dict[str, dict[str, Any]] = {}
    for name, train in trainers(iterations).items():
        rows[name] = measure(train, parts, chosen.topics, seeds)
        say(f"{name}: {rows[name]}")
    control = completion(unigram(parts[0]), 1.0, parts[1]).perplexity
    finish(
        {
            "benchmark": "converged", "documents": parts[0].n_documents, "tokens": parts[0].n_tokens,
            "words": len(parts[0].vocabulary), "topics": chosen.topics, "seeds": seeds, "models": rows,
            "unigram": round(control, 1),
        }
    )  # fmt: skip


if __name__ == "__main__":
    main()
