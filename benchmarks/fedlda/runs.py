"""FedLDA's data sets and single runs: users, a model by each mechanism, its scores, and the controls beside them.

Reviews, Emails and Sentiments are samples of 1,000, 5,000 and 3,000 documents, as in the paper, one document per user.
Emails are Enron's (the paper's footnote links another set); V is the paper's where it names one. Others of the same
corpus, who take no part, choose settings or score. The words are the most frequent of the users who take part: handing
them to all as a list is a convenience of the experiment; in a real run such a list would disclose words of users.

Scores are kept in benchmarks/out/fedlda_scores.jsonl, so that a benchmark that was stopped goes on where it was;
delete the file to measure again.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks.common import OUT, data, say
from tertulia import LDA, Corpus, FedLDA, TextOptions, Topics, Vocabulary
from tertulia._arrays import F64
from tertulia.corpus.splits import is_heldout
from tertulia.corpus.vocabulary import propose
from tertulia.kernels.reports.channel import Channel
from tertulia.methods.fedlda.settings import FedLDAPaper
from tertulia.methods.fedlda.shard import shard_of
from tertulia.metrics import completion, perplexity_plugin, unigram
from tertulia.models.topics import UnknownWordsWarning
from tertulia.privacy.accounting import guarantee_of
from tertulia.privacy.mechanisms.token_reports import TokenReports

KEPT = OUT / "fedlda_scores.jsonl"
TEST, VALIDATION, EPSILON, M = 0.1, 0.1, 7.5, 150  # shares of a corpus from which those are drawn who take no part
BETAS, TUNED = (0.01, 0.1), 30  # the choice, and after how many rounds it is made
Scores = dict[str, Any]


@dataclass(frozen=True)
class Users:
    """Who the users are, and what is asked about them."""

    file: str
    users: int  # who take part
    others: int  # on whom models are scored; half as many choose settings
    topics: int
    words: int | None  # V, the most frequent ones; None: all that occur in two documents
    positive: str | None = None  # the label to predict
    task: str = ""


DATASETS = {
    "reviews": Users("amazon_fine_food_6k.parquet", 1000, 550, 20, None),
    "emails": Users("enron_spam.parquet", 5000, 2000, 30, 3309, "spam", "spam"),
    "sentiments": Users("imdb50k.parquet", 3000, 2000, 50, 22_574, "pos", "sentiment"),
}
_AS_PAPER = {"mode": "paper", "epsilon": EPSILON, "bookkeeping": "paper"}
_PRIVATE = {"mode": "paper", "epsilon": EPSILON}
OTHER_READING: dict[str, dict[str, Any]] = {  # of algorithm 2, lines 6-7: counts of each round's tuples alone
    "none_frequencies": {"bookkeeping": "frequencies"},
    **{f"{m}_frequencies": {**_PRIVATE, "bookkeeping": "frequencies", "mechanism": m} for m in ("rrp", "krr", "tkrr")},
}
MECHANISMS: dict[str, dict[str, Any]] = {  # with counts that converge; `*_paper`: with the paper's bookkeeping
    "none": {},
    **{m: {**_PRIVATE, "mechanism": m} for m in ("rrp", "krr", "tkrr")},
    "sound": {"mode": "sound", "epsilon": EPSILON},
    "sound_user": {"mode": "sound"},  # the same total for a user, divided by `user_epsilon`
    "none_paper": {"bookkeeping": "paper"},
    **{f"{m}_paper": {**_AS_PAPER, "mechanism": m} for m in ("rrp", "krr", "tkrr", "hm")},
    "rrp_anew": {**_AS_PAPER, "mechanism": "rrp", "sample_ratio": 1.0},  # no tuple is lost, but words are drawn again
}


class Parts(NamedTuple):
    """Documents by what they are for; all over the words of the users who take part."""

    train: Corpus
    validation: Corpus
    test: Corpus
    both: Corpus  # train and validation, as `fit` wants them


@cache
def parts_of(name: str) -> Parts:
    """Draw the samples: always the same documents, the first of their kind in the order of a hash of their ids."""
    users = DATASETS[name]
    table = pl.read_parquet(data(users.file)).cast({"id": pl.String})
    table = table.filter(~pl.col("dup")) if "dup" in table.columns else table
    order = sorted(table["id"], key=lambda id_: hashlib.blake2b(id_.encode()).digest())
    tests = [id_ for id_ in order if is_heldout(id_, TEST)]
    choosing = [id_ for id_ in order if is_heldout(id_, TEST + VALIDATION) and not is_heldout(id_, TEST)]
    training = [id_ for id_ in order if not is_heldout(id_, TEST + VALIDATION)]
    train, validation, test = training[: users.users], choosing[: users.others // 2], tests[: users.others]
    chosen = pl.DataFrame({"id": [*train, *validation, *test]}).join(table, "id", maintain_order="left")
    corpus = Corpus.from_texts(chosen["text"].to_list(), chosen["id"].to_list(), chosen["label"].to_list())
    place = np.arange(corpus.n_documents)
    found = propose(corpus.select(place < len(train)), 2 if users.words is None else 1, 0.5)
    frequent = np.sort(np.argsort(-np.asarray(found.counts), kind="stable")[: users.words])
    corpus = corpus.encode(Vocabulary(tuple(np.asarray(found.words)[frequent].tolist())))
    both = corpus.select(place < len(train) + len(validation))
    parts = Parts(*both.split(TEST + VALIDATION), corpus.select(place >= both.n_documents), both)
    say(f"{name}: {parts}")
    return parts


def scores(name: str, mechanism: str, rounds: int, seed: int = 0, **changes: Any) -> Scores:
    """Score a model by one mechanism; `changes` are settings, such as beta, epsilon or topics."""
    key = json.dumps([name, mechanism, rounds, seed, changes], sort_keys=True)
    if key not in _kept():
        found = _scores(name, train(name, mechanism, rounds, seed, **changes))
        say(f"  {key}: perplexity {found['test']:.0f}")
        OUT.mkdir(exist_ok=True)
        with KEPT.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, found]) + "\n")
        _kept()[key] = found
    return _kept()[key]


@cache
def _kept() -> dict[str, Scores]:
    return dict(map(json.loads, KEPT.read_text(encoding="utf-8").splitlines())) if KEPT.exists() else {}


def choose_beta(name: str, mechanism: str, rounds: int) -> float:
    """Return the beta that is best on the users who choose, after as many rounds or fewer, with one seed."""
    rounds = min(rounds, TUNED)
    return min(BETAS, key=lambda beta: scores(name, mechanism, rounds, beta=beta, evaluate=False)["validation"][-1])


def repeat(name: str, mechanism: str, rounds: int, seeds: Sequence[int], **changes: Any) -> list[Scores]:
    """Return the scores with several seeds (and noises), at the beta that was chosen for this mechanism."""
    beta = choose_beta(name, mechanism, rounds)
    return [scores(name, mechanism, rounds, seed, beta=beta, **changes) for seed in seeds]


class Model(NamedTuple):
    """What is scored, and the perplexity of the users who choose, after each round or at the end."""

    topics: Topics
    validation: list[float]


def train(name: str, mechanism: str, rounds: int, seed: int, **changes: Any) -> Model:
    """Train a model by one mechanism, or a control; with `evaluate=False` it is scored at the end alone."""
    users, parts = DATASETS[name], parts_of(name)
    settings = {"topics": users.topics, "max_words": M, "evaluate": True, **_settings_of(mechanism), **changes}
    if mechanism == "sound_user":
        settings.setdefault("user_epsilon", real_epsilon(name))
    paper = {name: settings.pop(name) for name in FedLDAPaper.model_fields if name in settings}
    words = {"mode": "public", "words": parts.train.vocabulary.words}
    if mechanism in ("pooled", "pooled_fixed"):  # a control: LDA on one machine, on the words that users train with
        chosen = {"topics": settings["topics"], "beta": settings["beta"], "learn_alpha": mechanism == "pooled"}
        method = LDA(**chosen, sweeps=rounds, vocabulary=words)
        return _scored_once(method.fit(_cut(parts.train), seed=seed).topics_, parts)
    if mechanism == "random":  # a control: topics that nobody has learned
        drawn = np.random.default_rng(seed).dirichlet(np.full(len(parts.train.vocabulary), 0.1), users.topics)
        return _scored_once(Topics(drawn, parts.train.vocabulary, np.full(users.topics, 5.0 / users.topics)), parts)
    federated = FedLDA(**settings, paper=paper, rounds=rounds, vocabulary=words)
    fitted = federated.fit({"users": parts.both}, heldout=TEST + VALIDATION, seed=seed)
    if not settings["evaluate"]:
        return _scored_once(fitted, parts)
    return Model(fitted, [round(facts["perplexity"], 1) for facts in fitted.history[1:]])


def _settings_of(mechanism: str) -> dict[str, Any]:
    return {**MECHANISMS, **OTHER_READING}.get(mechanism, {})


def _scored_once(model: Topics, parts: Parts) -> Model:
    return Model(model, [completion(model.topic_word, model.alpha, parts.validation).perplexity])


def _cut(corpus: Corpus) -> Corpus:
    """Return the first M words of each document."""
    words, documents = shard_of(corpus, M)
    return Corpus(words, documents, documents, documents, corpus.vocabulary, corpus.table, TextOptions())


def _scores(name: str, model: Model) -> Scores:
    parts = parts_of(name)
    phi, alpha = model.topics.topic_word, model.topics.alpha
    return {
        "validation": model.validation,
        "test": completion(phi, alpha, parts.test).perplexity,
        "own": perplexity_plugin(phi, features_of(model.topics, parts.train), parts.train),  # the paper's figure
    }


def features_of(model: Topics, corpus: Corpus) -> F64:
    """Return topic shares [D, K]; some mails hold no word of the vocabulary, as it should be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownWordsWarning)
        return model.transform(corpus)


def real_epsilon(name: str) -> float:
    """Compute what a user of M tokens really spends at delta 1e-6 in the sound mode."""
    channel = Channel("subset", EPSILON, len(parts_of(name).train.vocabulary))
    return guarantee_of(TokenReports("reports", channel=channel), 1e-6, M).epsilon


def unigram_perplexity(name: str, part: str = "test") -> float:
    """Score a model without topics on users who took no part."""
    return completion(unigram(parts_of(name).train), 1.0, getattr(parts_of(name), part)).perplexity
