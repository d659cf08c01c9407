"""iFTM's table 3: topic shares beside TF-IDF in a linear support vector machine, as a curve over the number of labels.

20 Newsgroups in four classes. Each seed draws 2,000 test documents, 15,000 training documents, three parties of 5,000
of these, the labelled documents, and the topic models. Topics are learned from all 15,000 without labels (by a party
alone from its own 5,000), 100 per model and with the same number of sweeps; TF-IDF also weighs words by all 15,000. C
is chosen for words alone, then for each model the weight of its topics, on labelled training documents: by five folds
of 1,000 labels, else on 1,000 that are set aside. Values are tried from small to large until the score falls. Then the
classifier learns from all labels and is tested once.

`alike` parties hold documents at random; `by subject` documents are sorted by class before they are split. The control
is the parties' own models side by side, which needs no federation. Accuracy is called precision in the paper.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse, stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from benchmarks.applications.cells import NotKept, cell, keep
from benchmarks.common import data, say
from tertulia import FTM, Alone, Corpus, Pooled, TopicFeatures, Topics, Vocabulary
from tertulia._arrays import F64, Array, Bool
from tertulia.corpus.vocabulary import propose
from tertulia.models.topics import UnknownWordsWarning

VERSION = 1  # of the computation of cells: a new number recomputes all
CLASSES = {"politics": "politics and religion", "religion": "politics and religion", "recreation": "recreation"}
CLASSES |= {"science": "science", "computing": "computing"}  # in the order of the split by subject
PARTIES, FOLDS, VALIDATION = 3, 5, 1000
COSTS = (0.3, 1.0, 3.0, 10.0)  # C
WEIGHTS = (0.3, 1.0, 3.0, 10.0)  # of topic shares beside rows of TF-IDF, of length 1; tried until the score falls
SEEDS = 5
UNITS = {"lda": "lda", "sentencelda": "sentence"}
NOISE: dict[str, dict[str, Any]] = {  # of kinds of federated models
    "federated": {},
    "federated-paper": {"mode": "paper", "epsilon": 11.0},
    "federated-sound": {"mode": "sound", "epsilon": 11.0},
}
Interval = list[float]  # mean, low, high
Found = dict[str, dict[str, dict[str, float]]]  # model -> labels -> accuracy and settings


class Plan(NamedTuple):
    """The size of the experiment."""

    party: int = 5000  # documents of each
    test: int = 2000
    labels: tuple[int, ...] = (1000, 5000, 15000)
    topics: int = 100
    rounds: int = 5
    sweeps: int = 20  # per round; models that are not federated have as many as all rounds together
    split: str = "alike"


class Cut(NamedTuple):
    """The documents of one seed."""

    parties: Mapping[str, Corpus]
    train: Corpus
    test: Corpus
    classes: tuple[Array, Array]  # of both
    words: tuple[Any, Any]  # TF-IDF of both
    labelled: Array  # numbers of training documents; the first n have labels


def run(quick: bool, publish: bool = False) -> dict[str, Any]:
    """Measure accuracy by number of labels and model, with 95 % intervals over seeds, and paired differences."""
    if quick:
        plan = Plan(party=1000, test=500, labels=(300, 3000), topics=30, sweeps=10)
        return _measure("classification-quick", plan, 3, list(UNITS), publish)
    found = _measure("classification", Plan(), SEEDS, list(UNITS), publish)
    plan = Plan(labels=(1000,), split="by subject")
    apart = _measure("classification-by-subject", plan, SEEDS, ["lda"], publish)
    return {**found, **{f"{key}_by_subject": value for key, value in apart.items()}}


def _measure(part: str, plan: Plan, seeds: int, models: Sequence[str], publish: bool) -> dict[str, Any]:
    configuration = _configuration(plan)
    kinds = ["none", *(f"{who}_{model}" for model in models for who in ("alone", "federated", "pooled"))]
    runs: list[Found] = []
    for seed in range(seeds):
        found: Found = {}
        with suppress(NotKept):  # a seed counts when all its cells are there
            for kind in kinds:
                found |= score_kind(part, plan, seed, kind, found)
            runs.append(found)
    if not runs:
        return {}
    scores = {str(n): {name: [run[name][str(n)]["accuracy"] for run in runs] for name in runs[0]} for n in plan.labels}
    result = {
        "classification": {n: {name: interval(values) for name, values in by.items()} for n, by in scores.items()},
        "classification_differences": {n: _differences(by, models) for n, by in scores.items()},
        "classification_topics": {name: _mean_topics(runs, name) for name in runs[0] if name != "none"},
    }
    keep(part, {**configuration, "kinds": kinds, "seeds": len(runs)}, result, publish)
    return result


def _configuration(plan: Plan) -> dict[str, Any]:
    return {**plan._asdict(), "C": COSTS, "weights": WEIGHTS, "version": VERSION}


def score_kind(part: str, plan: Plan, seed: int, kind: str, before: Found) -> Found:
    """Score one kind of topic model, as a cell of a part; without a part it is measured now, and not kept."""
    if not part:
        return _score(plan, seed, kind, before)
    compute = partial(_score, plan, seed, kind, before)
    return cell(part, {**_configuration(plan), "kind": kind, "seed": seed}, compute)


def interval(values: Sequence[float]) -> Interval:
    """Compute the mean over seeds, with its 95 % interval by Student's t."""
    mean, n = float(np.mean(values)), len(values)
    half = float(stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    return [round(value, 4) for value in (mean, mean - half, mean + half)]


def _differences(by: Mapping[str, Sequence[float]], models: Sequence[str]) -> dict[str, Interval]:
    """Compute the gain of federated topics over the others, and over the mean of parties alone, seed by seed."""
    found: dict[str, Interval] = {}
    for model in models:
        alone = np.mean([by[f"p{i + 1}_{model}"] for i in range(PARTIES)], axis=0)
        others = {name: by[name] for name in by if name == "none" or name.endswith(f"_{model}")}
        others = {**others, f"mean party_{model}": alone.tolist()}
        for name, values in others.items():
            if name != f"federated_{model}":
                gain = np.subtract(by[f"federated_{model}"], values)
                found[f"federated_{model} - {name}"] = interval(gain.tolist())
    return found


def _mean_topics(runs: Sequence[Found], name: str) -> float:
    return float(np.mean([next(iter(run[name].values()))["topics"] for run in runs]))


def _score(plan: Plan, seed: int, kind: str, before: Found) -> Found:
    """Score all classifiers of one kind of topic model, on the documents of one seed."""
    documents = cut(plan, seed)
    if kind == "none":
        return {"none": {str(n): _classify(documents, n, COSTS) for n in plan.labels}}
    found: Found = {}
    for name, model in _models(plan, documents, kind, seed):
        with warnings.catch_warnings():  # a few documents hold no word of the vocabulary
            warnings.simplefilter("ignore", UnknownWordsWarning)
            features = TopicFeatures(model)
            shares = (features.transform(documents.train), features.transform(documents.test))
        costs = {n: before["none"][str(n)]["C"] for n in plan.labels}
        scores = {n: _classify(documents, n, [cost], shares) for n, cost in costs.items()}
        found[name] = {str(n): {**score, "topics": model.n_topics} for n, score in scores.items()}
        say(f"    seed {seed}, {name}: {[found[name][str(n)]['accuracy'] for n in plan.labels]}")
    return found


def _models(plan: Plan, documents: Cut, kind: str, seed: int) -> Iterator[tuple[str, Topics]]:
    """Train the models of a kind, and yield them with their names."""
    who, _, model = kind.partition("_")
    words = {"mode": "public", "words": documents.train.vocabulary.words}
    common: dict[str, Any] = {"topics": plan.topics, "model": UNITS[model], "vocabulary": words}
    options: dict[str, Any] = {"heldout": 0.0, "seed": seed}
    if who in NOISE:
        method = FTM(**common, rounds=plan.rounds, sweeps=plan.sweeps, evaluate=False, **NOISE[who])
        yield kind, method.fit(documents.parties, **options)
        return
    baseline = Pooled if who == "pooled" else Alone
    fitted = baseline(**common, sweeps=plan.rounds * plan.sweeps).fit(documents.parties, **options)
    if who == "pooled":
        yield kind, fitted
        return
    yield from ((f"{party}_{model}", own) for party, own in fitted.local.items())
    yield f"side_by_side_{model}", _side_by_side(list(fitted.local.values()))


def _side_by_side(models: Sequence[Topics]) -> Topics:
    """Join the topics of all parties in one model; priors are divided by the number of parties."""
    topic_word = np.concatenate([model.topic_word for model in models])
    alpha = np.concatenate([model.alpha for model in models]) / len(models)
    return Topics(topic_word, models[0].vocabulary, alpha, options=models[0].options)


@cache
def _everything() -> tuple[pl.DataFrame, Corpus]:
    """Load all documents of the four classes."""
    table = pl.read_parquet(data("newsgroups20.parquet")).cast({"id": pl.String})
    table = table.with_columns(pl.col("party").replace_strict(CLASSES, default=None).alias("class")).drop_nulls("class")
    return table, Corpus.from_texts(table["text"].to_list(), table["id"].to_list())


@lru_cache(maxsize=1)
def cut(plan: Plan, seed: int) -> Cut:
    """Draw the documents of one seed, by a hash of their ids."""
    table, corpus = _everything()
    hashes = [hashlib.blake2b(f"{seed}/{name}".encode()).digest() for name in table["id"]]
    order = np.array(sorted(range(len(hashes)), key=hashes.__getitem__))
    test, train = order[: plan.test], order[plan.test : plan.test + PARTIES * plan.party]
    classes = table["class"].to_numpy()
    if plan.split == "by subject":
        subjects = list(dict.fromkeys(CLASSES.values()))
        train = train[np.argsort([subjects.index(name) for name in classes[train]], kind="stable")]
    party = np.full(len(order), -1)
    party[train] = np.arange(len(train)) // plan.party
    learned, asked = party >= 0, np.isin(np.arange(len(order)), test)
    words = Vocabulary(tuple(propose(corpus.select(learned), 10, 0.5).words))
    corpus = corpus.encode(words)
    texts = table["text"].to_numpy()
    weigh = TfidfVectorizer(sublinear_tf=True, min_df=2).fit(texts[learned])
    return Cut(
        {f"p{i + 1}": corpus.select(party == i) for i in range(PARTIES)},
        corpus.select(learned),
        corpus.select(asked),
        (classes[learned], classes[asked]),
        (weigh.transform(texts[learned]), weigh.transform(texts[asked])),
        np.random.default_rng(seed).permutation(len(train)),
    )


def _classify(
    documents: Cut, labels: int, costs: Sequence[float], shares: tuple[F64, F64] | None = None
) -> dict[str, float]:
    """Choose settings on labelled training documents, learn from all of them, and test."""
    known, asked = documents.classes
    labelled = documents.labelled[:labels]
    classes, place = known[labelled], np.arange(labels)
    folds = [place % FOLDS == i for i in range(FOLDS)] if labels <= VALIDATION else [place < VALIDATION]
    words, known_shares = documents.words[0][labelled], None if shares is None else shares[0][labelled]
    best, C, weight = -1.0, 0.0, 0.0
    for tried, cost in product((0.0,) if shares is None else WEIGHTS, costs):
        features = _features(words, known_shares, tried)
        right = sum(_right(features, classes, ~fold, fold, cost) for fold in folds)
        if right < best:
            break
        if right > best:
            best, C, weight = right, cost, tried
    machine = _machine(C).fit(_features(words, known_shares, weight), classes)
    found = machine.predict(_features(documents.words[1], None if shares is None else shares[1], weight))
    return {"accuracy": float(np.mean(found == asked)), "C": C, "weight": weight}


def _features(words: Any, shares: F64 | None, weight: float) -> Any:
    return words if shares is None else sparse.hstack([words, sparse.csr_matrix(weight * shares)], format="csr")


def _right(features: Any, classes: Array, train: Bool, validation: Bool, C: float) -> float:
    """Count the validation documents that get their class."""
    found = _machine(C).fit(features[train], classes[train]).predict(features[validation])
    return float(np.sum(found == classes[validation]))


def _machine(C: float) -> LinearSVC:
    return LinearSVC(C=C, tol=0.01, random_state=0)  # a finer tolerance changed no accuracy, and takes longer
