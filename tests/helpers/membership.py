"""Membership inference on released topics: the likelihood-ratio attack of Manzonelli, Zhang and Vadhan (2024).

The attacker has a document, and the released topics. Its query is the largest log likelihood per word that any mixture
of the topics gives to the document. Shadow models, trained with and without the document, tell how the query is
distributed in both cases; the ratio of two normal densities is the score (Carlini et al. 2022).
"""

from __future__ import annotations

import tempfile
from typing import NamedTuple

import numpy as np

from tertulia.corpus import Corpus
from tertulia.runs.one_machine import run_on_one_machine
from tertulia.runs.settings import RunSettings

_STEPS = 40  # of EM


class Success(NamedTuple):
    """How well members are recognised: the share of right guesses (0.5: guessing), its error, the AUC."""

    accuracy: float
    spread: float
    auc: float
    true_at_1_percent: float  # members that are found where 1 % of the others are taken for members


def made_up(number, words=400, topics=8, length=60, seed=0):
    """Generate documents over topics with few words in common, each document with some rare words."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(words, 0.03), topics)
    theta = rng.dirichlet(np.full(topics, 0.3), number)
    names = [f"word{i}" for i in range(words)]
    return [" ".join(rng.choice(names, length, p=theta[d] @ phi)) for d in range(number)], names


def query(topic_word, counts):
    """Return the largest log likelihood per word [D] that topics [K, V] give to documents [D, V]."""
    phi = np.maximum(topic_word, 1e-12)
    phi = phi / phi.sum(axis=1, keepdims=True)
    theta = np.full((len(counts), len(phi)), 1 / len(phi))
    for _ in range(_STEPS):
        theta = theta * ((counts / (theta @ phi)) @ phi.T)
        theta /= theta.sum(axis=1, keepdims=True)
    return (counts * np.log(theta @ phi)).sum(axis=1) / counts.sum(axis=1)


def members_of(model, number, seed=0):
    """Return which documents a shadow model is trained on: half of them, the other half of the model before."""
    first = np.random.default_rng([seed, model // 2]).permutation(number) < number // 2
    return ~first if model % 2 else first


def released(texts, names, method, members, seed):
    """Train by two parties on the member documents; return the topics [K, V] in the order of `names`."""
    chosen = np.flatnonzero(members)
    corpora = {
        party: Corpus.from_texts([texts[i] for i in part], ids=[f"d{i}" for i in part])
        for party, part in (("north", chosen[::2]), ("south", chosen[1::2]))
    }
    public = {"mode": "public", "words": names}
    own = {name: {} for name in corpora}
    with tempfile.TemporaryDirectory() as place:
        run = RunSettings(
            directory=f"{place}/run", method={**method, "vocabulary": public}, heldout=0.0, seed=seed, parties=own
        )
        model = run_on_one_machine(run, corpora, durable=False)
    index = model.vocabulary.index
    return model.topic_word[:, [index[name] for name in names]]


def counts_of(texts, names):
    """Count the words of each document [D, V]."""
    index = {name: i for i, name in enumerate(names)}
    found = np.zeros((len(texts), len(names)))
    for d, text in enumerate(texts):
        np.add.at(found[d], [index[word] for word in text.split()], 1)
    return found


def attack(queries, members):
    """Attack each model by all others, from their queries [M, D] and members [M, D]."""
    inside, outside = (_moments(queries, chosen) for chosen in (members, ~members))
    right, scores, truth = [], [], []
    for model, own in enumerate(queries):
        ratio = np.zeros(len(own))
        for (total, squares, n), chosen, sign in ((inside, members[model], 1), (outside, ~members[model], -1)):
            count = n - chosen  # this model itself is no shadow
            mean = (total - np.where(chosen, own, 0)) / count
            variance = (squares - np.where(chosen, own**2, 0)) / count - mean**2
            variance = np.maximum(variance, 0.2 * np.median(variance))  # few shadows estimate some far too small
            ratio += sign * (-0.5 * np.log(variance) - 0.5 * (own - mean) ** 2 / variance)
        right.append(((ratio > 0) == members[model]).mean())
        scores.append(ratio)
        truth.append(members[model])
    scores, truth = np.concatenate(scores), np.concatenate(truth)
    threshold = np.quantile(scores[~truth], 0.99)
    ranks = np.argsort(np.argsort(scores))
    n, m = truth.sum(), (~truth).sum()
    auc = (ranks[truth].sum() - n * (n - 1) / 2) / (n * m)
    spread = float(np.std(right, ddof=1) / np.sqrt(len(right)))
    return Success(float(np.mean(right)), spread, float(auc), float((scores[truth] > threshold).mean()))


def _moments(queries, chosen):
    return (queries * chosen).sum(axis=0), (queries**2 * chosen).sum(axis=0), chosen.sum(axis=0).astype(float)


METHODS = {
    "clear": {"name": "consensus", "topics": 20, "rounds": 4, "mode": "clear", "evaluate": False},
    "paper": {"name": "ftm", "topics": 20, "rounds": 2, "sweeps": 30, "mode": "paper", "epsilon": 8.0, "tau": 0.8,
              "evaluate": False},
    "sound": {"name": "consensus", "topics": 20, "rounds": 4, "mode": "sound", "epsilon": 4.0},
    "doc": {"name": "private_topics", "topics": 8, "epsilon": 3.0, "adapt": False},
}  # fmt: skip


def queries_of(mode, texts, names, model):
    """Train a shadow model, and query it for each document."""
    counts = counts_of(texts, names)
    return query(released(texts, names, METHODS[mode], members_of(model, len(texts)), model), counts)


def attacked(mode, documents, models):
    """Train shadow models, and attack each by all others."""
    texts, names = made_up(documents)
    found = np.array([queries_of(mode, texts, names, model) for model in range(models)])
    return attack(found, np.array([members_of(model, documents) for model in range(models)]))
