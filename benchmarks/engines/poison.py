"""The effect of one poisoned party of five on a shared model, and of the defences against it.

`poison{aggregator: {split: {kind: [mean, least, most]}}}` over seeds: the perplexity of the four honest parties'
held-out documents, over that of the plain method without the fifth party, minus 1; null: no model at all. `nothing` is
what the defence costs where all are honest: over the plain method with all five. The poisoned party is another one with
each seed; what the kinds of poison are, `tests/helpers/poisons.py` says.

Splits: `iid`, five random parts of a quarter of 20 Newsgroups, and `natural`, its five largest super-groups. `--quick`:
generated documents, of topics that all parties have, or that are mostly a party's own; and fewer aggregators.

Perplexities are kept in `benchmarks/out/poison`: a run that was stopped goes on. `python -m benchmarks.engines.poison`
prints the same as rows of a table.
"""

from __future__ import annotations

import importlib
import json
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from typing import Any, NamedTuple

import numpy as np

from benchmarks.applications.cells import digest
from benchmarks.common import OUT, arguments, newsgroups, say
from benchmarks.engines import fixtures
from benchmarks.engines.candidates import COORDINATES, WEIGHTS, CandidateHandle
from benchmarks.federation.judge import HELDOUT, Judge
from benchmarks.federation.parties import natural
from benchmarks.gfedntm.corpora import Setting, synthetic
from tertulia import Corpus, Topics
from tertulia.corpus.splits import Row, at_random
from tertulia.corpus.vocabulary import propose
from tertulia.errors import InputError
from tertulia.methods.registry import entry_of
from tertulia.runs.directory import drive
from tertulia.runs.driver import terms_of
from tertulia.runs.one_machine import begin
from tertulia.runs.plan import plan_of
from tertulia.runs.settings import RunSettings

KEPT = OUT / "poison"
PARTIES, TOPICS = 5, 20
CONSENSUS = {"name": "consensus"}
FTM = {"name": "ftm", "rounds": 3, "sweeps": 20}
QUICK: dict[str, dict[str, Any]] = {
    "consensus, sum": CONSENSUS,
    "consensus, robust": {**CONSENSUS, "robust": True},
    "ftm": FTM,
    "ftm, max_weight": {**FTM, "max_weight": 1.0},
    "ftm, max_weight, min_support": {**FTM, "max_weight": 1.0, "min_support": 2},
}
AGGREGATORS = QUICK | {f"consensus, {name}": {**CONSENSUS, "candidate": name} for name in (*COORDINATES, *WEIGHTS)}
KINDS: dict[str, Callable[[int], Any]] = {
    "random": fixtures.random_topics,
    "scaled 10": lambda seed: fixtures.scaled(10),
    "scaled 100": lambda seed: fixtures.scaled(100),
    "copied": lambda seed: fixtures.copied_topics,
    "mixed": fixtures.mixed_topics,
}


class Scene(NamedTuple):
    """The documents of five parties, one of which may be poisoned."""

    name: str
    seed: int
    parties: dict[str, Corpus]
    words: tuple[str, ...]
    quick: bool

    @property
    def poisoned(self) -> str:
        """The poisoned party, another one for each seed."""
        return sorted(self.parties)[(self.seed + 1) % PARTIES]

    @property
    def honest(self) -> dict[str, Corpus]:
        """The honest parties."""
        return {party: corpus for party, corpus in self.parties.items() if party != self.poisoned}


def poison(quick: bool) -> dict[str, Any]:
    """Measure every aggregator, on both splits, under every kind of poison; failures are results, too."""
    seeds = [0] if quick else [0, 1, 2]
    scenes = _generated(seeds) if quick else _newsgroups(seeds)
    changes: dict[str, dict[str, dict[str, list[float]]]] = {}
    for name, settings in (QUICK if quick else AGGREGATORS).items():
        for scene in scenes:
            by_kind = changes.setdefault(name, {}).setdefault(scene.name, {})
            for kind, change in _changes(scene, settings).items():
                by_kind.setdefault(kind, []).append(change)
            say(f"{name}, {scene.name}, seed {scene.seed}: { {kind: round(c[-1], 4) for kind, c in by_kind.items()} }")
    return {
        "poison": {
            name: {split: {kind: _spread(found) for kind, found in kinds.items()} for split, kinds in splits.items()}
            for name, splits in changes.items()
        }
    }


def _spread(values: list[float]) -> list[float] | None:
    if np.isnan(values).any():
        return None
    return [round(float(x), 4) for x in (np.mean(values), min(values), max(values))]


def _changes(scene: Scene, settings: Mapping[str, Any]) -> dict[str, float]:
    """Return the change of perplexity under each kind of poison, and under none."""
    plain = FTM if settings["name"] == "ftm" else CONSENSUS
    everybody = scene.parties
    cost = _perplexity(scene, settings, everybody, None, everybody) / _perplexity(
        scene, plain, everybody, None, everybody
    )
    clean = _perplexity(scene, plain, scene.honest, None, scene.honest)
    under = {kind: _perplexity(scene, settings, everybody, kind, scene.honest) / clean - 1.0 for kind in KINDS}
    return {"nothing": cost - 1.0, **under}


