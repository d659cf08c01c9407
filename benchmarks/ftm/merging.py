"""How many topics FTM ends with, and what that costs: merging one to one against the papers' union-find.

A quarter of 20 Newsgroups (V = 2,000) in random halves or thirds, and by super-group; LDA and SentenceLDA; 4 rounds of
30 sweeps, 120 for those alone. Perplexity of everyone's held-out documents. Beside each merge stand the best party
alone and the parties' models side by side, which is what a merge that merges nothing gives. `--corpora` adds random
thirds and parts by label of other collections, with 20 topics and LDA: the rule was not made on them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.common import finish, parser, say
from benchmarks.ftm.likeness import COLLECTIONS, collection
from benchmarks.ftm.parties import HELDOUT, SIX, World, at_random, cut, groups, world
from tertulia import FTM, Alone, Consensus, Corpus, Topics
from tertulia.methods.ftm.alignment import MergeWarning

ROUNDS, SWEEPS = 4, 30
CASES = (("halves", 10), ("thirds", 20), ("by subject", 20))


def split(corpus: Corpus, name: str, seed: int) -> Mapping[str, Corpus]:
    """Return the parties of a case."""
    if name == "by label":
        labels = corpus.table["label"].cast(str).to_numpy()
        return {label: corpus.select(labels == label) for label in sorted(set(labels.tolist()))}
    if name == "by subject":
        return cut(corpus, SIX)
    return at_random(corpus, {f"P{i}": 1 for i in range(2 if name == "halves" else 3)}, seed)


def case(small: World, topics: int, model: str, seed: int) -> dict[str, float]:
    """Score one federation, merged in both ways, and the models beside it."""
    common: dict[str, Any] = {"topics": topics, "vocabulary": small.words}
    run: dict[str, Any] = {"heldout": HELDOUT, "seed": seed}
    alone = Alone(**common, model=model, sweeps=ROUNDS * SWEEPS).fit(small.parties, **run)
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
        together = Consensus(**common, rounds=10, sweeps=10, evaluate=False).fit(small.parties, **run)
        found["ppl_consensus"] = small.perplexity(together)
    return found


def over_seeds(corpus: Corpus, name: str, topics: int, model: str, seeds: list[int]) -> dict[str, list[float]]:
    """Score one case with each seed."""
    runs = [case(world(split(corpus, name, seed), 2000), topics, model, seed) for seed in seeds]
    return {key: [round(run[key], 1) for run in runs] for key in runs[0]}


def main() -> None:
    """Run the benchmark."""
    command = parser("Topics that FTM ends with, and their perplexity")
    command.add_argument("--seeds", help="a list of seeds; 0,1,2, or with --quick 0")
    others = [name for name in COLLECTIONS if COLLECTIONS[name].file != COLLECTIONS["quarter"].file]
    command.add_argument("--corpora", nargs="*", choices=["quarter", *others], default=["quarter"])
    arguments = command.parse_args()
    seeds = [int(seed) for seed in (arguments.seeds or ("0" if arguments.quick else "0,1,2")).split(",")]
    cases = []
    for name in arguments.corpora:
        if name == "quarter":
            corpus = Corpus.concatenate(list(cut(groups(), SIX, 0.25).values()))
            cases += [(name, corpus, cut_, topics, model) for cut_, topics in CASES for model in ("lda", "sentence")]
        else:
            corpus = collection(name)
            kinds = ("thirds", "by label") if COLLECTIONS[name].label else ("thirds",)
            cases += [(name, corpus, cut_, 20, "lda") for cut_ in kinds]
    result: dict[str, Any] = {"benchmark": "ftm_merging", "seeds": seeds}
    for name, corpus, cut_, topics, model in cases:
        key = f"{name}, {cut_}, {topics} topics, {model}"
        result[key] = over_seeds(corpus, cut_, topics, model, seeds)
        say(f"{key}: {result[key]}")
    finish(result)


if __name__ == "__main__":
    main()
