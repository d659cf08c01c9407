"""The memory that a further token takes while LDA trains.

`python -m benchmarks.sampler.memory DIRECTORY TOPICS` trains on a saved corpus and prints the peak of its memory.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.common import call, peak_mb, reset_peak, say
from benchmarks.generated import generate
from benchmarks.sampler.trainers import ALPHA, BETA
from tertulia.corpus import Corpus
from tertulia.kernels import lda
from tertulia.kernels.lda.options import Learning

_SWEEPS = 4  # the last is averaged: all that training holds is held


def bytes_per_token(tokens: int, K: int = 100) -> float:
    """Compare the peaks of training on a generated corpus and on one half its size; mapped words count, too."""
    peaks: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="tertulia-") as temporary:
        for n in (tokens // 4, tokens // 2, tokens):  # the first compiles the kernels, should they not be on disk
            corpus = generate(Path(temporary) / str(n), n)
            found = call("benchmarks.sampler.memory", str(Path(temporary) / str(n)), str(K))
            peaks[corpus.n_tokens] = found["peak_mb"]
            say(f"{corpus.n_tokens:,} tokens: {found['peak_mb']:.0f} MB at the peak")
    _, (less, low), (more, high) = peaks.items()
    return round((high - low) * 2**20 / (more - less), 2)


def main() -> None:
    """Train, and print the peak of memory; kernels are loaded before."""
    corpus, K = Corpus.load(sys.argv[1]), int(sys.argv[2])
    V, priors, learning = len(corpus.vocabulary), (ALPHA / K, BETA), Learning(alpha=True)
    few = corpus.documents[:101]
    lda.train(corpus.words[: few[-1]], few, V, K, *priors, _SWEEPS, 1, learning=learning)
    reset_peak()
    lda.train(corpus.words, corpus.documents, V, K, *priors, _SWEEPS, 1, learning=learning)
    print(json.dumps({"peak_mb": peak_mb()}))


if __name__ == "__main__":
    main()
