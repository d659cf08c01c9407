"""`python -m benchmarks.embedding_topics [--quick] [--parts ...]`: see `benchmarks/results/embedding_topics.md`.

Finished cells are cached in benchmarks/out, so a stopped run continues.
"""

from __future__ import annotations

from typing import Any

from benchmarks.common import run_parts
from benchmarks.embedding_topics import documents, ours, peers, private_words
from benchmarks.embedding_topics.attack import attack
from benchmarks.embedding_topics.corpora import SOURCES
from benchmarks.embedding_topics.lazy import Lazy

_SEEDS, _QUICK = 5, ("bbc", "nsf")
_SCORES = ("npmi_all", "npmi_live", "live", "nmi", "diversity")
_SMALL = ("bbc", "nsf", "newsgroups", "reuters")


def _subjects(quick: bool, chosen: tuple[str, ...] = tuple(SOURCES)) -> dict[str, Lazy]:
    return {name: Lazy(name) for name in chosen if name in _QUICK or not quick}


def _lists(found: dict[str, Any], ending: str = "") -> dict[str, Any]:
    return {
        name: {column: [cell.get(score + ending) for score in _SCORES] for column, cell in row.items()}
        for name, row in found.items()
    }


def quality(quick: bool) -> dict[str, Any]:
    """Measure embedding topics by corpus and epsilon."""
    found = ours.quality(_subjects(quick), 2 if quick else _SEEDS)
    return {"quality": _lists(found), "quality_sd": _lists(found, "_sd"), "quality_cells": found}


def fewer_words(quick: bool) -> dict[str, Any]:
    """Measure embedding topics over 5,000 words instead of 30,000."""
    found = ours.fewer_words(_subjects(quick, ("bbc", "newsgroups")), 1 if quick else 3)
    return {"fewer_words": found}


def beside(quick: bool) -> dict[str, Any]:
    """Measure peers without privacy."""
    return {"peers": peers.peers(_subjects(quick), 1 if quick else 3)}


def private_kmeans(quick: bool) -> dict[str, Any]:
    """Measure other ways of private k-means on the same vectors."""
    return {
        "private_kmeans": private_words.private_kmeans(_subjects(quick, _SMALL), (8.0, 3.0, 1.0), 2 if quick else 3)
    }


def doc(quick: bool) -> dict[str, Any]:
    """Measure `PrivateTopics`, which has no vectors."""
    return {
        "private_topics": documents.private_topics(
            _subjects(quick, ("bbc", "newsgroups")), (8.0, 3.0), 1 if quick else 3
        )
    }


def speed(quick: bool) -> dict[str, Any]:
    """Measure CPU seconds after embedding and with it, beside BERTopic's."""
    subjects = _subjects(quick, _SMALL)
    theirs = peers.seconds(subjects, "bertopic")
    return {"speed": {"ours": ours.speed(subjects), "bertopic": theirs}}


def equal(quick: bool) -> dict[str, Any]:
    """Compare federated with pooled training without noise."""
    return {"federated_equals_pooled": ours.equal(_subjects(quick, _SMALL))}


if __name__ == "__main__":
    run_parts(
        "embedding_topics",
        __doc__ or "",
        {
            "quality": quality,
            "fewer_words": fewer_words,
            "peers": beside,
            "private_kmeans": private_kmeans,
            "doc": doc,
            "speed": speed,
            "equal": equal,
            "attack": attack,
        },
    )
