"""Reports of tokens, audited in one run (Steinke et al., NeurIPS 2023): the claimed epsilon beside a lower bound.

Each of many documents of one token holds one of two words, by a fair coin. The auditor sees the reports and guesses the
coins, except where a report says nothing (`tertulia.privacy.audit.one_run`). The second word is on the list, or off it:
then it is the symbol for all words off the list.
"""

from __future__ import annotations

import secrets

import numpy as np

from benchmarks.common import say
from tertulia._arrays import F64
from tertulia.corpus import Corpus, Vocabulary
from tertulia.kernels.reports import Reports, reports_of_documents
from tertulia.kernels.reports.channel import Channel, Kind
from tertulia.privacy.audit import one_run

CHANNELS: tuple[tuple[Kind, float], ...] = (
    ("krr", 2.0), ("krr", 4.0), ("krr", 8.0), ("subset", 2.0), ("subset", 4.0), ("laplace", 1.0), ("laplace", 2.0),
)  # fmt: skip
LEVEL = 0.05 / (2 * len(CHANNELS))  # all bounds hold together with 95 %
WORDS = 200


def audits(canaries: int) -> dict[str, list[float]]:
    """Return the charged epsilon and a lower bound of the real one, for each channel and pair of words."""
    found = {}
    for kind, epsilon in CHANNELS:
        claimed = 2 * epsilon if kind == "laplace" else epsilon  # by substitution
        for other in ("listed", "off the list"):
            bound = audit(Channel(kind, epsilon, WORDS + 1), canaries, other == "listed")
            say(f"{kind} {epsilon:g}, the other word {other}: claimed {claimed:g}, at least {bound:.2f}")
            found[f"{kind} {epsilon:g}, {other}"] = [claimed, round(bound, 3)]
    return found


def audit(channel: Channel, canaries: int, listed: bool) -> float:
    """Return a lower bound of epsilon from guesses about `canaries` coins."""
    coins = np.array([secrets.randbits(1) for _ in range(canaries)], dtype=bool)
    words = Vocabulary(tuple(f"word{n:03d}" for n in range(channel.V - 1)))
    other = words.words[1] if listed else "bakery"
    texts = [words.words[0] if coin else other for coin in coins]
    corpus = Corpus.from_texts(texts, [str(n) for n in range(canaries)]).encode(words, unknown=True)
    keys = np.frombuffer(secrets.token_bytes(32 * canaries), dtype=np.uint32).reshape(canaries, 8)
    made = reports_of_documents(corpus.words, corpus.documents, channel, keys)
    scores = _named(made, 0) - _named(made, 1 if listed else channel.V - 1)
    return one_run.bound(coins, scores, LEVEL)


def _named(made: Reports, word: int) -> F64:
    """Return each report's entry for a word: the noisy value, or whether the word is named."""
    said = np.zeros(len(made.indptr) - 1)
    token = np.repeat(np.arange(len(said)), np.diff(made.indptr))
    hit = made.idx == word
    said[token[hit]] = made.value[hit]
    return said
