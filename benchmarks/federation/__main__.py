"""What federating is worth, on 20 Newsgroups: each party alone, the federation, and everything in one place.

Twice: `natural`, the six super-groups as parties, and `iid`, six random parties sized 1:2:3:4:5:6. Everybody trains on
the same documents with the same total of sweeps. 15 % of the documents are scored on by document completion, another
10 % serve parties to choose a model by (`best_for`). All models are mixed with the same share of the uniform
distribution (`SMOOTHING`), since a single party has never seen some words.

On everyone's documents stand beside FTM: the best party alone, the parties' models side by side (the concatenation:
what a merge must be compared with), Consensus, and pooled models of as many topics as were asked for, and as FTM has.
On a party's own documents every model gets a prior over its topics that is fitted to the party's training documents,
the party's own model too; gains are its perplexity over the other model's. The control beside them is `own_twice`: two
models that the party trained alone, side by side, which need no federation. `--quick` takes a quarter of the documents.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.common import finish, newsgroups, parser, say
from benchmarks.federation.judge import HELDOUT, SMOOTHING, VALIDATION, Judge, flat, side_by_side
from benchmarks.federation.parties import iid, natural
from tertulia import FTM, Centralised, Consensus, Corpus, FederatedTopics, Topics

SWEEPS = 50  # in each round
WORDS = {"min_documents": 10, "max_share": 0.5, "max_words": 8000}
SPLITS: dict[str, dict[str, Any]] = {"natural": {"topics": 20, "rounds": 3}, "iid": {"topics": 40, "rounds": 4}}
START, TOGETHER = 20, 10  # Consensus: sweeps before merging, and in each round of counting together
Figures = dict[str, Any]


def gains(judge: Judge, ftm: FederatedTopics, consensus: FederatedTopics, pooled: Topics) -> Figures:
    """What models are worth on each party's own documents: perplexity of the party alone over the model's."""
    found: dict[str, dict[str, float]] = {}
    for party, choice in ftm.choices.items():
        alone = judge.own(choice.alone, party)
        twice = side_by_side(choice.alone, consensus.choices[party].alone)  # Consensus had them train alone again
        scores = {
            "own_gain": judge.own(ftm.best_for(party), party),
            "own_twice": judge.adapt(twice, party),
            "global": judge.adapt(ftm, party),
            "composed": judge.adapt(ftm.local[party], party),
            "consensus_best_for": judge.own(consensus.best_for(party), party),
            "pooled": judge.adapt(pooled, party),
        }
        for name, score in scores.items():
            found.setdefault(name, {})[party] = alone / score
    chosen = {party: choice.best.provenance["chosen"] for party, choice in ftm.choices.items()}
    return {**found, "chosen": chosen}


def scenario(name: str, parties: Mapping[str, Corpus], seed: int, workers: int) -> Figures:
    """One split with one seed, from beginning to end."""
    K, rounds = SPLITS[name]["topics"], SPLITS[name]["rounds"]
    total = rounds * SWEEPS
    common: dict[str, Any] = {"heldout": HELDOUT, "validation": VALIDATION, "seed": seed, "workers": workers}
    started = time.perf_counter()
    ftm = FTM(topics=K, rounds=rounds, sweeps=SWEEPS, vocabulary=WORDS, evaluate=False).fit(parties, **common)
    seconds = time.perf_counter() - started
    judge = Judge(parties, ftm)
    words = {"mode": "public", "words": ftm.vocabulary.words}
    consensus = Consensus(
        topics=K, start_sweeps=START, rounds=(total - START) // TOGETHER, sweeps=TOGETHER, vocabulary=words,
        evaluate=False,
    ).fit(parties, **common)  # fmt: skip
    pooled = {
        topics: Centralised(topics=topics, sweeps=total, vocabulary=words).fit(parties, **common)
        for topics in sorted({K, ftm.n_topics})
    }
    alone = [flat(choice.alone.topic_word, ftm) for choice in ftm.choices.values()]
    result = {
        "seed": seed,
        "topics": ftm.n_topics,
        "ppl_single_best": min(judge.everyone(model) for model in alone),
        "ppl_concatenation": judge.everyone(side_by_side(*alone)),
        "ppl_federated": judge.everyone(ftm),
        "ppl_consensus": judge.everyone(consensus),
        "ppl_pooled": judge.everyone(pooled[K]),
        "ppl_pooled_same_topics": judge.everyone(pooled[ftm.n_topics]),
        **gains(judge, ftm, consensus, pooled[ftm.n_topics]),
        "bytes_up": ftm.communication.bytes_up,
        "bytes_down": ftm.communication.bytes_down,
        "seconds": seconds,
    }
    report(name, result)
    return result


def report(name: str, result: Figures) -> None:
    """Say how it went."""
    own = [f"{key} {_spread(result[key].values())}" for key in ("own_gain", "own_twice", "global", "pooled")]
    say(
        f"{name}, seed {result['seed']}: single {result['ppl_single_best']:.0f}, concatenation "
        f"{result['ppl_concatenation']:.0f}, federated {result['ppl_federated']:.0f} ({result['topics']} topics), "
        f"Consensus {result['ppl_consensus']:.0f}, pooled {result['ppl_pooled']:.0f} / "
        f"{result['ppl_pooled_same_topics']:.0f}; own documents: {', '.join(own)}; chosen {result['chosen']}"
    )


def _spread(values: Any) -> str:
    values = list(values)
    return f"{sum(values) / len(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def over_seeds(runs: list[Figures]) -> Figures:
    """Each figure's mean, smallest and largest value over seeds; gains over parties first."""

    def summary(values: list[float]) -> dict[str, float]:
        return {"mean": float(np.mean(values)), "min": min(values), "max": max(values)}

    numbers = [key for key in runs[0] if key.startswith("ppl_") or key == "topics"]
    found: Figures = {key: summary([run[key] for run in runs]) for key in numbers}
    for key in ("own_gain", "own_twice", "global", "composed", "consensus_best_for", "pooled"):
        means = [float(np.mean(list(run[key].values()))) for run in runs]
        found[key] = {**summary(means), "worst_party": min(min(run[key].values()) for run in runs)}
    return found


def main() -> None:
    """Run the benchmark."""
    command = parser("Federated, single and pooled LDA on 20 Newsgroups")
    command.add_argument("--seeds", help="a list of seeds; 0,1,2, or with --quick 0")
    command.add_argument("--workers", type=int, default=2, help="parties that train at the same time")
    arguments = command.parse_args()
    seeds = [int(seed) for seed in (arguments.seeds or ("0" if arguments.quick else "0,1,2")).split(",")]
    corpus = newsgroups(min_documents=1, max_share=1.0, label="party")
    if arguments.quick:
        corpus = corpus.split(0.25, seed=1)[1]
    result: Figures = {"benchmark": "federation", "smoothing": SMOOTHING, "seeds": seeds}
    for name, cut in {"natural": natural, "iid": iid}.items():
        runs = [scenario(name, cut(corpus, seed), seed, arguments.workers) for seed in seeds]
        result[name] = {**over_seeds(runs), "runs": runs}
    finish(result)


if __name__ == "__main__":
    main()
