"""LDA trainers side by side: who reaches which held-out perplexity in how much time.

The same documents, number of topics and fixed priors for everybody; each training runs in a process of its own, in
turn, so that a busy moment of the machine hits all. A peer trains for a fixed number of sweeps; `speedup` is its CPU
seconds over ours until we stay at or below the perplexity that it reached. topica runs with two of its samplers, and
the harder one counts. The whole run takes hours; `--quick` takes a slice of IMDB, two peers and one round.

Topics drawn at random score like a single topic, the word frequencies (`unigram`). A ratio against a peer that has not
beaten those flatters us, since our warm start is there before the first sweep: `above_unigram` names such peers. With
few documents for the topics asked (5,000 reviews, 60 sweeps) that is what happens; `--documents 20000` can decide.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import OUT, call, finish, imdb, newsgroups, parser, say, split_heldout
from benchmarks.generated import generate
from benchmarks.sampler.memory import bandwidth, bytes_per_token, passes
from benchmarks.sampler.plot import draw, save
from benchmarks.sampler.threads import threads_ratios
from benchmarks.sampler.trainers import BETA, PACKAGES, PEERS, VARIATIONAL, Task
from benchmarks.sampler.worker import measure
from tertulia.corpus import Corpus
from tertulia.corpus.splits import is_heldout
from tertulia.metrics import completion
from tertulia.metrics.perplexity import unigram

SWEEPS = {100: 60, 1000: 20}
PASSES = {100: 10, 1000: 2}  # of the variational peers

Run = dict[str, Any]  # a worker's answer: curve, rss_mb
Parts = tuple[Corpus, Corpus]  # to train on, held out


def installed_peers(wanted: Sequence[str]) -> list[str]:
    """The peers that are here; those that are not are named, with the remedy."""
    for peer in wanted:
        if peer not in PEERS:
            raise SystemExit(f"--peers {peer}: choose from {','.join(PEERS)}")
        if importlib.util.find_spec(peer) is None:
            say(f"{peer} is not installed and left out: pip install {PACKAGES.get(peer, peer)}")
    return [peer for peer in wanted if importlib.util.find_spec(peer)]


def trainers(peers: Sequence[str]) -> list[str]:
    """Ours and theirs, by the names that workers know."""
    kinds = {"topica": ["topica:warp", "topica:sparse"]}
    return ["tertulia", *(kind for peer in peers for kind in kinds.get(peer, [peer]))]


def imdb_parts(reviews: int | None) -> Parts:
    """IMDB, or only so many of its reviews."""
    return imdb(training=reviews, min_documents=3 if reviews and reviews <= 5000 else 5)


def newsgroups_parts() -> Parts:
    """20 Newsgroups, a twentieth held out."""
    groups = newsgroups(min_documents=1, max_share=1.0)
    return split_heldout(groups, np.array([is_heldout(name, 0.05, 0) for name in groups.table["id"]]), 5)


def generated_parts(directory: Path) -> Parts:
    """Ten million tokens of a known model."""
    made = generate(directory / "made", 10_000_000)
    return split_heldout(made, np.arange(made.n_documents) < 1000, 1)


def corpora(names: Sequence[str], reviews: int | None, directory: Path) -> dict[str, Corpus]:
    """Write the corpora in two parts to where workers find them; return those to train on."""
    makers: dict[str, Callable[[], Parts]] = {
        "imdb": partial(imdb_parts, reviews),
        "newsgroups": newsgroups_parts,
        "generated": partial(generated_parts, directory),
    }
    if unknown := set(names) - set(makers):
        raise SystemExit(f"--corpora {','.join(unknown)}: choose from {','.join(makers)}")
    sources = {f"{name}{reviews or ''}" if name == "imdb" else name: makers[name]() for name in names}
    for name, parts in sources.items():
        for part, corpus in zip(("train", "heldout"), parts, strict=True):
            corpus.save(directory / name / part)
        say(f"{name}: {parts[0]}")
    return {name: train for name, (train, _) in sources.items()}


def rounds(directory: Path, K: int, names: Sequence[str], n: int, threads: int) -> dict[str, list[Run]]:
    """Train everybody n times in turn."""
    found: dict[str, list[Run]] = {name: [] for name in names}
    for seed in range(1, n + 1):
        for name in names:
            budget = PASSES[K] if name in VARIATIONAL else SWEEPS[K]
            found[name].append(run := measure(Task(name, str(directory), K, budget, threads, seed)))
            points = [f"{p['cpu_s']:.2f} s {p['perplexity']:.0f}" for p in run["curve"]]
            say(f"{directory.name} K = {K} {name} ({threads} thread{'s'[: threads - 1]}): {', '.join(points)}")
    return found


def time_to(curve: Sequence[Mapping[str, float]], perplexity: float, clock: str) -> float | None:
    """From when on a curve stays at or below a perplexity, by straight lines between points; None if it ends above."""
    after = None
    for point in reversed(curve):
        if point["perplexity"] > perplexity:
            if after is None:
                return None
            drop = (point["perplexity"] - perplexity) / (point["perplexity"] - after["perplexity"])
            return point[clock] + drop * (after[clock] - point[clock])
        after = point
    return None if after is None else after[clock]


def above(found: Mapping[str, Sequence[Run]], unigram: float) -> list[str]:
    """The peers that have not beaten the word frequencies."""
    ends = {name: max(run["curve"][-1]["perplexity"] for run in runs) for name, runs in found.items()}
    return [name for name, perplexity in ends.items() if name != "tertulia" and perplexity >= unigram]


def speedups(found: Mapping[str, Sequence[Run]], clock: str = "cpu_s") -> dict[str, float | str]:
    """Each peer's seconds over ours to where it ended, the median of the rounds; or in words why there is none."""
    ratios: dict[str, float | str] = {}
    for name, runs in found.items():
        if name == "tertulia":
            continue
        ends = [run["curve"][-1] for run in runs]
        times = [
            time_to(own["curve"], end["perplexity"], clock) for own, end in zip(found["tertulia"], ends, strict=True)
        ]
        if any(mine is None for mine in times):
            ratios[name] = "we have not reached the peer"
        else:
            each = [end[clock] / mine for end, mine in zip(ends, times, strict=True) if mine]
            ratios[name] = round(statistics.median(each), 2)
    return ratios


