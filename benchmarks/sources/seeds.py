"""Seed words against none: how many documents of a subject its topic finds, and what seeds cost in perplexity.

A subject of n documents is found by the n documents with the largest share of its topic. The topic with seeds is the
seeded one. Without seeds it is the one in which the same words are most probable, as a reader would choose it. Seed
words are those of the label's name, and one to three general words of its subject; they were written down before any
result was seen. The strength and the start were chosen on other corpora, of which grants and medical abstracts are
shown, too.

There are twice as many topics as labels. Training takes the same number of sweeps with and without seeds. A tenth of
the documents is held out for perplexity.
"""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

import numpy as np

import tertulia as tt
from benchmarks.common import data, say, split_heldout
from tertulia._arrays import F64, Array
from tertulia.corpus import Corpus, read
from tertulia.metrics.perplexity import completion

Seeds = dict[str, list[str]]
BBC: Seeds = {
    "business": ["business", "economy", "company", "market"],
    "entertainment": ["entertainment", "film", "music", "television"],
    "politics": ["politics", "government", "election", "minister"],
    "sport": ["sport", "match", "team", "player"],
    "tech": ["technology", "computer", "software", "internet"],
}
NEWSGROUPS: Seeds = {
    "alt.atheism": ["atheism", "atheist"],
    "comp.graphics": ["graphics", "image"],
    "comp.windows.x": ["window", "server", "motif"],
    "misc.forsale": ["sale", "shipping", "offer"],
    "rec.autos": ["car", "cars", "engine"],
    "rec.motorcycles": ["motorcycle", "bike", "ride"],
    "rec.sport.baseball": ["baseball", "pitcher"],
    "rec.sport.hockey": ["hockey", "nhl"],
    "sci.crypt": ["encryption", "cryptography", "key"],
    "sci.electronics": ["electronics", "circuit", "voltage"],
    "sci.med": ["medicine", "doctor", "disease"],
    "sci.space": ["space", "orbit", "nasa"],
    "soc.religion.christian": ["christian", "church", "god"],
    "talk.politics.guns": ["guns", "gun", "firearms"],
    "talk.politics.mideast": ["israel", "arab", "turkish"],
}


GRANTS: Seeds = {
    "MPS": ["mathematics", "physics", "chemistry"],
    "CSE": ["computer", "computing", "software"],
    "ENG": ["engineering", "manufacturing", "materials"],
    "GEO": ["ocean", "climate", "earth"],
    "BIO": ["biology", "species", "genes"],
}
MEDICAL: Seeds = {
    "neoplasms": ["neoplasm", "tumor", "cancer", "carcinoma"],
    "digestive system diseases": ["digestive", "gastric", "liver", "bowel"],
    "nervous system diseases": ["nervous", "brain", "neurologic", "seizures"],
    "cardiovascular diseases": ["cardiovascular", "heart", "coronary", "artery"],
}


class Task(NamedTuple):
    """A labelled corpus, its seeds, and the length of training."""

    file: str
    seeds: Seeds
    topics: int
    sweeps: int
    label: str = "label"


TASKS = {
    "bbc": Task("bbc_news.parquet", BBC, 10, 150),
    "newsgroups": Task("newsgroups20.parquet", NEWSGROUPS, 40, 150),
    "grants (chosen on)": Task("nsf_awards_fy2026.parquet", GRANTS, 18, 150, "party"),
    "medical (chosen on)": Task("medical_abstracts_2888.parquet", MEDICAL, 10, 150),
}
MIN_DOCUMENTS = 5


class Scored(NamedTuple):
    """One seed's result."""

    seeded: float
    unseeded: float
    ratio: float  # of perplexities
    best: float  # recall of the best topic for each subject, without seeds


def run(quick: bool) -> dict[str, Any]:
    """Measure with three seeds, in a quick run with one and the smaller corpus."""
    chosen = {"bbc": TASKS["bbc"]} if quick else TASKS
    found = {name: [_score(name, task, seed) for seed in range(1 if quick else 3)] for name, task in chosen.items()}
    columns = {name: list(zip(*scores, strict=True)) for name, scores in found.items()}
    return {
        "seeds": {name: [_rounded(statistics.mean(one)) for one in three[:3]] for name, three in columns.items()},
        "seeds_range": {
            name: [[_rounded(min(one)), _rounded(max(one))] for one in three[:3]] for name, three in columns.items()
        },
        "seeds_best": {name: _rounded(statistics.mean(four[3])) for name, four in columns.items()},
    }


def _score(name: str, task: Task, seed: int) -> Scored:
    corpus = read(data(task.file), id="id", label=task.label)
    heldout = np.random.default_rng(seed).random(corpus.n_documents) < 0.1
    train, test = split_heldout(corpus, heldout, MIN_DOCUMENTS)
    train = train.select(train.lengths > 0)
    settings: dict[str, Any] = {"topics": task.topics, "sweeps": task.sweeps, "random_state": seed, "n_jobs": 1}
    plain = tt.LDA(**settings).fit(train, progress=False).topics_
    guided = tt.LDA(seeds=task.seeds, **settings).fit(train, progress=False).topics_
    chosen = [int(np.argmax(plain.topic_word[:, _known(plain, seeds)].sum(axis=1))) for seeds in task.seeds.values()]
    labels = train.table["label"].to_numpy()
    shares = plain.transform(train)
    scored = Scored(
        _recall(guided.transform(train), range(len(task.seeds)), labels, task.seeds),
        _recall(shares, chosen, labels, task.seeds),
        _perplexity(guided, test) / _perplexity(plain, test),
        _mean(max(_found(shares[:, k], labels == name) for k in range(task.topics)) for name in task.seeds),
    )
    say(f"{name}, seed {seed}: {scored}")
    return scored


def _known(model: tt.Topics, seeds: list[str]) -> Array:
    found = model.vocabulary.lookup(seeds)
    return found[found >= 0]


def _recall(shares: F64, topics: Any, labels: Array, seeds: Seeds) -> float:
    return _mean(_found(shares[:, k], labels == name) for k, name in zip(topics, seeds, strict=True))


def _found(share: F64, wanted: Array) -> float:
    """Return the share of the n wanted documents that are among the n with the largest share of a topic."""
    first = np.argsort(-share, kind="stable")[: int(wanted.sum())]
    return float(wanted[first].mean())


def _perplexity(model: tt.Topics, test: Corpus) -> float:
    return completion(model.topic_word, model.alpha, test, smoothing=0.01).perplexity


def _mean(values: Any) -> float:
    return float(statistics.mean(values))


def _rounded(value: float) -> float:
    return round(value, 3)
