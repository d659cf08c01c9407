"""Measure the cost of keeping words off the list as UNK, in epsilon, time and perplexity.

20 Newsgroups over the English list that comes with the package. The denominator of each ratio is a model that drops
words off the list before reports are made, as if nobody could count them. Its epsilon for a document was claimed for
the remaining words, and did not hold.

    share          of tokens that are off the list
    epsilon_ratio  of a document of average length, all tokens against those on the list, at delta 0
    time_ratio     CPU time of reports and sampling
    ppl_ratio      perplexity of held-out documents over the words on the list
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import arguments, data, finish, say, time_cpu
from tertulia._arrays import F64
from tertulia.corpus import Corpus, Vocabulary, read
from tertulia.corpus.vocabulary import ENGLISH, public
from tertulia.kernels import noise_aware
from tertulia.kernels.reports import reports
from tertulia.kernels.reports.channel import Channel
from tertulia.kernels.reports.preparation import listed_reports
from tertulia.metrics import completion
from tertulia.privacy.accounting import guarantee_of
from tertulia.privacy.mechanisms.token_reports import TokenReports

EPSILON, K, ALPHA, BETA = 10.0, 20, 0.25, 0.05
LISTS = (20_000, 8_000)
HELDOUT = 0.1


class Sizes(NamedTuple):
    """The size of the experiment."""

    documents: int | None
    sweeps: int
    seeds: int


def run(quick: bool) -> dict[str, Any]:
    """Return `{"unk": {words: [share, epsilon_ratio, time_ratio, ppl_ratio]}}`."""
    sizes = Sizes(2_000, 40, 1) if quick else Sizes(None, 200, 3)
    corpus = read(data("newsgroups20.parquet"), id="id")
    chosen = np.arange(corpus.n_documents)[: sizes.documents]
    train, heldout = corpus.select(chosen).split(HELDOUT)
    words = public(ENGLISH).words
    return {"unk": {str(n): _costs(train, heldout, Vocabulary(words[:n]), sizes) for n in LISTS}}


def _costs(train: Corpus, heldout: Corpus, words: Vocabulary, sizes: Sizes) -> list[float]:
    kept, dropped, scored = train.encode(words, unknown=True), train.encode(words), heldout.encode(words)
    share = 1 - dropped.n_tokens / kept.n_tokens
    spent = [_epsilon(corpus, len(corpus.vocabulary)) for corpus in (kept, dropped)]
    times, perplexities = np.zeros((2, sizes.seeds)), np.zeros((2, sizes.seeds))
    _train(kept.select(np.arange(20)), len(words), 1, 0)  # compiles
    for seed in range(sizes.seeds):
        for i, corpus in enumerate((kept, dropped)):
            times[i, seed], phi = time_cpu(partial(_train, corpus, len(words), sizes.sweeps, seed))
            perplexities[i, seed] = completion(phi, np.full(K, ALPHA), scored).perplexity
            say(
                f"{len(words)} words, seed {seed}, {('UNK kept', 'dropped')[i]}: perplexity {perplexities[i, seed]:.0f}"
            )
    ratios = (spent[0] / spent[1], times[0].sum() / times[1].sum(), np.mean(perplexities[0] / perplexities[1]))
    return [round(float(x), 4) for x in (share, *ratios)]


def _epsilon(corpus: Corpus, symbols: int) -> float:
    """Return the epsilon of replacing a document of average length by another."""
    charge = TokenReports("reports", channel=Channel("krr", EPSILON, symbols))
    return guarantee_of(charge, copies=math.ceil(corpus.lengths.mean())).epsilon


def _train(corpus: Corpus, V: int, sweeps: int, seed: int) -> F64:
    """Return topics [K, V] from reports: the mean over the last half of the sweeps, as parties push it."""
    symbols = len(corpus.vocabulary)
    channel = Channel("krr", EPSILON, symbols)
    source = partial(reports, corpus.words, channel, bytes([seed]) * 32, "benchmark")
    made: noise_aware.Source
    if symbols > V:
        found = listed_reports(source, channel, corpus.n_tokens)
        made, documents = found.source, found.offsets(corpus.documents)
    else:
        made, documents = source(0, corpus.n_tokens), corpus.documents
    state = noise_aware.init(made, documents, V, K, ALPHA, BETA, key=seed)
    last = max(1, sweeps // 2)
    state, _ = noise_aware.run(made, documents, state, sweeps - last, key=seed + 1, phi="mean")
    mean = np.zeros((K, V))
    for s in range(last):
        state, _ = noise_aware.run(made, documents, state, 1, key=1000 * seed + s, phi="mean")
        mean += noise_aware.topic_word(state) / last
    return mean


if __name__ == "__main__":
    finish(run(arguments("What UNK costs.").quick))
