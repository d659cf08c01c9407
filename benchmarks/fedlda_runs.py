"""FedLDA's data sets and single runs: a corpus of users, a model by each mechanism, and its scores.

Reviews, Emails and Sentiments are samples of 1,000, 5,000 and 3,000 documents, as in the paper, one document a user.
Emails are Enron's (the paper's footnote links another set); V is the paper's where it names one.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common import data, say
from tertulia import Corpus, FederatedTopics, FedLDA, Vocabulary
from tertulia.applications import classification
from tertulia.arrays import F64
from tertulia.corpus import propose
from tertulia.metrics import completion, perplexity_plugin, unigram
from tertulia.models.topics import UnknownWordsWarning

HELDOUT, BETA, EPSILON, FOLDS = 0.1, 0.1, 7.5, 5


@dataclass(frozen=True)
class Users:
    """Who the users are, and what is asked about them."""

    file: str
    users: int
    topics: int
    words: int | None  # V, the most frequent ones; None: all that occur in two documents
    positive: str | None = None  # the label to tell from the others
    task: str = ""


DATASETS = {
    "reviews": Users("amazon_fine_food_6k.parquet", 1000, 20, None),
    "emails": Users("enron_spam.parquet", 5000, 30, 3309, "spam", "spam"),
    "sentiments": Users("imdb50k.parquet", 3000, 50, 22_574, "pos", "sentiment"),
}
MECHANISMS: dict[str, dict[str, Any]] = {  # the paper's, with the paper's bookkeeping; then ours
    "none": {"bookkeeping": "paper"},
    "rrp": {"mode": "paper", "mechanism": "rrp", "bookkeeping": "paper"},
    "krr": {"mode": "paper", "mechanism": "krr", "bookkeeping": "paper"},
    "tkrr": {"mode": "paper", "mechanism": "tkrr", "bookkeeping": "paper"},
    "hm": {"mode": "paper", "mechanism": "hm", "bookkeeping": "paper"},
    "none_converging": {},
    "rrp_converging": {"mode": "paper", "mechanism": "rrp"},
    "krr_converging": {"mode": "paper", "mechanism": "krr"},
    "sound": {"mode": "sound", "sweeps": 5},
}


@cache
def corpus_of(name: str) -> Corpus:
    """The sample: always the same documents, in the order of a hash of their ids."""
    users = DATASETS[name]
    table = pl.read_parquet(data(users.file)).cast({"id": pl.String})
    table = table.filter(~pl.col("dup")) if "dup" in table.columns else table
    order = sorted(table["id"], key=lambda id_: hashlib.blake2b(id_.encode()).digest())[: users.users]
    chosen = pl.DataFrame({"id": order}).join(table, "id", maintain_order="left")
    corpus = Corpus.from_texts(chosen["text"].to_list(), order, chosen["label"].to_list())
    found = propose(corpus, 2 if users.words is None else 1, 0.5)
    frequent = np.sort(np.argsort(-np.asarray(found.counts), kind="stable")[: users.words])
    corpus = corpus.encode(Vocabulary(tuple(np.asarray(found.words)[frequent].tolist())))
    say(f"{name}: {corpus}")
    return corpus


def train(name: str, mechanism: str, rounds: int, *, evaluate: bool = False, **changes: Any) -> FederatedTopics:
    """A model by one mechanism; `changes` are settings, such as epsilon or topics."""
    chosen = MECHANISMS[mechanism]
    settings = {"topics": DATASETS[name].topics, "epsilon": EPSILON, **chosen, **changes}
    if "mode" not in chosen:
        del settings["epsilon"]
    return _trained(name, mechanism, rounds, evaluate, tuple(sorted(settings.items())))


@cache  # panels meet where their settings are the defaults
def _trained(
    name: str, mechanism: str, rounds: int, evaluate: bool, settings: tuple[tuple[str, Any], ...]
) -> FederatedTopics:
    corpus = corpus_of(name)
    words = {"mode": "public", "words": corpus.vocabulary.words}
    method = FedLDA(**dict(settings), rounds=rounds, beta=BETA, evaluate=evaluate, vocabulary=words)
    model = method.fit({"users": corpus}, heldout=HELDOUT)
    say(f"  {name} {mechanism} {dict(settings)}: perplexity {heldout_perplexity(name, model):.0f}")
    return model


def heldout_perplexity(name: str, model: FederatedTopics) -> float:
    """Document completion on users who took no part."""
    return completion(model.topic_word, model.alpha, corpus_of(name).split(HELDOUT)[1]).perplexity


def own_perplexity(name: str, model: FederatedTopics) -> float:
    """The paper's figure: the users' own documents under their fitted theta."""
    train = corpus_of(name).split(HELDOUT)[0]
    return perplexity_plugin(model.topic_word, features_of(model, train), train)


def features_of(model: FederatedTopics, corpus: Corpus) -> F64:
    """Topic shares [D, K]; some mails hold no word of the vocabulary, as it should be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownWordsWarning)
        return model.transform(corpus)


def unigram_perplexity(name: str) -> float:
    """What a model without topics gets on held-out users."""
    train, heldout = corpus_of(name).split(HELDOUT)
    return completion(unigram(train), 1.0, heldout).perplexity


def classify(name: str, model: FederatedTopics) -> dict[str, float]:
    """Precision, recall, F1 and AUC of logistic regression on topic features: the mean over five splits of 4 : 1."""
    corpus = corpus_of(name)
    features = features_of(model, corpus)
    labels = corpus.table["label"].to_numpy() == DATASETS[name].positive
    fold = np.random.default_rng(0).permutation(corpus.n_documents) % FOLDS
    found = []
    for f in range(FOLDS):
        fitted = classification.fit(features[fold != f], labels[fold != f], iterations=100)
        found.append(fitted.scores(features[fold == f], labels[fold == f]).to_dict())
    return {key: math.fsum(scores[key] for scores in found) / FOLDS for key in found[0]}
