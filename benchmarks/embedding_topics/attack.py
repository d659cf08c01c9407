"""Planted documents, by which a cluster of a target's known words might show its secret word.

After Cliopatra (2026). A target is one document: twelve words that the attacker knows, and one of five secret words.
The attacker plants fifty documents of eight of the known words each, so that they and the target form a cluster of
their own, and reads what the model says of that cluster. With `chosen` the server also lets the clusters start from
the known words, which is the most that it can do to have the target alone in one: centroids that it chooses.

With `server` the attacker is the server, which chooses so and reads the noisy totals from which the topics are made:
they hold all words, also those that no topic shows.

The guess is the secret word that is most above its share in all topics, in the topic of most planted documents, or any
of the five if the topic has none of them. Guessing alone is right for one target in five.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import polars as pl

import tertulia as tt
from benchmarks.common import data, say
from benchmarks.embedding_topics.cells import Cell, cached
from benchmarks.embedding_topics.private_kmeans import kmeans, nearest
from tertulia._arrays import F64, I64, Array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.vocabulary import public
from tertulia.errors import TertuliaError
from tertulia.methods.embedding_topics import clusters
from tertulia.methods.embedding_topics import method as method_module
from tertulia.methods.embedding_topics.results import Outcome, topics_of
from tertulia.models.vectors.documents import vectors_of

SECRETS = ("diabetes", "asthma", "cancer", "arthritis", "depression")
GUESS = 1.0 / len(SECRETS)
_KNOWN, _SHOWN, _PLANTED = 12, 8, 50  # words that are known, of these in a planted document; planted documents
_RANKS = (2_000, 12_000)  # of known words in the public list
TARGETS, TOPICS = 8, 30  # of one run
_RUNS = 25  # at epsilon 3


class Target(NamedTuple):
    """A target: the words that the attacker knows, and the number of the secret one."""

    known: tuple[str, ...]
    secret: int


class Scene(NamedTuple):
    """A run's documents: others, targets, and planted ones of each target."""

    corpus: Corpus  # over the public list
    targets: list[Target]
    planted: list[I64]  # the numbers of the planted documents of each target


class Released(NamedTuple):
    """What the attacker sees: topics over words, and the topic of each planted document."""

    topic_word: F64
    words: Sequence[str]
    weights: F64
    assigned: I64
    totals: bool = False  # of documents by word, under noise


Method = Callable[[Scene, int], Released | None]


def scene(others: Corpus, seed: int, targets: int = TARGETS) -> Scene:
    """Make the documents of one run; the others are over the public list."""
    rng = np.random.default_rng([38, seed])
    pool = [word for word in public("english").words[slice(*_RANKS)] if word not in SECRETS]
    texts, chosen, planted = [], [], []
    for _ in range(targets):
        known = tuple(rng.choice(pool, _KNOWN, replace=False).tolist())
        secret = int(rng.integers(len(SECRETS)))
        chosen.append(Target(known, secret))
        texts.append(" ".join((*known, SECRETS[secret])))
        planted.append(others.n_documents + len(texts) + np.arange(_PLANTED))
        texts += [" ".join(rng.choice(known, _SHOWN, replace=False)) for _ in range(_PLANTED)]
    added = Corpus.from_texts(texts, [f"added{n}" for n in range(len(texts))]).encode(others.vocabulary)
    return Scene(Corpus.concatenate([others, added]), chosen, planted)


def over_public_list(texts: Sequence[str]) -> Corpus:
    """Make a corpus over the public list."""
    return Corpus.from_texts(texts, [str(n) for n in range(len(texts))]).encode(Vocabulary(public("english").words))


def guesses(found: Released | None, given: Scene, rng: np.random.Generator) -> list[bool]:
    """Attack each target; return whether the guess is right."""
    right = []
    for target, planted in zip(given.targets, given.planted, strict=True):
        guess = None if found is None else _guess(found, planted, rng)
        right.append((int(rng.integers(len(SECRETS))) if guess is None else guess) == target.secret)
    return right


def _guess(found: Released, planted: I64, rng: np.random.Generator) -> int | None:
    topic = Counter(found.assigned[planted].tolist()).most_common(1)[0][0]
    place = {word: v for v, word in enumerate(found.words)}
    if topic < 0:
        return None
    columns = [place.get(word, -1) for word in SECRETS]
    mean = found.weights @ found.topic_word
    if found.totals:  # noise is of the same size on all words
        return int(np.argmax([found.topic_word[topic, v] for v in columns]))
    above = np.array([found.topic_word[topic, v] / max(mean[v], 1e-12) if v >= 0 else 0.0 for v in columns])
    return int(rng.choice(np.flatnonzero(above == above.max()))) if above.max() > 0 else None