def _perplexity(
    scene: Scene, settings: Mapping[str, Any], parties: Mapping[str, Corpus], kind: str | None, judges: Any
) -> float:
    """Return the perplexity of the held-out documents of `judges`, from a stored result or a new run."""
    configuration = {
        "quick": scene.quick, "split": scene.name, "seed": scene.seed, "settings": dict(settings), "kind": kind,
        "parties": sorted(parties), "judges": sorted(judges),
    }  # fmt: skip
    file = KEPT / f"{digest(configuration)}.json"
    if not file.exists():
        try:
            model = _train(scene, settings, parties, kind)
            perplexity: float | None = Judge(judges, model).everyone(model)
        except InputError:  # no topic is shared by enough parties
            perplexity = None
        found = {**configuration, "perplexity": perplexity}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found), encoding="utf-8")
    kept = json.loads(file.read_text(encoding="utf-8"))["perplexity"]
    return float("nan" if kept is None else kept)


def _train(scene: Scene, settings: Mapping[str, Any], parties: Mapping[str, Corpus], kind: str | None) -> Topics:
    candidate = settings.get("candidate", "")
    own = {name: value for name, value in settings.items() if name != "candidate"}
    words = {"mode": "public", "words": scene.words}
    method = {**own, "topics": TOPICS, "evaluate": False, "vocabulary": words}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "merging")
        given = RunSettings(directory=f"{folder}/run", seed=scene.seed, heldout=HELDOUT, method=method)
        run = begin(given, parties, durable=False)
        transport: Any = run.transport("local", 1, parties)
        if kind is not None:
            plain = own["name"] == "consensus" and not (candidate or own.get("robust"))
            sweeps = given.method.model_dump()["sweeps"] if plain else None  # then parties send differences
            transport = fixtures.Poisoned(transport, scene.poisoned, KINDS[kind](scene.seed), sweeps=sweeps)
        entry = entry_of(given.method)
        train = getattr(importlib.import_module(entry.module), entry.function)
        with closing(transport), fixtures.no_less_than_nothing() if candidate else nullcontext():
            handle = CandidateHandle(
                run.id, transport, run.journal(), terms_of(given), None, plan_of(given, run.parties)
            )
            handle.candidate = candidate
            found: Topics = drive(handle, train, entry.config).topics
    return found


def _newsgroups(seeds: list[int]) -> list[Scene]:
    corpus = newsgroups(min_documents=1, max_share=1.0, label="party").split(0.25, seed=1)[1]
    words = tuple(propose(corpus.split(HELDOUT)[0], 10, 0.5).words)
    groups = natural(corpus)
    largest = sorted(sorted(groups, key=lambda party: -groups[party].n_documents)[:PARTIES])
    scenes = []
    for seed in seeds:
        assign = at_random({f"p{i}": 1.0 for i in range(PARTIES)}, seed)
        drawn = np.array([assign(Row(id_, "")) for id_ in corpus.table["id"]])
        parts = {f"p{i}": corpus.select(drawn == f"p{i}") for i in range(PARTIES)}
        scenes += [
            Scene("iid", seed, parts, words, quick=False),
            Scene("natural", seed, {party: groups[party] for party in largest}, words, quick=False),
        ]
    return scenes


def _generated(seeds: list[int]) -> list[Scene]:
    """Generate documents of 25 topics; all parties have all of them, or only five."""
    scenes = []
    for seed in seeds:
        for split, shared in (("iid", 25), ("natural", 5)):
            size = Setting(PARTIES, words=1500, topics=25, shared=shared, eta=0.05, training=200, validation=1)
            made = synthetic(size, seed).parties
            words = next(iter(made.values())).vocabulary.words
            scenes.append(Scene(split, seed, made, tuple(words), quick=True))
    return scenes


def rows(found: Mapping[str, Any]) -> list[str]:
    """Format the result as a Markdown table: percents, with the minimum and maximum in brackets."""
    kinds = ["nothing", *KINDS]
    lines = [f"| | split | {' | '.join(kinds)} |", "|---" * (2 + len(kinds)) + "|"]
    for name, splits in found["poison"].items():
        for split, by_kind in splits.items():
            cells = ["no model" if by_kind[kind] is None else _percents(*by_kind[kind]) for kind in kinds]
            lines.append(f"| {name} | {split} | {' | '.join(cells)} |")
    return lines


def _percents(mean: float, least: float, most: float) -> str:
    return f"{100 * mean:+.1f} ({100 * least:+.1f}, {100 * most:+.1f})"


if __name__ == "__main__":
    print("\n".join(rows(poison(arguments("a poisoned party of five").quick))))
