"""Audit of tokens: canary tokens are one of two words, by a coin, and the auditor reads their reports.

All that leaves in mode `sound` is computed from reports, so they are the most that anybody can read. The auditor
regenerates those that the run drew, by the run's own keys. If a step drew a token's report more than once, it has all
of them. The second word is on the list, or off it: a token off the list must have a report like any other, for the
lengths of documents are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I64, Array, Bool
from tertulia.corpus import Corpus
from tertulia.kernels.reports import Channel, Reports, reports_of_documents
from tertulia.operations.audit.canaries import canary_words, corpus_of
from tertulia.operations.audit.recording import Drawn

LONG = 20  # tokens of a document whose second word is listed; the others have one
OFF = 0.1  # share of the canaries whose second word is off the list
_CERTAIN = 1e6


class PlantedTokens(NamedTuple):
    """Documents of canary tokens, with their coins."""

    corpora: tuple[Corpus, Corpus]  # the second word on the list, off it
    coins: Bool  # [m] in the order of the documents; True: the first word
    words: tuple[str, str, str]  # the first, the second on the list, the one off it


def canary_tokens(number: int, like: Corpus, words: tuple[str, str], coins: Bool, length: int = LONG) -> PlantedTokens:
    """Make documents of canary tokens, by these coins."""
    length = min(length, LONG)
    off = max(1, int(OFF * number))
    on = (number - off) // length * length
    coins = coins[: on + off]
    all_words = (*words, canary_words(1, frozenset(like.vocabulary.words))[0])
    other = np.where(coins, 0, np.where(np.arange(len(coins)) < on, 1, 2)).astype(np.int32)
    shapes = other[:on].reshape(-1, length), other[on:].reshape(-1, 1)
    parts = [corpus_of(part, all_words, like, np.arange(len(part))) for part in shapes]
    return PlantedTokens((parts[0], parts[1]), coins, all_words)


def scores_of(drawn: Sequence[Drawn], planted: PlantedTokens) -> F64:
    """Return the log of the likelihood ratio of the two words of each canary token, over all reports of it."""
    total, seen = np.zeros(len(planted.coins)), set[bytes]()
    for one in drawn:
        channel = getattr(one.mechanism, "channel", None)
        key = one.randomness.documents.tobytes()
        if channel is None or key in seen:
            continue
        seen.add(key)
        total += np.concatenate([_scores(one, channel, planted, part) for part in (0, 1)])
    return total


def _scores(drawn: Drawn, channel: Channel, planted: PlantedTokens, part: int) -> F64:
    made, corpus = planted.corpora[part], drawn.corpus
    place = {name: i for i, name in enumerate(corpus.table["id"])}
    chosen = np.array([place[name] for name in made.table["id"]], np.int64)
    words, documents = drawn.randomness.drawn_from[:2]
    tokens = _tokens_of(documents, chosen)
    keys = drawn.randomness.documents[chosen]
    lengths = np.diff(documents)[chosen]
    length = int(made.lengths[0])
    index = corpus.vocabulary.index
    first, second = (index.get(planted.words[i], len(index) - 1) for i in (0, 1 + part))
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    found = reports_of_documents(words[tokens], offsets, channel, keys)
    ratio = [ratio_of(found, word) for word in (first, second)]
    scores = np.log(ratio[0]) - np.log(ratio[1])
    if np.all(lengths == length):
        return np.asarray(scores)
    # a document lost tokens: which must be the second word, if only that is off the list
    whole = np.full((len(lengths), length), -_CERTAIN)
    full = lengths == length
    whole[full] = scores[np.repeat(full, lengths)].reshape(-1, length)
    if part == 1:
        whole[full] = _CERTAIN
    return whole.reshape(-1)


def ratio_of(found: Reports, word: int) -> F64:
    """Return each report's likelihood of a word, against the background."""
    ratio = np.full(len(found.indptr) - 1, found.r0)
    token = np.repeat(np.arange(len(ratio)), np.diff(found.indptr))
    hit = found.idx == word
    ratio[token[hit]] += found.a[hit]
    return ratio


def _tokens_of(documents: Array, chosen: I64) -> I64:
    starts, ends = documents[chosen], documents[chosen + 1]
    return np.concatenate([np.arange(a, b) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)] or [_NONE])


_NONE = np.zeros(0, np.int64)
