"""The corpora of the PC-TD benchmark: articles of five days in the order of their time, cut into three participants."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.common import data, say
from tertulia.corpus import Corpus
from tertulia.corpus.splits import is_heldout

HELDOUT = 0.5  # as many articles to test on as to train on
LONGEST = 10_000  # characters: what is longer in 20 Newsgroups is mostly encoded pictures and programs
SIZES = {"t1": 85, "t2": 165, "t3": 252}  # the paper's participants
DAYS = {
    "reuters": ("reuters21578.parquet", "1987-03-02", "1987-03-06"),
    "newsgroups": ("newsgroups20.parquet", "1993-04-26", "1993-04-30"),
}
LONG = {"long postings": ("newsgroups20.parquet", "1993-04-23", "1993-04-30")}  # about as many words as in the paper


def add_corpora(options: argparse.ArgumentParser) -> None:
    """Let the command line choose among the corpora."""
    options.add_argument("--corpora", nargs="+", choices=list(DAYS), default=list(DAYS), help="only these")


class Federated(NamedTuple):
    """Three participants' documents, of which `heldout=HELDOUT` splits off the ones to test on."""

    parties: Mapping[str, Corpus]
    train: Corpus
    test: Corpus


def articles(name: str) -> Federated:
    """Take 502 articles to train on and as many to test on, by a hash of their ids or the longest; cut both by time."""
    file, first, last = (DAYS | LONG)[name]
    table = pl.read_parquet(data(file)).filter(pl.col("date").is_between(pl.lit(first), pl.lit(last)))
    table = table.filter(pl.col("text").str.len_chars() <= LONGEST)
    table = table.cast({"id": pl.String}).unique("id", maintain_order=True).sort("date", "id")
    lengths = dict(zip(table["id"], table["text"].str.len_chars() if name in LONG else [0] * len(table), strict=True))
    order = sorted(table["id"], key=lambda id_: (-lengths[id_], hashlib.blake2b(id_.encode()).digest()))
    chosen = [[id_ for id_ in order if is_heldout(id_, HELDOUT) is out][: sum(SIZES.values())] for out in (False, True)]
    halves = [table.filter(pl.col("id").is_in(ids)) for ids in chosen]
    ends = np.cumsum([0, *SIZES.values()])
    parties = {
        party: _corpus(pl.concat([half[ends[i] : ends[i + 1]] for half in halves])) for i, party in enumerate(SIZES)
    }
    train, test = Corpus.concatenate(list(parties.values())).split(HELDOUT)
    say(f"{name}: {train.n_documents} articles to train on, {train.n_tokens} tokens, and {test.n_documents} to test on")
    return Federated(parties, train, test)


def _corpus(table: pl.DataFrame) -> Corpus:
    return Corpus.from_texts(table["text"].to_list(), table["id"].to_list())
