"""Engine `ray` alone: the cost of shards on one machine, and the recovery of a run from a killed node or driver.

Two cores are the limit here: four actors share them, and three nodes are three raylets on one machine. Results are
stored in `benchmarks/out/engines` by configuration: an interrupted benchmark continues, and the result of a deleted
file is measured again.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.applications.cells import digest
from benchmarks.common import OUT, say
from benchmarks.engines.fixtures import Nodes, Nursery, change, outcome, parent, party_pids, prepared, texts
from benchmarks.fedlda import scale
from benchmarks.generated import generate
from tertulia.corpus import Corpus
from tertulia.methods.common.settings import MethodSettings
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.fedlda.settings import FedLDASettings
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

KEPT = OUT / "engines"
SIZES = {"consensus": 20_000_000, "fedlda": 1_000_000}  # tokens, users
QUICK = {"consensus": 200_000, "fedlda": 5_000}
_TOY = {"name": "custom", "module": "helpers.toys", "config": {"rounds": 40}}


def kept(configuration: Mapping[str, Any], quick: bool, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the stored result of a configuration, or compute and store it; quick results are not stored."""
    file = KEPT / f"{digest(configuration)}.json"
    if file.exists() and not quick:
        found: dict[str, Any] = json.loads(file.read_text())["found"]
        return found
    found = compute()
    say(f"{configuration}: {found}")
    if not quick:
        KEPT.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps({"configuration": dict(configuration), "found": found}))
        draft.replace(file)
    return found


def scaling(quick: bool) -> dict[str, Any]:
    """Measure seconds of whole runs by actors, and microseconds per token or user and round, for `ray` and `local`."""
    seconds: dict[str, dict[str, float]] = {}
    cost: dict[str, dict[str, dict[str, float]]] = {}
    counts = (1, 2) if quick else (1, 2, 4)
    for task, size in (QUICK if quick else SIZES).items():
        with tempfile.TemporaryDirectory(prefix="ray-scaling-") as folder:
            alone = [(engine, n, 1) for engine in ("local", "ray") for n in counts]
            for engine, actors, nodes in [*alone, ("ray", max(counts), 3)]:
                cell: dict[str, Any] = {"task": task, "size": size, "engine": engine, "actors": actors, "nodes": nodes}
                found = kept(cell, quick, partial(measure, Path(folder), **cell))
                name = str(actors) if nodes == 1 else f"{actors} on {nodes} nodes"
                cost.setdefault(task, {}).setdefault(engine, {})[name] = round(found["round_s"] / size * 1e6, 3)
                if engine == "ray":
                    seconds.setdefault(task, {})[name] = round(found["seconds"], 1)
    return {"ray_scaling": seconds, "ray_cost": cost}


def measure(base: Path, task: str, size: int, engine: str, actors: int, nodes: int) -> dict[str, Any]:
    """Measure one run: seconds from the first question to the model, of a median round, and to start."""
    corpora, method = consensus(base, size, actors) if task == "consensus" else fedlda(size, actors)
    directory = base / f"{task}-{engine}-{actors}-{nodes}"
    settings = RunSettings(directory=str(directory), method=method, engine=engine, workers=actors, heldout=0.0)
    rounds: list[float] = []
    with cluster(nodes) as joined:
        run = begin(settings, corpora)
        del corpora
        run = replace(run, config={**run.config, "address": joined and joined.address})
        started = time.monotonic()
        finish(run, observe=lambda kind, facts: rounds.append(facts["seconds"]) if kind == "round" else None)
        whole = time.monotonic() - started
    shutil.rmtree(directory)
    return {"seconds": sum(rounds), "round_s": statistics.median(rounds[2:]), "start_s": whole - sum(rounds)}


@contextmanager
def cluster(nodes: int) -> Iterator[Any]:
    """Start a cluster of nodes; None for a single node, which a run starts itself."""
    found = None if nodes == 1 else Nodes(nodes)
    try:
        if found is not None:
            os.environ["RAY_AUTH_TOKEN"] = found.token
        yield found
    finally:
        if found is not None:
            found.close()


