"""LDA trainers compared: the scores that each ends with, and how soon ours reaches them.

Peers run by their own defaults, a thousand iterations with the priors that they learn (`--quick`: 300). Ours trains as
`tt.LDA` does. Perplexity of held-out documents, NPMI and diversity are scored by one estimator, with each model's own
alpha. Each training has a process of its own and one thread; times are CPU seconds. `--parts` chooses:

curves     `to_default`, `early`, `end` and pictures; with `--fixed` also `end_fixed`, the same priors for all
auto       `auto_sweeps`: the sweep at which training ends by itself, and its gap to a long one
start      `starts`: the gain of merged clusters and of general topics, on smaller corpora
gibbs      `long_gibbs_gap`: long runs of `blocked` against collapsed Gibbs, on smaller corpora
threads    `threads2_ratio` and `threads2_ceiling`
transform  `transform_speedup`
memory     `bytes_per_token`
cold       `cold_first_fit_s`

Peers' curves are kept in `benchmarks/out`, ours only with `--keep`; those of some peers are published (see
`curve_store`), and stand in for trainings on the same kind of processor. The whole run takes many hours, most for
peers; `--quick` trains two numbers of topics at a time, so that each training has a core and a busy neighbour.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.common import OUT, call, finish, parser, say
from benchmarks.sampler import curves
from benchmarks.sampler.convergence import auto_sweeps, mean_of
from benchmarks.sampler.corpora import CORPORA, SMALL, TOGETHER, parts
from benchmarks.sampler.first_fit import cold_first_fit
from benchmarks.sampler.gibbs import long_gap
from benchmarks.sampler.memory import bytes_per_token
from benchmarks.sampler.plot import draw, save
from benchmarks.sampler.starts import compare_starts
from benchmarks.sampler.threads import threads_ratios
from benchmarks.sampler.trainers import BETA, OWN_MARKS, PACKAGES, PEERS
from tertulia.metrics import completion
from tertulia.metrics.perplexity import unigram

Result = dict[str, Any]
MANY = 1000  # topics, from which on one seed must do


def installed_peers(wanted: Sequence[str]) -> list[str]:
    """Return the installed peers; name the others, with the command that installs them."""
    for peer in wanted:
        if peer not in PEERS:
            raise SystemExit(f"--peers {peer}: choose from {','.join(PEERS)}")
        if importlib.util.find_spec(peer) is None:
            say(f"{peer} is not installed and left out: pip install {PACKAGES.get(peer, peer)}")
    return [peer for peer in wanted if importlib.util.find_spec(peer)]


def seeds_of(chosen: argparse.Namespace, K: int) -> list[int]:
    """Return the seeds of the command line, or as many as there is time for."""
    if chosen.seeds:
        return [int(seed) for seed in chosen.seeds.split(",")]
    return [1] if chosen.quick or K >= MANY else [1, 2, 3]


def compare(chosen: argparse.Namespace) -> Result:
    """Train all; return the results by key, corpus and number of topics."""
    peers = installed_peers(chosen.peers)
    plan = curves.Plan(peers, chosen.iterations, chosen.sweeps, chosen.keep, chosen.only_kept)
    result: Result = {"unigram": {corpus: floor(corpus) for corpus in chosen.corpora}}
    cells = [(corpus, K) for corpus in chosen.corpora for K in chosen.topics]
    with ThreadPoolExecutor(2 if chosen.quick else 1) as pool:
        trained = pool.map(lambda cell: curves.train_all(cell[0], cell[1], seeds_of(chosen, cell[1]), plan), cells)
        for (corpus, K), runs in zip(cells, trained, strict=True):
            found = curves.summary(runs)
            picture(corpus, K, runs, found)
            if chosen.fixed:
                same = curves.summary(curves.train_all(corpus, K, seeds_of(chosen, K), plan, fixed=True))
                found |= {f"{key}_fixed": same[key] for key in ("to_default", "end", "cpu_s")}
            for key, value in found.items():
                result.setdefault(key, {}).setdefault(corpus, {})[str(K)] = value
            say(f"{corpus} K = {K}: {json.dumps({key: found[key] for key in ('to_default', 'early', 'end', 'cpu_s')})}")
    return result


def floor(corpus: str) -> float:
    """Compute the perplexity of a single topic, the training documents' word frequencies."""
    train, heldout = parts(corpus)
    return round(completion(unigram(train, pseudo_count=BETA), 1.0, heldout).perplexity, 1)


