"""Clear runs by whichever version of the package is on the path; `cost` starts this file as a program of its own.

Reads `{"parties": {name: texts}, "method": settings, "times": n}` from standard input and prints the CPU time of the
training of n runs, after one that warms kernels up; the bytes that the server sent; and a digest of the model. So it
uses nothing that only one of the versions has.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tertulia.corpus import Corpus
from tertulia.metrics.communication import Communication
from tertulia.runs.config import RunSettings
from tertulia.runs.driver import finish
from tertulia.runs.rehearsal import begin


def main() -> None:
    """Run, and print what came of it."""
    warnings.simplefilter("ignore")
    given = json.load(sys.stdin)
    corpora = {party: Corpus.from_texts(texts) for party, texts in given["parties"].items()}
    seconds = []
    for _ in range(1 + given["times"]):
        with TemporaryDirectory() as folder:
            settings = RunSettings(directory=str(Path(folder) / "run"), method=given["method"], heldout=0.1, seed=1)
            run = begin(settings, corpora)
            start = time.process_time()
            model = finish(run, corpora)
            seconds.append(time.process_time() - start)
    digest = hashlib.blake2b(np.ascontiguousarray(model.topic_word).tobytes()).hexdigest()
    down = Communication.of(model.history).bytes_down
    print(json.dumps({"seconds": seconds[1:], "down": down, "model": digest}))


if __name__ == "__main__":
    main()
