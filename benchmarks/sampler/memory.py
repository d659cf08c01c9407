"""What memory bounds: its bandwidth here and now, how near the samplers' passes come to it, and bytes per token.

`python -m benchmarks.sampler.memory DIRECTORY TOPICS` trains on a saved corpus and prints the peak of its memory.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks.common import call, peak_mb, reset_peak, time_cpu
from benchmarks.generated import generate
from benchmarks.sampler.trainers import ALPHA, BETA
from tertulia._arrays import F32
from tertulia.corpus import Corpus
from tertulia.kernels import lda
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import warp
from tertulia.kernels.lda.by_word import columns

_FLOATS = 1 << 26  # 256 MB per array: no cache holds it


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
    """The best of some rounds, one thread: billions of bytes per second, of a triad and of bare reading."""
    a, b, c = (np.ones(_FLOATS, dtype=np.float32) for _ in range(3))
    _triad(a[:16], b[:16], c[:16])
    _read(a[:16])
    triad = min(time_cpu(lambda: _triad(a, b, c))[0] for _ in range(rounds))
    read = min(time_cpu(lambda: _read(a))[0] for _ in range(rounds))
    return {"triad_gb_s": 3 * a.nbytes / triad / 1e9, "read_gb_s": a.nbytes / read / 1e9}


def passes(corpus: Corpus, K: int, gb_s: float, rounds: int = 3) -> dict[str, dict[str, float]]:
    """Speeds after a warm start, and the traffic that each causes at the least, against the bandwidth.

    `dense` and `sparse` have one pass, over documents: a token's word is read, its topic read and written, a count read
    and written, 20 bytes; `dense` also reads a row of phi, 4 bytes per topic (from the caches where phi fits, so the
    share may exceed 1), `sparse` an entry of a row, 8 bytes. `warp` has two: the words stream topics and proposals, 8
    bytes per token; the documents read besides where a token lies, 12 bytes.
    """
    V, alpha = len(corpus.vocabulary), np.full(K, ALPHA / K)
    start = lda.train(corpus.words, corpus.documents, V, K, alpha, BETA, 3, 1)
    by_word = columns(corpus.words, V)
    packed = warp.pack(by_word.places, start.z)

    def sweep(sampler: Any, key: int) -> Any:
        return lda.run(corpus.words, corpus.documents, start, 2, key, sampler, phi="mean")

    def words(key: int) -> Any:
        return warp.word_pass(by_word, packed, start.ck, BETA, derive(key), 1)

    def documents(key: int) -> Any:
        offsets = freeze(corpus.documents, np.int64)
        return warp.document_pass(offsets, by_word, packed, start.ck, alpha, BETA, derive(key), 1)

    kinds: dict[str, tuple[Callable[[Any], Any], int, float]] = {
        "dense": (partial(sweep, "dense"), 2, 20.0 + 4.0 * K),
        "sparse": (partial(sweep, "sparse"), 2, 28.0),
        "warp words": (words, 1, 8.0),
        "warp documents": (documents, 1, 12.0),
    }
    found: dict[str, dict[str, float]] = {}
    for name, (work, times, traffic) in kinds.items():
        work(0)
        rate = corpus.n_tokens * times / min(time_cpu(partial(work, key))[0] for key in range(1, rounds + 1))
        found[name] = {
            "tokens_per_cpu_s": round(rate),
            "bytes_per_token": traffic,
            "gb_s": round(rate * traffic / 1e9, 2),
            "share_of_bandwidth": round(rate * traffic / 1e9 / gb_s, 3),
        }
    return found


def bytes_per_token(directory: Path, tokens: int, K: int = 100) -> float:
    """What each further token costs, from the peaks of training on a corpus and on one half its size."""
    peaks: dict[int, float] = {}
    for n in (tokens // 2, tokens):
        corpus = generate(directory / str(n), n)
        peaks[corpus.n_tokens] = call("benchmarks.sampler.memory", str(directory / str(n)), str(K))["peak_mb"]
    (less, low), (more, high) = peaks.items()
    return (high - low) * 2**20 / (more - less)


def main() -> None:
    """Train two sweeps, and print the peak of memory; kernels are loaded before, as compiling them takes memory too."""
    corpus, K = Corpus.load(sys.argv[1]), int(sys.argv[2])
    V, priors = len(corpus.vocabulary), (ALPHA / K, BETA)
    few = corpus.documents[:100]
    lda.train(corpus.words[: few[-1]], few, V, K, *priors, 2, 1)
    reset_peak()
    lda.train(corpus.words, corpus.documents, V, K, *priors, 2, 1)
    print(json.dumps({"peak_mb": peak_mb()}))


if __name__ == "__main__":
    main()
