"""Replays of runs for tests: parties' corpora, with ids and users."""

import dataclasses

import polars as pl

from tertulia.corpus import Corpus
from tertulia.runs.replay import replay
from tertulia.runs.settings import RunSettings


def corpora_of(parties, *, ids=True, documents_per_user=None):
    found = {}
    for party, texts in parties.items():
        corpus = Corpus.from_texts(texts, ids=[f"{party}-{i}" for i in range(len(texts))] if ids else None)
        if documents_per_user is not None:
            users = pl.Series("user", [f"{party}-{i // documents_per_user}" for i in range(len(texts))])
            corpus = dataclasses.replace(corpus, table=corpus.table.with_columns(users))
        found[party] = corpus
    return found


def replayed(corpora, method, **settings):
    return replay(RunSettings(method=method, **{"seed": 3, "heldout": 0.2, **settings}), corpora)


def said(report):
    """The violations as sentences, for pytest to show."""
    return [violation.text for violation in report.violations]
