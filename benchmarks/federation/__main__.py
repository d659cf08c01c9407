"""What federating is worth, on 20 Newsgroups: each party alone, the federation, and everything in one place.

Twice: `natural`, the six super-groups as parties, and `iid`, six random parties sized 1:2:3:4:5:6. FTM and Consensus
are taken as they come, with their default rounds and sweeps: 250 sweeps in all for FTM, 60 for Consensus. So there are
two budgets, and everything that is compared stands under both: parties alone and pooled models with 60 sweeps and with
250, Consensus with 250 (`consensus_long`). `pooled_converged` is `tt.LDA` with its own default, sweeps until perplexity
has settled. 15 % of the documents are scored on by document completion, another 10 % serve parties to choose a model
by (`best_for`). All models are mixed with the same share of the uniform distribution (`SMOOTHING`), since a single
party has never seen some words. All learn alpha.

On everyone's documents stand beside FTM: the best party alone, the parties' models side by side (the concatenation:
what a merge must be compared with), and pooled models of as many topics as were asked for, and as FTM has.
On a party's own documents every model gets a prior over its topics that is fitted to the party's training documents,
the party's own model too; gains are the perplexity of the party alone over the other model's. Alone has 250 sweeps,
and beside `consensus_best_for` 60, as Consensus has. The control beside them is `own_twice`: two models that the party
trained alone, side by side, which need no federation. `--quick` takes a quarter of the documents.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import finish, newsgroups, parser, say
from benchmarks.federation.judge import HELDOUT, SMOOTHING, VALIDATION, Judge, flat, side_by_side
from benchmarks.federation.parties import iid, natural
from tertulia import FTM, LDA, Consensus, Corpus, FederatedTopics, Pooled, Topics

WORDS = {"min_documents": 10, "max_share": 0.5, "max_words": 8000}
TOPICS = {"natural": 20, "iid": 40}
BUDGETS = {"short": Consensus().sweeps_alone, "long": FTM().sweeps_alone}  # sweeps in all: Consensus's default, FTM's
SHORT, LONG = (budget.per_round * budget.rounds + budget.more for budget in BUDGETS.values())
TOGETHER = 10  # sweeps in each round of Consensus with the longer budget
GAINS = ("own_gain", "own_twice", "global", "composed", "consensus_best_for", "consensus_long_best_for", "pooled")
Figures = dict[str, Any]


class Trained(NamedTuple):
    """All models of one split and seed."""

    ftm: FederatedTopics
    consensus: FederatedTopics
    consensus_long: FederatedTopics
    pooled: dict[str, Topics]


def train(parties: Mapping[str, Corpus], K: int, seed: int, workers: int) -> Trained:
    """Train everything on the same documents and words."""
    common: dict[str, Any] = {"heldout": HELDOUT, "validation": VALIDATION, "seed": seed, "workers": workers}
    ftm = FTM(topics=K, vocabulary=WORDS, evaluate=False).fit(parties, **common)
    words = {"mode": "public", "words": ftm.vocabulary.words}
    together: dict[str, Any] = {"topics": K, "vocabulary": words, "evaluate": False}
    rounds = (LONG - Consensus().start_sweeps) // TOGETHER
    training = Corpus.concatenate([corpus.split(HELDOUT + VALIDATION)[0] for corpus in parties.values()])
    pooled: dict[str, Topics] = {
        name: Pooled(topics=topics, sweeps=sweeps, vocabulary=words).fit(parties, **common)
        for name, topics, sweeps in (("short", K, SHORT), ("long", K, LONG), ("same_topics", ftm.n_topics, LONG))
    }
    pooled["converged"] = LDA(topics=K, vocabulary=words).fit(training, seed=seed).topics_
    return Trained(
        ftm,
        Consensus(**together).fit(parties, **common),
        Consensus(**together, rounds=rounds, sweeps=TOGETHER).fit(parties, **common),
        pooled,
    )


def gains(judge: Judge, models: Trained) -> Figures:
    """Measure models on each party's own documents: perplexity of the party alone over the model's."""
    found: dict[str, dict[str, float]] = {}
    ftm = models.ftm
    for party, choice in ftm.choices.items():
        alone = judge.own(choice.alone, party)
        twice = side_by_side(choice.alone, models.consensus_long.choices[party].alone)  # trained alone again for it
        scores = {
            "own_gain": judge.own(ftm.best_for(party), party),
            "own_twice": judge.adapt(twice, party),
            "global": judge.adapt(ftm, party),
            "composed": judge.adapt(ftm.local[party], party),
            "consensus_best_for": judge.own(models.consensus.best_for(party), party),
            "consensus_long_best_for": judge.own(models.consensus_long.best_for(party), party),
            "pooled": judge.adapt(models.pooled["same_topics"], party),
        }
        short = judge.own(models.consensus.choices[party].alone, party)
        for name, score in scores.items():
            found.setdefault(name, {})[party] = (short if name == "consensus_best_for" else alone) / score
    chosen = {party: choice.best.provenance["chosen"] for party, choice in ftm.choices.items()}
    return {**found, "chosen": chosen}


def scenario(name: str, parties: Mapping[str, Corpus], seed: int, workers: int) -> Figures:
    """Run one split with one seed, from beginning to end."""
    started = time.perf_counter()
    models = train(parties, TOPICS[name], seed, workers)
    ftm, judge = models.ftm, Judge(parties, models.ftm)
    alone = [flat(choice.alone.topic_word, ftm) for choice in ftm.choices.values()]
    short = [flat(choice.alone.topic_word, ftm) for choice in models.consensus.choices.values()]
    result = {
        "seed": seed,
        "topics": ftm.n_topics,
        "ppl_single_best_short": min(judge.everyone(model) for model in short),
        "ppl_single_best": min(judge.everyone(model) for model in alone),
        "ppl_concatenation": judge.everyone(side_by_side(*alone)),
        "ppl_federated": judge.everyone(ftm),
        "ppl_consensus": judge.everyone(models.consensus),
        "ppl_consensus_long": judge.everyone(models.consensus_long),
        **{f"ppl_pooled_{budget}": judge.everyone(model) for budget, model in models.pooled.items()},
        "sweeps_converged": models.pooled["converged"].provenance["sweeps"],
        **gains(judge, models),
        "bytes_up": ftm.communication.bytes_up,
        "bytes_down": ftm.communication.bytes_down,
        "seconds": time.perf_counter() - started,
    }
    report(name, result)
    return result


def report(name: str, result: Figures) -> None:
    """Say how it went."""
    own = [f"{key} {_spread(result[key].values())}" for key in ("own_gain", "own_twice", "global", "pooled")]
    everyone = [f"{key[4:]} {value:.0f}" for key, value in result.items() if key.startswith("ppl_")]
    say(
        f"{name}, seed {result['seed']}: {', '.join(everyone)}; FTM has {result['topics']} topics; own documents: "
        f"{', '.join(own)}; chosen {result['chosen']}"
    )


def _spread(values: Any) -> str:
    values = list(values)
    return f"{sum(values) / len(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def over_seeds(runs: list[Figures]) -> Figures:
    """Return each figure's mean, smallest and largest value over seeds; gains over parties first."""

    def summary(values: list[float]) -> dict[str, float]:
        return {"mean": float(np.mean(values)), "min": min(values), "max": max(values)}

    numbers = [key for key in runs[0] if key.startswith("ppl_") or key in ("topics", "sweeps_converged")]
    found: Figures = {key: summary([run[key] for run in runs]) for key in numbers}
    for key in GAINS:
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
    result: Figures = {"benchmark": "federation", "smoothing": SMOOTHING, "seeds": seeds, "sweeps": [SHORT, LONG]}
    for name, cut in {"natural": natural, "iid": iid}.items():
        runs = [scenario(name, cut(corpus, seed), seed, arguments.workers) for seed in seeds]
        result[name] = {**over_seeds(runs), "runs": runs}
    finish(result)


if __name__ == "__main__":
    main()
