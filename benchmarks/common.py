"""Code that all benchmarks share: command line, data, clocks, and the JSON line at the end."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from tertulia._arrays import Bool
from tertulia.corpus import Corpus, Vocabulary, read
from tertulia.corpus.vocabulary import propose

_T = TypeVar("_T")
OUT = Path(__file__).parent / "out"  # where plots, tables and kept scores go
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def parser(description: str) -> argparse.ArgumentParser:
    """Create the command line that all benchmarks have: `--quick` ends within five minutes on two cores."""
    found = argparse.ArgumentParser(description=description)
    found.add_argument("--quick", action="store_true", help="a smaller run, within 5 minutes on 2 cores")
    return found


def arguments(description: str) -> argparse.Namespace:
    """Read the command line of a benchmark that needs no more than that."""
    return parser(description).parse_args()


def run_parts(name: str, description: str, parts: Mapping[str, Callable[[bool], dict[str, Any]]]) -> None:
    """Run a benchmark of several parts, or those that `--parts` names; print all results as one JSON line."""
    command = parser(description)
    command.add_argument("--parts", default=",".join(parts), help=f"a list from {','.join(parts)}; by default all")
    given = command.parse_args()
    chosen = given.parts.split(",")
    if unknown := sorted(set(chosen) - set(parts)):
        raise SystemExit(f"--parts {','.join(unknown)}: choose from {','.join(parts)}")
    result: dict[str, Any] = {"benchmark": name, "quick": given.quick}
    for part in chosen:
        result |= parts[part](given.quick)
    finish(result)


def data(name: str) -> Path:
    """Find a data file in TERTULIA_DATA, by default ../shared/data; exit with a hint if it is missing."""
    folder = Path(os.environ.get("TERTULIA_DATA", SHARED))
    path = folder / name
    if not path.is_file():
        say(f"This benchmark needs {name}, which is not in {folder}.")
        say("benchmarks/README.md says what the file holds and where it comes from.")
        say("Put it into a folder, set TERTULIA_DATA to that folder, and run again.")
        raise SystemExit(2)
    return path


def newsgroups(min_documents: int = 19, max_share: float = 0.5, label: str = "label") -> Corpus:
    """Read 20 Newsgroups over the words of at least `min_documents` documents, about 8,000.

    The label is the group, or with `label="party"` one of six super-groups.
    """
    say("reading 20 Newsgroups")
    corpus = read(data("newsgroups20.parquet"), id="id", label=label, date="date")
    corpus = corpus.encode(Vocabulary(tuple(propose(corpus, min_documents, max_share).words)))
    say(f"{corpus}")
    return corpus


def imdb(training: int | None = None, heldout: int = 1000, min_documents: int = 5) -> tuple[Corpus, Corpus]:
    """Read IMDB reviews, each text once: documents to train on (all, or the first `training`) and held-out ones.

    The first ones are always the same: reviews are sorted by a hash of their id. The words are those of at least
    `min_documents` training documents.
    """
    say("reading IMDB")
    table = pl.read_parquet(data("imdb50k.parquet")).filter(~pl.col("dup")).cast({"id": pl.String})
    order = sorted(table["id"], key=lambda name: hashlib.blake2b(name.encode()).digest())
    chosen = pl.DataFrame({"id": order[: training and training + heldout]}).join(table, "id", maintain_order="left")
    corpus = Corpus.from_texts(chosen["text"].to_list(), chosen["id"].to_list())
    return split_heldout(corpus, np.arange(corpus.n_documents) < heldout, min_documents)


def split_heldout(corpus: Corpus, heldout: Bool, min_documents: int) -> tuple[Corpus, Corpus]:
    """Split a corpus into training and held-out documents, both over the words of the training documents."""
    train = corpus.select(~heldout)
    train = train.encode(Vocabulary(tuple(propose(train, min_documents, 0.5).words)))
    return train, corpus.select(heldout).encode(train.vocabulary)


def reset_peak() -> None:
    """Reset the peak that `peak_mb` returns (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """Return the most memory that this process held since the last reset, mapped files included (Linux).

    `getrusage` would count the parent's memory too.
    """
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) / 1024


def time_cpu(function: Callable[[], _T]) -> tuple[float, _T]:
    """Call a function; return the CPU seconds that it took in this process, all threads together, and its value."""
    start = time.process_time()
    value = function()
    return time.process_time() - start, value


def call(module: str, *arguments: str, threads: int = 1) -> dict[str, Any]:
    """Run a module in a process whose libraries may use `threads` threads; parse the JSON on its last line."""
    limits = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL", "RAYON")}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env={**os.environ, **limits}, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def say(text: str) -> None:
    """Print a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)


def finish(result: Mapping[str, Any]) -> None:
    """End with one JSON object on stdout, together with the machine that it was measured on."""
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2)}
    print(json.dumps({**result, "machine": machine}), flush=True)
