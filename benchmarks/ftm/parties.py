"""The corpora of FTM's figures, cut into parties, and one judge for all models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common import data, imdb, newsgroups, say
from tertulia import Corpus, TextOptions, Topics
from tertulia.corpus import Vocabulary
from tertulia.corpus.splits import is_heldout
from tertulia.corpus.vocabulary import merge, propose
from tertulia.metrics import completion
from tertulia.metrics.perplexity import unigram

HELDOUT = 0.15
SMOOTHING = 0.01  # a single party has never seen some words
Parties = Mapping[str, Corpus]

THREE = {"P1": ("religion", "forsale"), "P2": ("politics", "recreation"), "P3": ("computing", "science")}
FOUR = {"P1": ("religion", "forsale"), "P2": ("politics", "recreation"), "P3": ("computing",), "P4": ("science",)}
SUBJECTS = (("sport",), ("entertainment", "tech"))  # of BBC news; the third party has business and politics
SIX = {name: (name,) for groups in THREE.values() for name in groups}


@dataclass(frozen=True)
class World:
    """Parties that agree on public words, and everyone's held-out documents."""

    parties: Parties  # training and held-out documents together: runs split them by the documents' ids
    words: dict[str, Any]  # the settings of the vocabulary
    heldout: Corpus
    unigram: float  # log likelihood of a token

    def score(self, model: Topics) -> float:
        """Log likelihood of a held-out token by document completion."""
        found = completion(model.topic_word, model.alpha, self.heldout, smoothing=SMOOTHING, threads=2)
        return found.log_likelihood / found.tokens

    def perplexity(self, model: Topics) -> float:
        """Return the score as perplexity."""
        return math.exp(-self.score(model))


def world(parties: Parties, max_words: int, min_documents: int = 10) -> World:
    """Let parties have the most frequent words as a public list."""
    halves = {name: corpus.split(HELDOUT) for name, corpus in parties.items()}
    proposals = {name: propose(train) for name, (train, _) in halves.items()}
    words = merge(proposals, min_documents=min_documents, max_share=0.5, max_words=max_words)
    train, heldout = (Corpus.concatenate([half[i] for half in halves.values()]).encode(words) for i in (0, 1))
    found = completion(unigram(train), 1.0, heldout, smoothing=SMOOTHING)
    say(f"{', '.join(f'{name} {c.n_documents}' for name, c in parties.items())} documents; {train}")
    return World(parties, _public(words), heldout, found.log_likelihood / found.tokens)


def groups() -> Corpus:
    """Read 20 Newsgroups, labelled by super-group."""
    return newsgroups(min_documents=1, max_share=1.0, label="party")


def cut(corpus: Corpus, plan: Mapping[str, tuple[str, ...]], share: float = 1.0) -> dict[str, Corpus]:
    """Return parties of whole super-groups, or of a share of their documents, chosen by their ids."""
    labels = corpus.table["label"].to_numpy()
    chosen = np.array([share >= 1 or is_heldout(name, share, seed=1) for name in corpus.table["id"]])
    return {party: corpus.select(chosen & np.isin(labels, names)) for party, names in plan.items()}


def at_random(corpus: Corpus, sizes: Mapping[str, int], seed: int = 0) -> dict[str, Corpus]:
    """Return parties of the given relative sizes whose documents are alike."""
    party = np.random.default_rng(seed).choice(
        len(sizes), corpus.n_documents, p=np.array([*sizes.values()]) / sum(sizes.values())
    )
    return {name: corpus.select(party == i) for i, name in enumerate(sizes)}


def reviews(documents: int | None, max_words: int) -> World:
    """Return IMDB in three parties at random, 1:2:3."""
    train, _ = imdb(documents, heldout=0)
    return world(at_random(train, {"P1": 1, "P2": 2, "P3": 3}), max_words)


def bbc(by_subject: bool = False, validation: bool = False) -> World:
    """Return BBC news as OCTIS prepared them, in three parties: equal and alike, or of different subjects.

    Scored are its test documents; or its validation documents, which are then not trained on.
    """
    table = pl.read_parquet(data("bbc_octis.parquet"))
    options = TextOptions(stop_words="none", min_length=1)
    corpus = Corpus.from_texts(table["text"].to_list(), ids=[str(i) for i in table["id"]], options=options)
    split, subject = table["split"].to_numpy(), table["label"].to_numpy()
    training = split == "train" if validation else split != "test"
    train, scored = corpus.select(training), corpus.select(split == ("val" if validation else "test"))
    words = Vocabulary(tuple(propose(train).words))
    party = np.arange(train.n_documents) % 3
    if by_subject:
        party = np.select([np.isin(subject[training], names) for names in SUBJECTS], [0, 1], 2)
    parties = {f"P{i + 1}": train.select(party == i) for i in range(3)}
    heldout = scored.encode(words)
    found = completion(unigram(train.encode(words)), 1.0, heldout)
    say(f"BBC: {train.encode(words)}, {heldout.n_documents} to score")
    return World(parties, _public(words), heldout, found.log_likelihood / found.tokens)


def _public(words: Vocabulary) -> dict[str, Any]:
    return {"mode": "public", "words": words.words}
