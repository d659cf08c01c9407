"""FedLDA's table 2: spam (Enron) and sentiment (IMDB) predicted from topic shares by logistic regression.

Topics come from each mechanism of `benchmarks.fedlda`, 100 rounds of one sweep, over the same users: one document each.
A classifier learns from all users who took part, and is scored on a quarter of that number who did not, so that the
split is 4 : 1 as in the paper. The seed draws these users, as it draws topics and noise. Beta is chosen for each
mechanism by the perplexity of further users, after 30 rounds. There are two controls: LDA on one machine, and random
topics.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_fscore_support, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.applications.cells import NotKept, cell, keep
from benchmarks.fedlda.runs import BETAS, DATASETS, EPSILON, MECHANISMS, TUNED, M, choose_beta, parts_of, train
from tertulia import Corpus, TopicFeatures, Topics
from tertulia.models.topics import UnknownWordsWarning

USERS = {users.task: name for name, users in DATASETS.items() if users.task}  # task -> data set
VERSION = 1  # of the computation of cells: a new number recomputes all
CONTROLS = ("pooled", "random")
FIRST = ("none", "rrp", "rrp at 5", *CONTROLS)  # the paper's table and the controls
FEW = ("none", "rrp", "sound", "none_paper")  # of a quick run
WEAKER = ("rrp", "rrp_paper")  # also at the paper's smaller epsilon
SCORES = ("precision", "recall", "f1", "auc")
Runs = dict[str, tuple[str, dict[str, Any]]]  # label -> mechanism, changed settings


def run(task: str, quick: bool, publish: bool = False) -> dict[str, dict[str, Any]]:
    """Measure the means over seeds of the four scores, by mechanism, with standard deviations `sd`."""
    part, rounds, seeds = (f"{task}-quick", 20, (0,)) if quick else (task, 100, (0, 1, 2))
    runs: Runs = {name: (name, {}) for name in (*(FEW if quick else MECHANISMS), *CONTROLS)}
    runs |= {} if quick else {f"{name} at 5": (name, {"epsilon": 5.0}) for name in WEAKER}
    configuration = configuration_of(task, rounds)
    found: dict[str, list[dict[str, float]]] = {label: [] for label in runs}
    for seed, label in _order(list(runs), seeds):
        mechanism, changes = runs[label]
        with suppress(NotKept):
            found[label].append(score(part, {**configuration, "mechanism": mechanism, "seed": seed}, changes))
    result = {label: _summary(scores) for label, scores in found.items() if scores}
    keep(part, {**configuration, "seeds": seeds}, result, publish)
    return result


def _order(labels: Sequence[str], seeds: Sequence[int]) -> list[tuple[int, str]]:
    """Order the runs: first the paper's table with all seeds, then the others seed by seed."""
    first, rest = ([label for label in labels if (label in FIRST) == wanted] for wanted in (True, False))
    return [(seed, label) for group in (first, rest) for seed in seeds for label in group]


def score(part: str, configuration: dict[str, Any], changes: dict[str, Any]) -> dict[str, float]:
    """Score one mechanism with one seed."""
    name, mechanism, seed, rounds = (configuration[key] for key in ("data", "mechanism", "seed", "rounds"))
    tuning = {**configuration, "seed": 0, "rounds": min(rounds, TUNED), "choose beta among": BETAS}
    beta = cell(part, tuning, lambda: {"beta": choose_beta(name, mechanism, rounds)})["beta"]

    def compute() -> dict[str, float]:
        model = train(name, mechanism, rounds, seed, beta=beta, evaluate=False, **changes)
        return classify(name, model.topics, seed)

    return cell(part, {**configuration, **changes, "beta": beta}, compute)


def classify(name: str, model: Topics, seed: int) -> dict[str, float]:
    """Compute precision, recall, F1 and AUC of a logistic regression, on users who did not take part."""
    users, parts = DATASETS[name], parts_of(name)
    others = np.zeros(parts.test.n_documents, dtype=np.bool_)
    others[np.random.default_rng(seed).permutation(len(others))[: users.users // 4]] = True
    test = parts.test.select(others)
    known, asked = (_is_positive(corpus, users.positive) for corpus in (parts.train, test))
    classifier = make_pipeline(TopicFeatures(model), StandardScaler(), LogisticRegression(max_iter=100))
    with warnings.catch_warnings():  # some mails hold no word of the vocabulary
        warnings.simplefilter("ignore", UnknownWordsWarning)
        probability = classifier.fit(parts.train, known).predict_proba(test)[:, 1]
    precision, recall, f1, _ = precision_recall_fscore_support(asked, probability > 0.5, average="binary")
    found = (precision, recall, f1, roc_auc_score(asked, probability))
    return dict(zip(SCORES, map(float, found), strict=True))


def _is_positive(corpus: Corpus, label: str | None) -> Any:
    return corpus.table["label"].to_numpy() == label


def configuration_of(task: str, rounds: int) -> dict[str, Any]:
    """Return the configuration of a result, except mechanism and seed."""
    users = DATASETS[USERS[task]]
    data = {"data": USERS[task], "users": users.users, "topics": users.topics, "words": users.words, "max_words": M}
    return {**data, "epsilon": EPSILON, "rounds": rounds, "version": VERSION}


def _summary(scores: list[dict[str, float]]) -> dict[str, Any]:
    values = {key: [score[key] for score in scores] for key in SCORES}
    means = {key: round(statistics.mean(value), 4) for key, value in values.items()}
    spread = {key: round(statistics.stdev(value), 4) for key, value in values.items() if len(value) > 1}
    return {**means, "sd": spread, "seeds": len(scores)}
