"""What memory bounds: its bandwidth here and now, how near the samplers' sweeps come to it, and bytes a token.

`python -m benchmarks.sampler_memory DIRECTORY TOPICS` trains on a saved corpus and prints the peak of its memory.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks.common import cpu_timed, peak_mb, reset_peak
from benchmarks.generated import generate
from benchmarks.sampler_trainers import ALPHA, BETA
from benchmarks.sampler_worker import call
from tertulia.arrays import F32
from tertulia.corpus import Corpus
from tertulia.kernels import lda

_FLOATS = 1 << 26  # 256 MB an array: no cache holds it


@numba.njit(fastmath=True)
def _triad(a: F32, b: F32, c: F32) -> None:
    for i in range(a.shape[0]):
        a[i] = b[i] + np.float32(3.0) * c[i]


@numba.njit(fastmath=True)
def _read(a: F32) -> float:
    total = np.float32(0.0)
    for i in range(a.shape[0]):
        total += a[i]
    return float(total)


def bandwidth(rounds: int = 5) -> dict[str, float]:
    """The best of some rounds, one thread: billions of bytes a second, of a triad and of bare reading."""
    a, b, c = (np.ones(_FLOATS, dtype=np.float32) for _ in range(3))
    _triad(a[:16], b[:16], c[:16])
    _read(a[:16])
    triad = min(cpu_timed(lambda: _triad(a, b, c))[0] for _ in range(rounds))
    read = min(cpu_timed(lambda: _read(a))[0] for _ in range(rounds))
    return {"triad_gb_s": 3 * a.nbytes / triad / 1e9, "read_gb_s": a.nbytes / read / 1e9}


def sweeps(corpus: Corpus, K: int, gb_s: float, rounds: int = 3) -> dict[str, dict[str, float]]:
    """Each sampler's speed after a warm start, and the traffic that it causes at the least, against the bandwidth.

    A token costs 20 bytes: its word is read, its topic and a count are read and written. `dense` also reads a row of
    phi, 4 bytes a topic, from the caches where phi fits: the share may then exceed 1. The others' 8 bytes more are a
    proposal, or an entry of a table.
    """
    V = len(corpus.vocabulary)
    start = lda.train(corpus.words, corpus.documents, V, K, ALPHA / K, BETA, 3, 1, sampler="dense")
    found: dict[str, dict[str, float]] = {}
    for sampler in lda.SAMPLERS:
        if sampler in ("auto", "gibbs"):
            continue

        def sweep(key: int, sampler: Any = sampler) -> float:
            return cpu_timed(lambda: lda.run(corpus.words, corpus.documents, start, 2, key, sampler, phi="mean"))[0] / 2

        sweep(0)
        rate = corpus.n_tokens / min(sweep(key) for key in range(rounds))
        traffic = 20.0 + (4.0 * K if sampler == "dense" else 8.0)
        found[sampler] = {
            "tokens_per_cpu_s": rate,
            "bytes_a_token": traffic,
            "gb_s": rate * traffic / 1e9,
            "share_of_bandwidth": rate * traffic / 1e9 / gb_s,
        }
    return found


def bytes_per_token(directory: Path, tokens: int, K: int = 100) -> float:
    """What each further token costs, from the peaks of training on a corpus and on one half its size."""
    peaks: dict[int, float] = {}
    for n in (tokens // 2, tokens):
        corpus = generate(directory / str(n), n)
        peaks[corpus.n_tokens] = call("benchmarks.sampler_memory", str(directory / str(n)), str(K))["peak_mb"]
    (less, low), (more, high) = peaks.items()
    return (high - low) * 2**20 / (more - less)


def threads_ratio(corpus: Corpus, K: int, rounds: int) -> float:
    """How many times faster two threads train than one, by the clock on the wall.

    The best of some interleaved rounds each: what else runs on the machine only ever slows.
    """
    best = {1: np.inf, 2: np.inf}
    V, priors = len(corpus.vocabulary), (ALPHA / K, BETA)
    for _ in range(rounds):
        for threads in best:
            began = time.perf_counter()
            lda.train(corpus.words, corpus.documents, V, K, *priors, 10, 1, threads=threads)
            best[threads] = min(best[threads], time.perf_counter() - began)
    return best[1] / best[2]


def main() -> None:
    """Train two sweeps, and tell the peak of memory; kernels are loaded before, as compiling them takes memory too."""
    corpus, K = Corpus.load(sys.argv[1]), int(sys.argv[2])
    V, priors = len(corpus.vocabulary), (ALPHA / K, BETA)
    few = corpus.documents[:100]
    lda.train(corpus.words[: few[-1]], few, V, K, *priors, 2, 1)
    reset_peak()
    lda.train(corpus.words, corpus.documents, V, K, *priors, 2, 1)
    print(json.dumps({"peak_mb": peak_mb()}))


if __name__ == "__main__":
    main()
