"""A million users on one machine: the seconds and the memory of FedLDA's rounds, and the bytes of a user's tuples.

`python -m benchmarks.fedlda.scale USERS` measures one size in a process of its own, as the peak of memory cannot be
measured otherwise. Users hold 50 generated tokens over V = 10,000 words, in two shards that work at the same time.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common import finish, parser, peak_mb, reset_peak, say
from benchmarks.fedlda.packing import pack, packed_bytes, ranks, unpack
from benchmarks.generated import table_of_topics
from tertulia import Corpus, FedLDA, TextOptions, Vocabulary
from tertulia._arrays import I32, Array
from tertulia.kernels.fedlda import tuples
from tertulia.kernels.fedlda.sampling import I16, broadcast_phi, resample

TOKENS, V, K, ROUNDS = 50, 10_000, 50, 3
M = 50  # so that l is 35
SHARDS = ("a", "b")


def shards(users: int) -> dict[str, Corpus]:
    """Return users of 50 tokens each, in two shards."""
    return {name: shard_of(users // len(SHARDS), seed) for seed, name in enumerate(SHARDS)}


def shard_of(users: int, seed: int) -> Corpus:
    """Draw this number of users; each seed has others."""
    words = _words(users, seed)
    documents = np.arange(0, users * TOKENS + 1, TOKENS)
    table = pl.DataFrame({"id": np.arange(users) + seed * users}).cast(pl.String)
    vocabulary = Vocabulary(tuple(f"w{v}" for v in range(V)))
    return Corpus(words, documents, documents, documents, vocabulary, table, TextOptions())


def _words(users: int, seed: int) -> I32:
    """Draw words of users who have three of K topics each; words of a topic follow Zipf's law."""
    tables, rng = table_of_topics(np.random.default_rng(0), V), np.random.default_rng(seed)
    words = np.empty(users * TOKENS, dtype=np.int32)
    for first in range(0, users, 1 << 14):
        n = min(1 << 14, users - first)
        own = rng.integers(K, size=(n, 3))
        topic = own[np.arange(n)[:, None], rng.integers(3, size=(n, TOKENS))]
        words[first * TOKENS : (first + n) * TOKENS] = tables[
            topic, rng.integers(tables.shape[1], size=topic.shape)
        ].ravel()
    return words


def measure(users: int) -> dict[str, float]:
    """Run a few rounds with RRP and give the seconds of the median one, and the memory."""
    parties = shards(users)
    words = parties["a"].vocabulary.words
    method = FedLDA(
        mode="paper", epsilon=7.5, topics=K, rounds=ROUNDS, max_words=M, evaluate=False,
        vocabulary={"mode": "public", "words": words},
    )  # fmt: skip
    reset_peak()
    cpu = [time.process_time()]
    with tempfile.TemporaryDirectory(prefix="fedlda-") as folder:
        model = method.fit(
            parties, directory=Path(folder) / "run", workers=2, heldout=0.0,
            observe=lambda kind, _: cpu.append(time.process_time()),
        )  # fmt: skip
    rounds = model.history[1:]
    return {
        "seconds": statistics.median(facts["seconds"] for facts in rounds),
        "cpu_seconds": statistics.median(np.diff(cpu)[1:]),  # of both cores together
        "rss_mb": peak_mb(),
    }


def measure_apart(users: int) -> dict[str, float]:
    """Measure one size in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.fedlda.scale", str(users)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800).stdout
    reported = json.loads(said.splitlines()[-1])
    found: dict[str, float] = {key: reported[key] for key in ("seconds", "cpu_seconds", "rss_mb")}
    seconds = f"{found['seconds']:.1f} s per round, {found['cpu_seconds']:.1f} s of CPU"
    say(f"{users:>9,} users: {seconds}, {found['rss_mb']:.0f} MB")
    return found


def coding(corpus: Corpus, topics: int, sampled: int, M: int, rounds: int = 20) -> dict[str, Any]:
    """Measure real tuples without noise: bytes as encoded, beside dense vectors and the entropy of the stream."""
    V, documents = len(corpus.vocabulary), corpus.documents
    everyone, alpha = np.ones(corpus.n_documents, dtype=np.bool_), np.full(topics, 5.0 / topics)
    z = reported = np.full(corpus.n_tokens, -1, dtype=np.int16)
    counts = np.zeros((topics, V))
    sizes, bounds, sent = [], [], 0
    for r in range(rounds):
        phi = broadcast_phi(counts, 0.1)
        z = resample(corpus.words, documents, z, everyone, phi, alpha, r)
        chosen = tuples.choose(corpus.words, documents, z, reported, everyone, M, sampled, r + 1000)
        moves = (chosen.word, chosen.origin, chosen.target)
        topic_at, rank = ranks(phi[:, :topics])
        check_message(chosen, topic_at, rank, sampled)
        sizes.append(packed_bytes(chosen.user, *moves, rank, sampled, corpus.n_documents) / corpus.n_documents)
        bounds.append(entropy_bits(*moves) * len(chosen.token) / 8 / corpus.n_documents)
        reported = reported.copy()
        reported[chosen.token] = chosen.target
        counts = counts + tuples.add_up(*moves, topics, V)
        sent += len(chosen.token)
    tuple_bytes = 3 * 4 * sampled  # the paper's dense representation: three numbers a tuple, dummies included
    return {
        "bytes_per_user_round": round(float(np.mean(sizes)), 1),
        "times_below_dense_tuples": round(tuple_bytes / float(np.mean(sizes)), 1),
        "times_below_dense_tuples_first_round": round(tuple_bytes / sizes[0], 1),
        "times_below_updating_vector": round(topics * V * 4 / float(np.mean(sizes))),
        "over_entropy": round(float(np.sum(sizes) / np.sum(bounds)), 3),
        "over_entropy_by_round": [round(size / bound, 2) for size, bound in zip(sizes, bounds, strict=True)],
        "tuples_per_user_round": round(sent / rounds / corpus.n_documents, 1),
    }


def check_message(chosen: tuples.SentTuples, topic_at: I16, rank: I16, sampled: int) -> None:
    """Raise unless the server can read the message of the first user with tuples."""
    mine = chosen.user == chosen.user[:1]
    sent = (chosen.word[mine], chosen.origin[mine], chosen.target[mine])
    read = unpack(pack(*sent, rank, sampled), topic_at, sampled)
    if sorted(zip(*sent, strict=True)) != sorted(zip(*read, strict=True)):
        raise RuntimeError("a user's message does not come out as it went in: the coder is wrong")


def entropy_bits(word: Array, origin: Array, target: Array) -> float:
    """Estimate the bits per tuple of a stream of independent (w, k1, k2), by Chao and Shen's estimator (2003).

    Most tuples are seen once, so that their observed frequencies alone would understate the entropy.
    """
    stream = (word.astype(np.int64) << 32) | ((origin.astype(np.int64) + 1) << 16) | target
    seen = np.unique(stream, return_counts=True)[1].astype(np.float64)
    n = seen.sum()
    coverage = 1 - min((seen == 1).sum(), n - 1) / n
    p = coverage * seen / n
    return float(-(p * np.log2(p) / -np.expm1(n * np.log1p(-p))).sum())


if __name__ == "__main__":
    command = parser("Seconds and memory of a round of FedLDA")
    command.add_argument("users", type=int, nargs="?", help="by default a million, or with --quick 10,000")
    given = command.parse_args()
    finish({"benchmark": "fedlda_scale", **measure(given.users or (10_000 if given.quick else 1_000_000))})
