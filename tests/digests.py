"""Digests of models trained with fixed seeds and noise keys: a change that must not change results is checked by them.

    python tests/digests.py before.json            # in the tree before the change
    python tests/digests.py --against before.json  # in the tree after it: names what differs, exit code 1 if anything

Bits of floating-point results belong to a machine, so digests are compared on one, and never stored in the repository.
Only public names are used here, so the script runs on any layout of the package.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import secrets
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tertulia as tt

STEMS = ["river", "engine", "violin", "garden", "market", "harbour"]


def texts(seed: int, n: int) -> list[str]:
    """Documents of two themes each, of a few sentences."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        themes = rng.choice(len(STEMS), 2, replace=False)
        words = [f"{STEMS[themes[rng.integers(2)]]}{'abcdefgh'[rng.integers(8)]}" for _ in range(24)]
        found.append(". ".join(" ".join(words[i : i + 6]) for i in range(0, 24, 6)) + ".")
    return found


PARTIES = {"north": texts(1, 60), "south": texts(2, 40), "west": texts(3, 50)}
WORDS = tuple(sorted({word.strip(".") for document in PARTIES["north"] for word in document.split()}))
PUBLIC = {"mode": "public", "words": WORDS}
SMALL: dict[str, Any] = {"topics": 4, "rounds": 2, "vocabulary": PUBLIC}


def federated() -> Iterator[tuple[str, Any]]:
    """Every method and mode, with each sampler, channel and way of averaging."""
    lda = SMALL | {"sweeps": 6}
    for sampler in ("auto", "blocked", "gibbs", "sparse", "warp"):
        yield f"ftm clear {sampler}", tt.FTM(**lda, sampler=sampler)
        yield f"alone {sampler}", tt.NonCollaborative(topics=4, sweeps=6, vocabulary=PUBLIC, sampler=sampler)
    yield "ftm union of words", tt.FTM(topics=4, rounds=2, sweeps=6)
    yield "centralised", tt.Centralised(topics=4, sweeps=6, vocabulary=PUBLIC)
    yield "consensus clear", tt.Consensus(**lda)
    yield "consensus, alpha given", tt.Consensus(**lda, learn_alpha=False)
    yield "ftm, alpha given", tt.FTM(**lda, learn_alpha=False)
    for model in ("lda", "sentence"):
        yield f"ftm clear {model}", tt.FTM(**lda, model=model)
        yield f"ftm paper {model}", tt.FTM(**lda, model=model, mode="paper", epsilon=9.0)
        for channel in ("krr", "subset", "laplace"):
            yield f"ftm sound {model} {channel}", tt.FTM(**lda, model=model, mode="sound", epsilon=5.0, channel=channel)
    yield "ftm sound, alpha learned", tt.FTM(**lda, mode="sound", epsilon=5.0, learn_alpha=True)
    yield "ftm sound warp", tt.FTM(**lda, mode="sound", epsilon=5.0, channel="krr", sampler="warp")
    for channel in ("krr", "subset", "laplace"):
        yield f"consensus sound {channel}", tt.Consensus(**lda, mode="sound", epsilon=5.0, channel=channel)
    for sampler in ("gibbs", "mh"):
        yield f"fedlda clear {sampler}", tt.FedLDA(**SMALL, sampler=sampler)
    for bookkeeping in ("converging", "paper"):
        for mechanism in ("rrp", "krr", "tkrr", "hm"):
            yield (
                f"fedlda {mechanism} {bookkeeping}",
                tt.FedLDA(**SMALL, mode="paper", epsilon=5.0, mechanism=mechanism, paper={"bookkeeping": bookkeeping}),
            )
    for channel in ("krr", "subset"):
        yield f"fedlda sound {channel}", tt.FedLDA(**SMALL, mode="sound", epsilon=5.0, channel=channel)
    yield "pctd clear", tt.PCTD(**SMALL)
    yield "pctd clear sentences", tt.PCTD(**SMALL, unit="sentence")
    yield "pctd paper", tt.PCTD(**SMALL, mode="paper")
    yield from neural()