def picture(corpus: str, K: int, runs: curves.Runs, found: Result) -> None:
    """Draw the curves and say where they are."""
    lines = {who: [run["curve"] for run in several] for who, several in runs.items()}
    paths = save(draw(lines, f"{corpus}, {K} topics"), found, OUT / "sampler" / "pictures" / f"{corpus}_{K}")
    say("drawn: " + ", ".join(str(path) for path in paths))


def settle(chosen: argparse.Namespace, before: Result, K: int) -> Result:
    """Find where `auto` ends, in runs of its own unless there were some before."""
    sweeps = 240 if chosen.quick else 1000
    found = {}
    for corpus in chosen.corpora:
        parts(corpus)  # made before workers look for it
        ended = before.get("auto", {}).get(corpus, {}).get(str(K), {})
        found[corpus] = auto_sweeps(corpus, K, min(sweeps, chosen.most), seeds_of(chosen, K), ended, keep=chosen.keep)
    means = {corpus: mean_of(several) for corpus, several in found.items()}
    each = {corpus: [one._asdict() for one in several] for corpus, several in found.items()}
    return {"auto_sweeps": means, "auto_each": each, "auto_topics": K}


def chains(chosen: argparse.Namespace) -> Result:
    """Run long chains from clusters and, without `--quick`, from random topics."""
    names, sweeps, seeds = (["grants"], 300, "1") if chosen.quick else (list(SMALL), 1000, "1,2,3,4,5,6")
    each = [int(seed) for seed in (chosen.seeds or seeds).split(",")]
    K, sweeps = min(50, max(chosen.topics)), min(sweeps, chosen.most)
    found: Result = {}
    for start in ("clusters",) if chosen.quick else ("clusters", "random"):
        for name in names:
            parts(name)
            found.setdefault(start, {})[name] = long_gap(name, K, sweeps, each, start, keep=chosen.keep)
    gaps = {start: {name: one["gap"] for name, one in several.items()} for start, several in found.items()}
    worst = max(one["ppl"] for one in gaps["clusters"].values())
    random = {"long_gibbs_gap_random": gaps["random"]} if "random" in gaps else {}
    return {"long_gibbs_gap": gaps["clusters"], **random, "long_gibbs_gap_max": worst, "long_gibbs": found}


def starts(chosen: argparse.Namespace) -> Result:
    """Compare clusters, merged or not, with and without general topics."""
    names, seeds = (["grants"], "1") if chosen.quick else ([*SMALL, *TOGETHER], "1,2,3")
    each, topics = [int(seed) for seed in (chosen.seeds or seeds).split(",")], [K for K in chosen.topics if K < MANY]
    return {"starts": {name: {str(K): compare_starts(name, K, 160, each) for K in topics} for name in names}}


def two_threads(chosen: argparse.Namespace, K: int) -> Result:
    """Compare two threads with one on the first corpus."""
    sweeps, rounds = (40, 3) if chosen.quick else (120, 7)
    found = threads_ratios(parts(chosen.corpora[0])[0], K, sweeps, rounds)
    ratio, ceiling = found["train"]["ratio"], found["train"]["ceiling"]
    return {"threads2_ratio": ratio, "threads2_ceiling": ceiling, "threads2_by_part": found}


