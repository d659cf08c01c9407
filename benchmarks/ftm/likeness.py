"""How far apart parties are that draw on the same subjects, and parties that do not, as FTM sees it.

Collections are cut at random into six parts sized 1 to 6, and by label; every part of at least 90 documents gets a
model of its own (20 and 40 topics, 50 sweeps). Distances between mean topics, for each two parts: the rule that calls
parties alike (`methods/ftm/alignment.py`) is good if its bound lies between the two kinds. `whole` are the distances
that it would go by if no odd words were left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any
from unittest.mock import patch

import polars as pl

from benchmarks.common import data, finish, newsgroups, parser, say
from tertulia._arrays import F64
from tertulia.corpus import Corpus, read
from tertulia.corpus.splits import Row, at_random
from tertulia.corpus.vocabulary import Vocabulary, propose
from tertulia.kernels import lda
from tertulia.kernels.lda.options import NEVER, Learning
from tertulia.methods.ftm import alignment

FILES = {
    "bbc": ("bbc_news", "label"),
    "medical": ("medical_abstracts_2888", "label"),
    "grants": ("nsf_awards_fy2026", "party"),
}
FEWEST, TOPICS, SWEEPS = 90, (20, 40), 50


def collection(name: str) -> Corpus:
    """A corpus with the labels that it is cut by."""
    if name in FILES:
        file, label = FILES[name]
        corpus = read(data(f"{file}.parquet"), id="id", label=label)
        return corpus.encode(Vocabulary(tuple(propose(corpus, 10, 0.5).words)))
    corpus = newsgroups(min_documents=10, label="party")
    return corpus.select(list(range(0, corpus.n_documents, 4))) if name == "quarter" else corpus


def cuts(corpus: Corpus, seed: int) -> dict[str, list[Corpus]]:
    """The parts of both kinds."""
    chosen = at_random({str(i): i for i in range(1, 7)}, seed)
    labels = {
        "random": [chosen(Row(name, "")) for name in corpus.table["id"]],
        "by label": corpus.table["label"].to_list(),
    }
    return {kind: list(_parts(corpus, pl.Series(label))) for kind, label in labels.items()}


def _parts(corpus: Corpus, labels: pl.Series) -> Iterator[Corpus]:
    for label in labels.unique().sort():
        part = corpus.select((labels == label).to_numpy())
        if part.n_documents >= FEWEST:
            yield part


def mean_of(part: Corpus, K: int, seed: int, *, learn: bool) -> F64:
    """The mean topic of a model of one part."""
    state = lda.train(
        part.words, part.documents, len(part.vocabulary), K, 5.0 / K, 0.01, SWEEPS, seed,
        learning=Learning(alpha=True) if learn else NEVER,
    )  # fmt: skip
    return alignment.mean_topic(lda.topic_word(state), lda.topic_sizes(state) if learn else None)


def measure(corpus: Corpus, seeds: list[int], *, learn: bool) -> dict[str, dict[str, list[float]]]:
    """The least and the largest distance of each kind, with and without odd words."""
    found: dict[str, dict[str, list[float]]] = {}
    for seed in seeds:
        for kind, parts in cuts(corpus, seed).items():
            for K in TOPICS:
                means = [mean_of(part, K, 100 * seed + i, learn=learn) for i, part in enumerate(parts)]
                into = found.setdefault(kind, {"distance": [], "whole": []})
                into["distance"] += [alignment.distance(a, b) for a, b in combinations(means, 2)]
                with patch.object(alignment, "_ODD", alignment.FREQUENT + 1):
                    into["whole"] += [alignment.distance(a, b) for a, b in combinations(means, 2)]
    return {k: {name: [round(min(v), 4), round(max(v), 4)] for name, v in one.items()} for k, one in found.items()}


def main() -> None:
    """Run the benchmark."""
    arguments = parser("Distances between parties that are alike, and that are not").parse_args()
    seeds = [0] if arguments.quick else [0, 1, 2]
    result: dict[str, Any] = {"benchmark": "ftm_likeness", "seeds": seeds, "bound": alignment.ALIKE}
    for name in ("quarter", *FILES) if arguments.quick else ("newsgroups", "quarter", *FILES):
        corpus = collection(name)
        for learn in (True, False):
            key = f"{name}, alpha {'learned' if learn else 'fixed'}"
            result[key] = measure(corpus, seeds, learn=learn)
            say(f"{key}: {result[key]}")
    finish(result)


if __name__ == "__main__":
    main()