def hardest(ratios: Mapping[str, float | str]) -> dict[str, float | None]:
    """One number per peer, the smallest over its kinds; None unless all of them have one."""
    kinds: dict[str, list[float | str]] = {}
    for name, ratio in ratios.items():
        kinds.setdefault(name.partition(":")[0], []).append(ratio)
    numbers = {peer: [r for r in found if not isinstance(r, str)] for peer, found in kinds.items()}
    return {peer: min(found) if len(found) == len(kinds[peer]) else None for peer, found in numbers.items()}


def rates(found: Mapping[str, Sequence[Run]], tokens: int) -> dict[str, int]:
    """Tokens per CPU second of everybody's sweeps, warm start and set-up not counted where they can be separated."""
    result = {}
    for name, runs in found.items():
        curve = runs[0]["curve"]
        first = [point for point in curve if point["sweeps"] == 0][-1] if name == "tertulia" else curve[0]
        last = curve[-1]
        result[name] = round(tokens * (last["sweeps"] - first["sweeps"]) / (last["cpu_s"] - first["cpu_s"]))
    return result


def import_seconds(times: int = 5) -> float:
    """What `import tertulia` costs a fresh process, the median."""
    code = "import time; t = time.perf_counter(); import tertulia; print(time.perf_counter() - t)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(times)
    ]
    return statistics.median(float(run.stdout) for run in runs)


def baseline(directory: Path) -> float:
    """The perplexity of a single topic, the training documents' word frequencies."""
    train, heldout = (Corpus.load(directory / part) for part in ("train", "heldout"))
    return completion(unigram(train, pseudo_count=BETA), 1.0, heldout).perplexity


def compare(
    name: str, corpus: Corpus, directory: Path, topics: Sequence[int], peers: Sequence[str], n: int
) -> dict[str, Any]:
    """Everything about one corpus."""
    found = {K: rounds(directory / name, K, trainers(peers), n, 1) for K in topics}
    floor = baseline(directory / name)
    by_kind = {str(K): speedups(runs) for K, runs in found.items()}
    for K, ratios in by_kind.items():
        say(f"{name} K = {K}, unigram {floor:.0f}: " + "; ".join(f"{kind}: {ratio}" for kind, ratio in ratios.items()))
    result = {
        "speedup": {K: hardest(ratios) for K, ratios in by_kind.items()},
        "unigram": round(floor, 1),
        "speedup_by_sampler": {
            K: {k: r for k, r in kinds.items() if not isinstance(r, str)} for K, kinds in by_kind.items()
        },
        "above_unigram": {str(K): above(runs, floor) for K, runs in found.items()},
        "undecided": {K: {k: r for k, r in kinds.items() if isinstance(r, str)} for K, kinds in by_kind.items()},
        "tokens_per_cpu_s": {str(K): rates(runs, corpus.n_tokens) for K, runs in found.items()},
        "rss_mb": {str(K): {kind: round(runs[0]["rss_mb"]) for kind, runs in r.items()} for K, r in found.items()},
        "curves": {str(K): {kind: runs[0]["curve"] for kind, runs in r.items()} for K, r in found.items()},
    }
    picture(name, corpus, result)
    return result