def inference(chosen: argparse.Namespace, K: int) -> Result:
    """Compare `transform` on the first corpus, always with scikit-learn's."""
    peers = installed_peers(["sklearn"] if chosen.quick else list(dict.fromkeys([*chosen.peers, "sklearn"])))
    wanted = {"corpus": chosen.corpora[0], "topics": K, "peers": peers, "rounds": 1 if chosen.quick else 3}
    parts(chosen.corpora[0])
    found = call("benchmarks.sampler.transform", json.dumps(wanted))
    ratios = {peer: round(found[peer]["cpu_s"] / found["tertulia"]["cpu_s"], 1) for peer in peers}
    return {"transform_speedup": ratios, "transform": found}


def options() -> argparse.Namespace:
    """Read the command line."""
    command = parser("LDA trainers: perplexity, NPMI and diversity against CPU seconds")
    command.add_argument("--parts", help=f"a list from {','.join(PARTS)}; by default all")
    command.add_argument("--peers", default="tomotopy,topica", help=f"a list from {','.join(PEERS)}")
    command.add_argument("--corpora", help=f"a list from {','.join(CORPORA)}; by default all, quick: newsgroups")
    command.add_argument("--topics", help="a list of numbers; by default 50,100,1000, quick: 50,100")
    command.add_argument("--seeds", help="a list; by default 1,2,3 (1 from 1000 topics on), quick: 1")
    command.add_argument("--iterations", type=int, help="of peers; by default 1000, quick: 300")
    command.add_argument("--sweeps", type=int, help=f"of ours, at the most; by default {OWN_MARKS[-1]}, quick: 120")
    command.add_argument("--fixed", action="store_true", help="also with the same fixed priors for all")
    command.add_argument("--keep", action="store_true", help="keep our curves and use those that are kept")
    command.add_argument("--only-kept", action="store_true", help="train no peer: take curves kept or published")
    chosen = command.parse_args()
    chosen.parts = _some(chosen.parts or ",".join(PARTS), PARTS, "--parts")
    usual = "newsgroups" if chosen.quick else ",".join(CORPORA)
    chosen.corpora = _some(chosen.corpora or usual, CORPORA, "--corpora")
    chosen.topics = [int(K) for K in (chosen.topics or ("50,100" if chosen.quick else "50,100,1000")).split(",")]
    chosen.peers = chosen.peers.split(",")
    chosen.most = chosen.sweeps or 1000  # a limit of the other long parts
    chosen.sweeps = chosen.sweeps or (120 if chosen.quick else OWN_MARKS[-1])
    chosen.iterations = chosen.iterations or (300 if chosen.quick else 1000)
    return chosen


def _some(text: str, known: Sequence[str] | dict[str, Any], option: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"{option} {','.join(unknown)}: choose from {','.join(known)}")
    return names


PARTS: dict[str, Callable[[argparse.Namespace, Result], Result]] = {  # of the options and of the results before
    "curves": lambda chosen, _: compare(chosen),
    "auto": lambda chosen, before: settle(chosen, before, min(chosen.topics)),
    "start": lambda chosen, _: starts(chosen),
    "gibbs": lambda chosen, _: chains(chosen),
    "threads": lambda chosen, _: two_threads(chosen, min(100, max(chosen.topics))),
    "transform": lambda chosen, _: inference(chosen, min(100, max(chosen.topics))),
    "memory": lambda chosen, _: {"bytes_per_token": bytes_per_token(4_000_000 if chosen.quick else 8_000_000)},
    "cold": lambda _, __: {"cold_first_fit_s": cold_first_fit()},
}


def main() -> None:
    """Run the chosen parts; print the results of each when it is done, and all of them at the end."""
    chosen = options()
    result: Result = {"benchmark": "sampler", "quick": chosen.quick}
    for name in chosen.parts:
        found = PARTS[name](chosen, result)
        say(f"{name}: {json.dumps(found)}")
        result |= found
    finish(result)


if __name__ == "__main__":
    main()
