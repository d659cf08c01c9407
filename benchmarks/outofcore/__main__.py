"""Training on a corpus that is larger than memory: it is written to disk and mapped, and peak memory is measured.

The corpus (200 million tokens, or `--tokens`) is generated block by block; then another process trains on the mapped
files. The peak includes pages of the mapped files, which the system could reclaim.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import call, finish, parser, peak_mb, reset_peak, say
from benchmarks.generated import generate
from tertulia.api.lda import LDA
from tertulia.corpus import Corpus

LIMIT_MB = 3072
KEEP_ALL = {"min_documents": 1, "max_share": 1.0}


def train(directory: str, topics: int, sweeps: int, threads: int) -> dict[str, Any]:
    """Train on the mapped corpus."""
    corpus = Corpus.load(directory)
    reset_peak()
    cpu, wall = time.process_time(), time.perf_counter()
    LDA(topics=topics, sweeps=sweeps, threads=threads, vocabulary=KEEP_ALL).fit(corpus)
    return {
        "tokens": corpus.n_tokens,
        "peak_rss_mb": round(peak_mb()),
        "cpu_s": round(time.process_time() - cpu, 1),
        "wall_s": round(time.perf_counter() - wall, 1),
    }


def main() -> None:
    """Run the benchmark."""
    if sys.argv[1:2] == ["train"]:
        print(json.dumps(train(sys.argv[2], *map(int, sys.argv[3:]))))
        return
    command = parser("Training from disk within 3 GB")
    command.add_argument("--tokens", type=int, help="by default 200 million, with --quick 20 million")
    command.add_argument("--topics", type=int, default=100)
    command.add_argument("--sweeps", type=int, default=3)
    command.add_argument("--threads", type=int, default=2)
    chosen = command.parse_args()
    with tempfile.TemporaryDirectory(prefix="tertulia-") as temporary:
        tokens = chosen.tokens or (20_000_000 if chosen.quick else 200_000_000)
        say(f"writing {tokens:,} tokens to {temporary}")
        generate(Path(temporary), tokens)
        say("training")
        settings = [str(value) for value in (chosen.topics, chosen.sweeps, chosen.threads)]
        result = call("benchmarks.outofcore", "train", temporary, *settings, threads=chosen.threads)
    finish(
        {
            "benchmark": "outofcore",
            "topics": chosen.topics,
            "sweeps": chosen.sweeps,
            **result,
            "tokens_per_s": round(result["tokens"] * chosen.sweeps / result["wall_s"]),
            "within_limit": result["peak_rss_mb"] <= LIMIT_MB,
        }
    )


if __name__ == "__main__":
    main()