def consensus(base: Path, tokens: int, shards: int) -> tuple[dict[str, Corpus], MethodSettings]:
    """Generate documents, and deal them out to shards."""
    if not (base / "corpus").exists():
        generate(base / "corpus", tokens)
    corpus = Corpus.load(base / "corpus")
    shard = np.arange(corpus.n_documents) % shards
    vocabulary = {"mode": "public", "words": corpus.vocabulary.words}
    method = ConsensusSettings(topics=50, rounds=4, start_sweeps=3, sweeps=3, evaluate=False, vocabulary=vocabulary)
    return {name(i): corpus.select(shard == i) for i in range(shards)}, method


def fedlda(users: int, shards: int) -> tuple[dict[str, Corpus], MethodSettings]:
    """Generate users of 50 tokens each, as in `benchmarks.fedlda.scale`."""
    corpora = {name(i): scale.shard_of(users // shards, i) for i in range(shards)}
    vocabulary = {"mode": "public", "words": corpora[name(0)].vocabulary.words}
    method = FedLDASettings(
        mode="paper", epsilon=7.5, topics=scale.K, rounds=4, max_words=scale.M, evaluate=False, vocabulary=vocabulary
    )
    return corpora, method


def name(shard: int) -> str:
    """Return a shard's name, as `[data] shards` makes it."""
    return f"shard-{shard + 1:02d}"


def nodes_killed(quick: bool) -> dict[str, Any]:
    """Count correct results and trials with one of three nodes, or the driver, killed; and the cost of a dead node."""
    trials = 1 if quick else 10
    with tempfile.TemporaryDirectory(prefix="ray-nodes-") as folder:
        base = Path(folder)
        prepared(base / "template", {p: texts(i, 12 + i) for i, p in enumerate("abc")}, _TOY)
        expected: dict[str, Any] = {}
        found = {}
        for victim in ("node", "driver"):
            cells = [
                kept({"killed": victim, "trial": n}, quick, partial(_killed, base, victim, n, expected))
                for n in range(trials)
            ]
            found[f"{victim}_killed"] = [sum(cell["right"] for cell in cells), trials]
            found[f"{victim}_killed_s"] = round(statistics.median(cell["seconds"] for cell in cells), 1)
    return found


def _killed(base: Path, victim: str, trial: int, expected: dict[str, Any]) -> dict[str, Any]:
    """Run one trial: seconds from the kill to the end, and whether the result is correct."""
    directory = base / f"{victim}-{trial}"
    with cluster(3) as nodes, closing(Nursery(base)) as nursery:
        if not expected:
            shutil.copytree(base / "template", base / "reference")
            nursery.finish(base / "reference")
            expected |= outcome(Run.open(base / "reference"))
        shutil.copytree(base / "template", directory)
        change(directory, engine="ray", address=nodes.address)
        driver = nursery.resume(directory)
        _await_round(directory, random.Random(trial).randint(3, 25))
        killed = time.monotonic()
        if victim == "driver":
            driver.kill()
        else:  # not the head, to which the driver is connected
            hosts = {parent(pid) for pid in party_pids(directory).values()}
            nodes.kill(next(raylet for raylet in nodes.raylets[1:] if raylet in hosts))
        if driver.wait():
            nursery.finish(directory)
        seconds = time.monotonic() - killed
    return {"right": outcome(Run.open(directory)) == expected, "seconds": seconds}


def _await_round(directory: Path, number: int, patience: float = 120) -> None:
    end = time.monotonic() + patience
    while not any(path.name >= f"commit-{number:08d}" for path in (directory / "server").glob("commit-*.safetensors")):
        if time.monotonic() > end:
            raise SystemExit(f"{directory} did not come to round {number}")
        time.sleep(0.01)
