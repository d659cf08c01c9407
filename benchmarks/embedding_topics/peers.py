"""Peers on the same documents, words and vectors, each training in a process of its own.

`bench` installs BERTopic and FASTopic. Turftopic needs other versions of packages: install it in an environment of its
own, and name that environment's Python in TURFTOPIC_PYTHON. A peer that is not installed is left out, by name.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import tertulia as tt
from benchmarks.common import say, time_cpu
from benchmarks.embedding_topics.cells import Cell, cached, stored, summary
from benchmarks.embedding_topics.corpora import CACHE, SIZES, Subject, word_vectors
from benchmarks.embedding_topics.lazy import Lazy
from benchmarks.embedding_topics.scores import scores

MODELS = {  # of each package: what one of its jobs trains
    "bertopic": ("bertopic", "bertopic_k"),
    "merge_models": ("merge_models",),
    "fastopic": ("fastopic",),
    "turftopic": ("turftopic_gmm", "turftopic_sens"),
    "topeax": ("turftopic_topeax",),
}
_WORKER = Path(__file__).with_name("peer_worker.py")
_SMALL = 5_000  # documents of a corpus on which peers have several seeds
_LARGE = 25_000  # documents; UMAP and FASTopic take hours for more
_MOST_SEEDS = 10


def peers(subjects: dict[str, Lazy], seeds: int) -> dict[str, Any]:
    """Measure all peers on all corpora; one that is not installed, or a corpus that is too large, is "not run"."""
    found: dict[str, Any] = {}
    for name, subject in subjects.items():
        found[name], most = {}, seeds if SIZES[name] <= _SMALL else 1
        for job in MODELS:
            found[name] |= _peer(subject, job, most)
        found[name]["lda"] = summary(
            cached([name, "lda", seed], lambda s=subject, seed=seed: _lda(s(), seed))  # type: ignore[misc]
            for seed in range(most)
        )
        say(f"{name}: {json.dumps(found[name])}")
    return found


def _peer(subject: Lazy, job: str, seeds: int) -> dict[str, Any]:
    """Return summaries by model, of stored cells and of those that can be made."""
    name, python = subject.name, _interpreter(job)
    missing = [seed for seed in range(seeds) if stored([name, MODELS[job][0], seed]) is None]
    if missing and python and SIZES[name] <= _LARGE:
        try:
            _train(subject(), job, missing, python)
        except subprocess.CalledProcessError as error:
            say(f"{name}, {job}: {error}")
    cells = {model: [stored([name, model, seed]) for seed in range(seeds)] for model in MODELS[job]}
    return {
        model: summary(cell for cell in several if cell) if any(several) else "not run"
        for model, several in cells.items()
    }


def _interpreter(job: str) -> str | None:
    """Return the Python that has a peer."""
    if job in ("turftopic", "topeax"):
        return os.environ.get("TURFTOPIC_PYTHON")
    needs = "bertopic" if job == "merge_models" else job
    return sys.executable if importlib.util.find_spec(needs) else None


def _train(subject: Subject, job: str, seeds: list[int], python: str) -> None:
    """Train all models of a job with these seeds, in one process, and store the cells."""
    for seed, models in zip(seeds, _work(subject, job, seeds, python), strict=True):
        for model, (topics, assigned, near, seconds) in zip(MODELS[job], models, strict=True):
            found = {**scores(topics, np.array(assigned), np.array(near), subject), "seconds": seconds}
            cached([subject.name, model, seed], lambda found=found: found)  # type: ignore[misc]


def _work(subject: Subject, job: str, seeds: list[int], python: str) -> list[list[Any]]:
    folder = CACHE / "jobs"
    folder.mkdir(parents=True, exist_ok=True)
    texts, path = folder / f"{subject.name}.json", folder / f"{subject.name}-{job}.json"
    texts.write_text(json.dumps(subject.scored_texts))
    asked = {
        "peer": job, "topics": subject.topics, "seeds": seeds, "parties": subject.parties, "documents": str(texts),
        "vectors": str(subject.vector_file), "words": str(word_vectors()),
    }  # fmt: skip
    path.write_text(json.dumps(asked))
    limits = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    command = [python, str(_WORKER), str(path)]
    done = subprocess.run(command, env={**os.environ, **limits}, stdout=subprocess.PIPE, text=True, check=True)
    found: list[list[Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def _lda(subject: Subject, seed: int) -> Cell:
    seconds, model = time_cpu(lambda: tt.LDA(topics=subject.topics, random_state=seed).fit(subject.corpus).topics_)
    theta = model.transform(subject.corpus)
    nearest = theta.argmax(axis=1)
    return {**scores(model.top_words(25), nearest, nearest, subject), "seconds": seconds}


def seconds(subjects: dict[str, Lazy], model: str) -> dict[str, Any]:
    """Return a peer's CPU seconds by corpus, of stored cells: after embedding, and with it."""
    found: dict[str, Any] = {}
    for name, subject in subjects.items():
        cells = [cell for seed in range(_MOST_SEEDS) if (cell := stored([name, model, seed]))]
        if cells:
            after = float(np.median([cell["seconds"] for cell in cells]))
            found[name] = {"after": after, "with": after + subject().seconds_of_vectors}
    return found
