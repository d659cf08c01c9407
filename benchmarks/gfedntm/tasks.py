"""Documents at parties with which norms are compared: 20 Newsgroups by super-group, BBC by section, and generated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.common import data, newsgroups
from benchmarks.gfedntm.corpora import Setting, synthetic
from tertulia._arrays import F64
from tertulia.corpus import Corpus, Vocabulary, read
from tertulia.corpus.vocabulary import propose
from tertulia.models.neural.bags import Bags


class Task(NamedTuple):
    """Documents at parties, and how their topics are judged."""

    parties: dict[str, Bags]
    whole: Corpus
    topics: int
    truth: tuple[F64, F64, Corpus] | None  # beta, theta and the documents that have it, where text is generated


def real(name: str, topics: int) -> Task:
    """Return 20 Newsgroups or BBC news over their 2,000 most frequent words."""
    if name == "newsgroups":
        corpus = newsgroups(label="party")
    else:
        corpus = read(data("bbc_news.parquet"), id="id", label="label")
    proposal = propose(corpus, 5, 0.5)
    order = np.argsort(-np.asarray(proposal.counts), kind="stable")[:2000]
    corpus = corpus.encode(Vocabulary(tuple(sorted(proposal.words[v] for v in order))))
    labels = corpus.table["label"].to_numpy()
    parties = {name: Bags.of(corpus.select(labels == name)) for name in sorted(set(labels))}
    return Task(parties, corpus, topics, None)


def generated(seed: int) -> Task:
    """Return three nodes that share 4 of 20 topics."""
    setting = Setting(nodes=3, words=600, topics=20, shared=4, eta=0.05, training=400, validation=60)
    data = synthetic(setting, seed)
    whole = Corpus.concatenate(list(data.parties.values())).encode(data.validation.vocabulary)
    parties = {name: Bags.of(corpus) for name, corpus in data.parties.items()}
    return Task(parties, whole, setting.topics, (data.beta, data.theta, data.validation))
