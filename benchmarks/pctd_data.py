"""The corpora of the PC-TD benchmark: articles of five days in the order of their time, cut into three participants."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from benchmarks.common import data, say
from tertulia.corpus import Corpus
from tertulia.corpus.splits import is_heldout

HELDOUT = 0.5  # as many articles to test on as to train on
SIZES = {"t1": 85, "t2": 165, "t3": 252}  # the paper's participants
DAYS = {
    "reuters": ("reuters21578.parquet", "1987-03-02", "1987-03-06"),
    "newsgroups": ("newsgroups20.parquet", "1993-04-26", "1993-04-30"),
}


class Federated(NamedTuple):
    """Three participants' documents, of which `heldout=HELDOUT` splits off the ones to test on."""

    parties: Mapping[str, Corpus]
    train: Corpus
    test: Corpus


def articles(name: str, training: int | None) -> Federated:
    """Take so many training articles of the five days (all if None), as many to test on, and cut them by time."""
    file, first, last = DAYS[name]
    table = pl.read_parquet(data(file)).filter(pl.col("date").is_between(pl.lit(first), pl.lit(last)))
    table = table.cast({"id": pl.String}).unique("id", maintain_order=True).sort("date", "id")
    order = sorted(table["id"], key=lambda id_: hashlib.blake2b(id_.encode()).digest())
    chosen = [[id_ for id_ in order if is_heldout(id_, HELDOUT) is out][:training] for out in (False, True)]
    halves = [table.filter(pl.col("id").is_in(ids)) for ids in chosen]
    cut = [_by_time(half) for half in halves]
    parties = {party: _corpus(pl.concat([half[party] for half in cut])) for party in SIZES}
    train, test = Corpus.concatenate(list(parties.values())).split(HELDOUT)
    say(f"{name}: {train.n_documents} articles to train on, {train.n_tokens} tokens, and {test.n_documents} to test on")
    return Federated(parties, train, test)


def _by_time(table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Cut in the paper's proportions."""
    whole, start, parts = sum(SIZES.values()), 0, {}
    for i, party in enumerate(SIZES):
        end = round(table.height * sum(list(SIZES.values())[: i + 1]) / whole)
        parts[party] = table[start:end]
        start = end
    return parts


def _corpus(table: pl.DataFrame) -> Corpus:
    return Corpus.from_texts(table["text"].to_list(), table["id"].to_list())