def picture(name: str, corpus: Corpus, result: Mapping[str, Any]) -> None:
    """Draw the curves and say where they are."""
    label = {kind: kind.replace(":", " ") for runs in result["curves"].values() for kind in runs}
    curves = {f"{K} topics": {label[k]: c for k, c in runs.items()} for K, runs in result["curves"].items()}
    ratios = {
        f"{K} topics": {label[k]: r for k, r in found.items()} for K, found in result["speedup_by_sampler"].items()
    }
    title = f"{name}: {corpus.n_documents:,} documents, {corpus.n_tokens:,} tokens, {len(corpus.vocabulary):,} words"
    paths = save(draw(curves, ratios, result["unigram"], title), result, OUT / f"sampler_{name}")
    say("drawn: " + ", ".join(str(path) for path in paths))


def two_threads(name: str, directory: Path, topics: Sequence[int], peers: Sequence[str], n: int) -> dict[str, Any]:
    """The same with two threads each, by the clock on the wall."""
    return {str(K): speedups(rounds(directory / name, K, trainers(peers), n, 2), "wall_s") for K in topics}


def inference(name: str, directory: Path, peers: Sequence[str], n: int) -> dict[str, dict[str, float]]:
    """The race of `transform`."""
    task = Task("tertulia", str(directory / name), 100, SWEEPS[100])
    wanted = {"task": asdict(task), "peers": list(peers), "rounds": n}
    found: dict[str, dict[str, float]] = call("benchmarks.sampler.transform", json.dumps(wanted))
    for peer, run in found.items():
        say(f"transform, {peer}: {run['cpu_s']:.3f} s, perplexity {run['perplexity']:.0f}")
    return found


def options() -> argparse.Namespace:
    """Read the command line."""
    command = parser("LDA trainers: perplexity against time")
    command.add_argument("--peers", help=f"a list from {','.join(PEERS)}; by default all, with --quick the samplers")
    command.add_argument("--corpora", help="a list from imdb,newsgroups,generated; by default all, with --quick imdb")
    command.add_argument("--documents", type=int, help="only so many of IMDB's; by default all, with --quick 5000")
    command.add_argument("--topics", default=",".join(map(str, SWEEPS)), help="a list from 100,1000; by default both")
    command.add_argument("--rounds", type=int, help="of which the median counts; by default 3, with --quick 1")
    return command.parse_args()


def main() -> None:
    """Run the benchmark."""
    chosen = options()
    quick, topics = chosen.quick, [int(K) for K in chosen.topics.split(",")]
    if unknown := set(topics) - set(SWEEPS):
        raise SystemExit(f"--topics {unknown}: choose from {','.join(map(str, SWEEPS))}")
    n = chosen.rounds or (1 if quick else 3)
    peers = installed_peers((chosen.peers or ("tomotopy,topica" if quick else ",".join(PEERS))).split(","))
    inferring = installed_peers(["sklearn"]) if quick and not chosen.peers else []
    names = (chosen.corpora or ("imdb" if quick else "imdb,newsgroups,generated")).split(",")
    with tempfile.TemporaryDirectory(prefix="tertulia-") as temporary:
        directory = Path(temporary)
        read = corpora(names, chosen.documents or (5000 if quick else None), directory)
        bound = bandwidth()
        results = {name: compare(name, corpus, directory, topics, peers, n) for name, corpus in read.items()}
        main_name, main_corpus = next(iter(read.items()))
        transform = inference(main_name, directory, [*peers, *inferring], n)
        mine = transform["tertulia"]["cpu_s"]
        threads = threads_ratios(main_corpus, 100, SWEEPS[100], 5 if quick else 3)
        extra = {} if quick else {"speedup_threads2": two_threads(main_name, directory, topics, peers, n)}
        finish(
            {
                "benchmark": "sampler",
                "corpus": main_name,
                **{key: value for key, value in results[main_name].items() if key != "curves"},
                "bytes_per_token": round(bytes_per_token(directory, 8_000_000), 2),
                "threads2_ratio": threads["train"]["ratio"],
                "threads2_ceiling": threads["train"]["ceiling"],
                "threads2_by_part": threads,
                "transform_speedup": {
                    p: round(run["cpu_s"] / mine, 1) for p, run in transform.items() if p != "tertulia"
                },
                "transform": transform,
                "import_s": round(import_seconds(), 3),
                "bandwidth": bound,
                "passes": {str(K): passes(main_corpus, K, bound["read_gb_s"]) for K in topics},
                **extra,
                **({} if quick else {"corpora": results}),
            }
        )


if __name__ == "__main__":
    main()
