"""Measures of what federating is worth, on a share of 20 Newsgroups, and of FTM's merge on other corpora."""

from __future__ import annotations

from functools import cache
from statistics import fmean
from typing import Any

from benchmarks.common import newsgroups
from benchmarks.federation.__main__ import GAINS, scenario
from benchmarks.federation.parties import iid, natural
from benchmarks.ftm import merging
from benchmarks.ftm.likeness import collection
from benchmarks.ftm.parties import world
from tertulia import Corpus

Scores = dict[str, float]
CUTS = {"natural": natural, "iid": iid}


@cache
def _newsgroups(share: float) -> Corpus:
    return newsgroups(min_documents=1, max_share=1.0, label="party").split(share, seed=1)[1]


def split(seed: int, parties: str, share: float) -> Scores:
    """Score alone, federated and pooled models of one split: perplexity of everybody's documents, and own gains."""
    found = scenario(parties, CUTS[parties](_newsgroups(share), seed), seed, workers=1)
    numbers = {key: float(value) for key, value in found.items() if isinstance(value, (int, float))}
    means = {f"gain@{key}": fmean(found[key].values()) for key in GAINS}
    return {**numbers, **means, **{f"worst@{key}": min(found[key].values()) for key in GAINS}}


def merge(seed: int, corpus: str, parties: str, every: int = 1) -> Scores:
    """Score FTM's ways of merging on one collection, beside side-by-side models, the best party and Consensus."""
    whole = collection(corpus)
    whole = whole.select(list(range(0, whole.n_documents, every)))
    return merging.case(world(merging.split(whole, parties, seed), 2000), 20, "lda", seed)


def any_of(seed: int, kind: str, **arguments: Any) -> Scores:
    """Score what is named."""
    return split(seed, **arguments) if kind == "split" else merge(seed, **arguments)
