"""The extra cost of the first training after an installation, which compiles kernels and stores them on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from benchmarks.common import say, time_cpu

_TEXTS, _LENGTH, _WORDS = 300, 60, 500


def cold_first_fit() -> float:
    """Measure the CPU seconds that `tt.LDA(topics=20).fit(texts)` takes more without compiled kernels."""
    with tempfile.TemporaryDirectory(prefix="tertulia-") as empty:
        cold, warm = _fit_in_process(empty), _fit_in_process(empty)
    say(f"first fit: {cold:.1f} s without compiled kernels, {warm:.1f} s with them")
    return round(cold - warm, 2)


def _fit_in_process(cache: str) -> float:
    command = [sys.executable, "-m", "benchmarks.sampler.first_fit"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])["cpu_s"])


def texts(seed: int = 0) -> list[str]:
    """Make texts of ten themes, over words by Zipf's law."""
    rng = np.random.default_rng(seed)
    chance = 1.0 / (np.arange(_WORDS) + 5.0)
    chance /= chance.sum()
    orders = [rng.permutation(_WORDS) for _ in range(10)]
    drawn = [orders[n % 10][rng.choice(_WORDS, _LENGTH, p=chance)] for n in range(_TEXTS)]
    return [" ".join(f"word{chr(97 + w % 26)}{chr(97 + w // 26)}" for w in row) for row in drawn]


def main() -> None:
    """Train once, and print the CPU seconds."""
    import tertulia as tt

    documents = texts()
    print(json.dumps({"cpu_s": time_cpu(lambda: tt.LDA(topics=20).fit(documents))[0]}))


if __name__ == "__main__":
    main()
