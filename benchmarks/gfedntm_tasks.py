"""Documents at parties with which norms are compared: 20 Newsgroups by super-group, and generated ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.common import newsgroups
from benchmarks.gfedntm_corpora import Setting, synthetic
from tertulia.arrays import F64
from tertulia.corpus import Corpus, Vocabulary, propose
from tertulia.models.bags import Bags


class Task(NamedTuple):
    """Documents at parties, and how their topics are judged."""

    parties: dict[str, Bags]
    whole: Corpus
    topics: int
    truth: tuple[F64, F64, Corpus] | None  # beta, theta and the documents that have it, where text is generated


def real(topics: int) -> Task:
    """20 Newsgroups over its 2,000 most frequent words."""
    corpus = newsgroups(label="party")
    proposal = propose(corpus)
    order = np.argsort(-np.asarray(proposal.counts), kind="stable")[:2000]
    corpus = corpus.encode(Vocabulary(tuple(sorted(proposal.words[v] for v in order))))
    labels = corpus.table["label"].to_numpy()
    parties = {name: Bags.of(corpus.select(labels == name)) for name in sorted(set(labels))}
    return Task(parties, corpus, topics, None)


def generated(seed: int) -> Task:
    """Three nodes that share 4 of 20 topics."""
    setting = Setting(nodes=3, words=600, topics=20, shared=4, eta=0.05, training=400, validation=60)
    data = synthetic(setting, seed)
    whole = Corpus.concatenate(list(data.parties.values())).encode(data.validation.vocabulary)
    parties = {name: Bags.of(corpus) for name, corpus in data.parties.items()}
    return Task(parties, whole, setting.topics, (data.beta, data.theta, data.validation))