def neural() -> Iterator[tuple[str, Any]]:
    """gFedNTM's ways of training."""
    common: dict[str, Any] = {"topics": 4, "epochs": 3, "batch_size": 32, "hidden": (16, 16), "vocabulary": PUBLIC}
    for normalisation in ("sync", "batch", "layer"):
        yield f"gfedntm syncopt {normalisation}", tt.GFedNTM(**common, normalisation=normalisation)
    yield "gfedntm fp16", tt.GFedNTM(**common, compression="fp16")
    yield "gfedntm topk", tt.GFedNTM(**common, paper={"keep": 0.1})
    for averaging in ("fedavg", "fedadam"):
        yield f"gfedntm {averaging}", tt.GFedNTM(**common, averaging=averaging, local_steps=4)
    for scenario in ("alone", "centralised"):
        yield f"gfedntm {scenario}", tt.GFedNTM(**common, scenario=scenario)
    yield "gfedntm validation", tt.GFedNTM(**common, validation=0.25)
    yield "gfedntm combinedtm", tt.GFedNTM(**common, model="combinedtm", averaging="fedavg", local_steps=4)


def one_machine() -> Iterator[tuple[str, Any]]:
    """Trainers without parties."""
    for sampler in ("auto", "blocked", "gibbs", "sparse", "warp"):
        yield f"tt.LDA {sampler}", tt.LDA(topics=4, sweeps=6, sampler=sampler)
    yield "tt.LDA until it has settled", tt.LDA(topics=4)
    yield "tt.LDA, alpha given", tt.LDA(topics=4, sweeps=60, learn_alpha=False)
    yield "tt.ProdLDA", tt.ProdLDA(topics=4, epochs=3, hidden=(16, 16))
    yield "tt.ZeroShotTM", tt.ZeroShotTM(topics=4, epochs=3, hidden=(16, 16))


def digest(model: Any) -> str:
    """A hash of a model's arrays, its parties' own models included."""
    sha = hashlib.sha256()
    for topics in (model, *(local for _, local in sorted(getattr(model, "local", {}).items()))):
        for array in (topics.topic_word, topics.alpha, topics.weights):
            sha.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()[:16]


def fit(method: Any, engine: str, where: Path) -> Any:
    """Train in a fresh directory, with known noise keys and one and the same name of the run."""
    settings = {}
    for number, party in enumerate(PARTIES):
        home = where / "homes" / party
        home.mkdir(parents=True)
        begun = home / "noise.key.new"  # as if a home were being made, and its key were there before its ledger
        begun.write_bytes(bytes([number]) * 32)
        begun.chmod(0o600)
        settings[party] = {"home": str(home)}
    return method.fit(PARTIES, engine=engine, seed=7, directory=where / "run", party_settings=settings)


def digests() -> dict[str, str]:
    """Train all models and return their digests; a model that cannot be trained raises its error."""
    secrets.token_hex = lambda n=None: "0" * 16  # type: ignore[assignment]  # noise depends on the run's name
    found = {}
    jobs = [(f"{name}, {engine}", method, engine) for name, method in federated() for engine in _engines(name)]
    for name, method, engine in [*jobs, *((name, trainer, "") for name, trainer in one_machine())]:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as where:
            model = fit(method, engine, Path(where)) if engine else method.fit(PARTIES["north"], seed=7)
            found[name] = digest(model)
        print(f"{found[name]}  {time.perf_counter() - started:6.1f} s  {name}", file=sys.stderr)
    return found


def _engines(name: str) -> tuple[str, ...]:
    """One run of each method also goes through processes, which take a second to start."""
    chosen = ("ftm sound lda krr", "consensus clear", "fedlda krr converging", "pctd paper", "gfedntm syncopt sync")
    return ("local", "processes") if name in chosen else ("local",)


def main() -> int:
    """Write the digests, or compare them with earlier ones."""
    parser = argparse.ArgumentParser(description="Digests of trained models.")
    parser.add_argument("write", nargs="?", type=Path, help="where to write them")
    parser.add_argument("--against", type=Path, help="earlier ones to compare with")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = digests()
    if options.write:
        options.write.write_text(json.dumps(found, indent=1))
    if options.against is None:
        return 0
    before = json.loads(options.against.read_text())
    changed = [name for name in sorted(before.keys() | found.keys()) if before.get(name) != found.get(name)]
    print(f"{len(before.keys() | found.keys()) - len(changed)} equal, {len(changed)} changed", *changed, sep="\n  ")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
