"""The same five methods on every engine: models, commits, ledgers and kept models must be equal bit for bit."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.common import say
from benchmarks.engines.fixtures import outcome, prepared, texts
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish

WORDS: dict[str, Any] = {"mode": "public", "words": [f"w{i}" for i in range(60)]}
METHODS: dict[str, dict[str, Any]] = {
    "ftm": {"name": "ftm", "topics": 4, "rounds": 3, "sweeps": 10, "vocabulary": WORDS},
    "consensus": {"name": "consensus", "topics": 4, "rounds": 4, "sweeps": 3, "vocabulary": WORDS},
    "pctd": {"name": "pctd", "topics": 3, "rounds": 4, "mode": "paper", "sigma": 0.1, "vocabulary": WORDS},
    "fedlda": {"name": "fedlda", "topics": 3, "rounds": 3, "mode": "sound", "epsilon": 4.0, "vocabulary": WORDS},
    "gfedntm": {"name": "gfedntm", "topics": 3, "hidden": [8, 6], "epochs": 2, "batch_size": 16, "vocabulary": WORDS},
}


def identical(engines: list[str], quick: bool) -> dict[str, dict[str, bool]]:
    """Tell whether each method has the same result on each engine as on `local`."""
    found: dict[str, dict[str, bool]] = {}
    for method, settings in METHODS.items():
        with tempfile.TemporaryDirectory() as folder:
            template = Path(folder) / "template"
            corpora = {party: texts(i, 20 if quick else 60) for i, party in enumerate("abc")}
            prepared(template, corpora, settings)
            ends = {engine: _end(template, engine) for engine in dict.fromkeys(("local", *engines))}
        found[method] = {engine: ends[engine] == ends["local"] for engine in engines if engine != "local"}
        say(f"{method}: {found[method]}")
    return found


def _end(template: Path, engine: str) -> dict[str, Any]:
    """Finish a copy of a run; return its model, the server's state, and each party's state, ledger and kept models."""
    directory = template.with_name(engine)
    shutil.copytree(template, directory)
    run = Run.open(directory)
    model = finish(replace(run, config={**run.config, "engine": engine}))
    return {**outcome(run), "model": model.topic_word.tobytes()}  # its file also names the engine