def ours(epsilon: float | None, *, chosen: bool = False, server: bool = False) -> Method:
    """Train embedding topics on the documents, and read the model that is released, or the server's totals."""

    def train(given: Scene, seed: int) -> Released | None:
        seeds = {f"target{n}": list(target.known) for n, target in enumerate(given.targets)} if chosen else None
        words = {"mode": "public", "words": "english"}  # without noise, too: the same words for all
        method = tt.EmbeddingTopics(topics=TOPICS, epsilon=epsilon, seeds=seeds or {}, vocabulary=words)
        totals: list[Outcome] = []
        try:
            with warnings.catch_warnings(), _overheard(totals):
                warnings.simplefilter("ignore", UserWarning)  # of dead topics
                model = method.fit({"all": given.corpus}, seed=seed, progress=False, heldout=0).topics_
        except TertuliaError as error:
            say(f"stopped: {error}")
            model = None
        if server:
            return _of_totals(totals[0], given) if totals else None
        if model is None:
            return None
        weights = np.full(model.n_topics, 1.0 / model.n_topics) if model.weights is None else model.weights
        assigned = model.assign(given.corpus)
        return Released(np.asarray(model.topic_word, np.float64), model.vocabulary.words, weights, assigned)

    return train


@contextmanager
def _overheard(totals: list[Outcome]) -> Iterator[None]:
    """Collect the totals that the server makes topics from."""

    def collect(found: Outcome, config: Any) -> Any:
        totals.append(found)
        return topics_of(found, config)

    with patch.object(method_module, "topics_of", collect):
        yield


def _of_totals(found: Outcome, given: Scene) -> Released:
    """Return noisy shares of words by cluster; planted documents are in the nearest one."""
    counts = np.asarray(found.counts, np.float64)
    vectors = vectors_of(given.corpus.encode(Vocabulary(found.words)), "static")
    labels = clusters.nearest(clusters.around(vectors, found.centre), clusters.unit_rows(np.asarray(found.sums)))
    return Released(counts, found.words, np.full(len(counts), 1.0 / len(counts)), labels, totals=True)


def cluster_and_summarise(given: Scene, seed: int) -> Released:
    """Cluster the same vectors by k-means and release the words of each cluster, without any protection."""
    corpus = given.corpus
    X: Array = vectors_of(corpus, embedding="static")
    assigned = nearest(X, kmeans(X, TOPICS, np.ones(len(X)), seed))
    counts = np.zeros((TOPICS, len(corpus.vocabulary)))
    np.add.at(counts, (np.repeat(assigned, corpus.lengths), corpus.words), 1.0)
    sums = counts.sum(axis=1, keepdims=True)
    return Released(counts / np.maximum(sums, 1.0), corpus.vocabulary.words, sums[:, 0] / sums.sum(), assigned)


METHODS: dict[str, Method] = {
    "ours_3": ours(3.0),
    "ours_3_server": ours(3.0, chosen=True, server=True),
    "ours_none": ours(None),
    "ours_none_chosen": ours(None, chosen=True),
    "baseline": cluster_and_summarise,
}


def background() -> Corpus:
    """Return the other documents: medical abstracts, which have the secret words, too, and 20 Newsgroups."""
    files = ("medical_abstracts_2888.parquet", "newsgroups20.parquet")
    return over_public_list([text for file in files for text in pl.read_parquet(data(file))["text"].to_list()])


def attack(quick: bool) -> dict[str, Any]:
    """Attack targets, eight in a run: the share of right guesses by method, and its standard error."""
    runs = {name: 3 if quick else _RUNS if name.startswith("ours_3") else 5 for name in METHODS}
    found: dict[str, Any] = {"guess": GUESS}
    others: list[Corpus] = []
    for name, method in METHODS.items():
        right: list[bool] = []
        for seed in range(runs[name]):

            def run(method: Method = method, seed: int = seed) -> Cell:
                if not others:
                    others.append(background())
                given = scene(others[0], seed)
                return {"right": guesses(method(given, seed), given, np.random.default_rng([7, seed]))}

            right += cached(["attack", name, seed], run)["right"]
        share = float(np.mean(right))
        found[name] = round(share, 3)
        found[f"{name}_targets"] = len(right)
        found[f"{name}_se"] = round(float(np.sqrt(share * (1.0 - share) / len(right))), 3)
    return {"attack": found}
