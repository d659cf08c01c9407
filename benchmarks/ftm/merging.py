"""How many topics FTM ends with, and what that costs: merging one to one against the papers' union-find.

A quarter of 20 Newsgroups (V = 2,000) in random halves or thirds, and by super-group; LDA and SentenceLDA; 4 rounds of
30 sweeps, 120 for those alone. Perplexity of everyone's held-out documents. Beside each merge stand the best party
alone and the parties' models side by side, which is what a merge that merges nothing gives.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.common import finish, parser, say
from benchmarks.ftm.parties import HELDOUT, SIX, World, at_random, cut, groups, world
from tertulia import FTM, Consensus, Corpus, NonCollaborative, Topics
from tertulia.methods.ftm.alignment import MergeWarning

ROUNDS, SWEEPS = 4, 30
CASES = (("halves", 10), ("thirds", 20), ("by subject", 20))


def split(corpus: Corpus, name: str, seed: int) -> Mapping[str, Corpus]:
    """The parties of a case."""
    if name == "by subject":
        return cut(corpus, SIX)
    return at_random(corpus, {f"P{i}": 1 for i in range(2 if name == "halves" else 3)}, seed)


def case(small: World, topics: int, model: str, seed: int) -> dict[str, float]:
    """One federation, merged in both ways, and what it is compared with."""
    common: dict[str, Any] = {"topics": topics, "vocabulary": small.words}
    run: dict[str, Any] = {"heldout": HELDOUT, "seed": seed}
    alone = NonCollaborative(**common, model=model, sweeps=ROUNDS * SWEEPS).fit(small.parties, **run)
    rows = np.concatenate([own.topic_word for own in alone.local.values()])
    beside = Topics(rows, alone.vocabulary, np.full(len(rows), 5.0 / len(rows)))
    found = {
        "ppl_single_best": min(small.perplexity(own) for own in alone.local.values()),
        "ppl_concatenation": small.perplexity(beside),
        "topics_concatenation": float(len(rows)),
    }
    method = {**common, "model": model, "rounds": ROUNDS, "sweeps": SWEEPS, "evaluate": False}
    for merge in ("one-to-one", "union-find"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MergeWarning)
            shared = FTM(**method, merge=merge).fit(small.parties, **run)
        found |= {f"ppl_{merge}": small.perplexity(shared), f"topics_{merge}": float(shared.n_topics)}
    if model == "lda":
        together = Consensus(**common, start_sweeps=20, rounds=10, sweeps=10, evaluate=False).fit(small.parties, **run)
        found["ppl_consensus"] = small.perplexity(together)
    return found


def main() -> None:
    """Run the benchmark."""
    command = parser("Topics that FTM ends with, and their perplexity")
    command.add_argument("--seeds", help="a list of seeds; 0,1,2, or with --quick 0")
    arguments = command.parse_args()
    seeds = [int(seed) for seed in (arguments.seeds or ("0" if arguments.quick else "0,1,2")).split(",")]
    corpus = Corpus.concatenate(list(cut(groups(), SIX, 0.25).values()))
    result: dict[str, Any] = {"benchmark": "ftm_merging", "seeds": seeds}
    for name, topics in CASES:
        for model in ("lda", "sentence"):
            runs = [case(world(split(corpus, name, seed), 2000), topics, model, seed) for seed in seeds]
            cell = {key: [round(run[key], 1) for run in runs] for key in runs[0]}
            result[f"{name}, {topics} topics, {model}"] = cell
            say(f"{name}, {topics} topics, {model}: {cell}")
    finish(result)


if __name__ == "__main__":
    main()
