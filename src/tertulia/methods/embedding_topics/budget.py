"""How EmbeddingTopics divides its budget among its sums, and what can be learned for it.

All noise is Gaussian, so that the squares of shift / deviation of all sums add up (Dong, Roth, Su 2022): a sum gets a
fixed part of the square that epsilon and delta allow. A unit moves every sum by at most 1 in the L2 norm.

The verdict: a word shows in a topic above s sqrt(2 ln K V), where s is the deviation of the noise, K the topics and V
the words. A topic is live with five such words. The fifth of its best words weighs about 0.045 for each document of the
topic, and the k-th largest of K topics has about n (1 - (k - 1/2) / K) 2 / K of n documents.
"""

# The factor is from about 45 runs on documents generated from the topics of medical abstracts (20 and 80 words, 500 to
# 20,000 documents, 5 and 20 topics, epsilon 1, 3 and 8), where the verdict is wrong by 8 % of the topics on average.
# Longer documents have less weight for each word, and clearer topics: their length hardly matters.

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tertulia._arrays import F64
from tertulia.corpus import Corpus
from tertulia.corpus.periods import Periods
from tertulia.errors import ConfigError
from tertulia.federation.types import message
from tertulia.methods.common.periods import FirstDate, LastDate, PeriodKind, periods_or_none
from tertulia.methods.common.seeds import NO_SEEDS, Seeds
from tertulia.methods.common.settings import DocumentDelta, DocumentEpsilon, Settings, TopicCount
from tertulia.methods.common.units import PrivacyUnit
from tertulia.methods.embedding_topics.settings import (
    ClusterRounds,
    EmbeddingName,
    EmbeddingTopicsSettings,
    Fingerprint,
    RunSeed,
    moves_of,
)
from tertulia.models.vectors.words import STATIC
from tertulia.privacy.mechanisms import Adjacency, Claim, Clear, Mechanism, Unit
from tertulia.privacy.mechanisms.gaussian import sigma_for
from tertulia.privacy.mechanisms.shared_gaussian import SharedGaussian
from tertulia.privacy.mechanisms.things import thing

WORDS = thing("weights of words in documents", "in how many documents each word of the list is")
NUMBER = thing("number of documents", "how many documents there are")
CENTRE = thing("sum of document vectors", "the mean direction of documents")
SUMS = thing("document vectors by topic", "the mean direction of each topic's documents")
TABLE = thing("words by topic", "in how many documents of a topic each word is")
SIZES = thing("documents by topic", "how many documents each topic has")
PARTS = {WORDS: 0.08, NUMBER: 0.01, CENTRE: 0.03, SUMS: 0.34, TABLE: 0.52, SIZES: 0.02}  # of the budget
PERIODS = thing("documents by topic and period", "how many documents each topic has in each period")
FOR_PERIODS = 0.05  # of the budget, where a run has periods: the other sums share the rest
BITS = 14  # sums are in steps of 2^-14
LIVE = 5  # words above the noise that a topic needs to be shown
_SOURCE = "EmbeddingTopics, whole run"
_MARGIN = 1.001  # the accountant's grid rounds epsilon up
_STRENGTH = 0.045  # of a document of a topic, for the fifth of the topic's words


@message
class Terms(Settings):
    """The part of the settings that travels. A party holds a question to the plan's."""

    topics: TopicCount = 20
    epsilon: DocumentEpsilon = None
    delta: DocumentDelta = 1e-6
    unit: PrivacyUnit = "document"
    embedding: EmbeddingName = STATIC
    fingerprint: Fingerprint = None
    seeds: Seeds = NO_SEEDS
    seed: RunSeed = None
    rounds: ClusterRounds = None
    by: PeriodKind = None
    since: FirstDate = None
    until: LastDate = None

    @property
    def periods(self) -> Periods | None:
        """The agreed periods."""
        return periods_or_none(self.by, self.since, self.until)

    @property
    def moves(self) -> int:
        """The number of rounds that share the budget of sums."""
        return moves_of(self.rounds, self.epsilon)


def mechanism_of(what: str, terms: Terms, *, shares: int = 1) -> Mechanism:
    """Return the mechanism of a sum that a unit moves by at most 1."""
    if terms.epsilon is None:
        return Clear(what)
    unit = Unit.USER if terms.unit == "user" else Unit.DOCUMENT
    return SharedGaussian(
        what, sensitivity=1.0, sigma=deviation(what, terms), bits=BITS, shares=shares, unit=unit,
        adjacency=Adjacency.ADD_REMOVE, claimed=Claim(terms.epsilon, terms.delta, _SOURCE),
    )  # fmt: skip


def deviation(what: str, terms: Terms) -> float:
    """Return the standard deviation of the noise on each number of a sum; 0 without noise."""
    if terms.epsilon is None:
        return 0.0
    whole = _MARGIN * sigma_for(terms.epsilon, terms.delta, rounds=terms.moves if what == SUMS else 1)
    return whole / math.sqrt(part_of(what, terms))


def part_of(what: str, terms: Terms) -> float:
    """Return a sum's part of the budget."""
    if what == PERIODS:
        return FOR_PERIODS
    return PARTS[what] if terms.by is None else PARTS[what] * (1.0 - FOR_PERIODS)


def threshold(spread: float, numbers: int) -> float:
    """Return what noise of this deviation exceeds in one of `numbers` places about once in two tables."""
    return spread * math.sqrt(2.0 * math.log(max(numbers, 2)))


class Verdict(NamedTuple):
    """What can be learned from this number of documents."""

    topics: int
    documents: int
    epsilon: float
    unit: str

    @property
    def text(self) -> str:
        """Say it in a sentence.

        >>> Verdict(4, 2100, 3.0, "document").text
        'at epsilon 3 of a document, 2,100 documents give about 4 live topics'
        """
        found = f"about {self.topics} live topic{'s' * (self.topics != 1)}" if self.topics else "no live topic"
        return f"at epsilon {self.epsilon:g} of a {self.unit}, {self.documents:,} {self.unit}s give {found}"


def verdict_or_none(config: EmbeddingTopicsSettings, documents: float, louder: float = 1.0) -> Verdict | None:
    """Predict how many topics are live, of those that are asked for; None without noise.

    `louder` is by how much the noise of the total is larger than the plan's, where parties do not share it.
    """
    if config.epsilon is None:
        return None
    K, V = config.topics, len(config.vocabulary.words) or config.vocabulary.max_words or 5_000
    shown = _STRENGTH * documents * _shares(K)
    least = threshold(louder * deviation(TABLE, config.part(Terms)), K * V)
    return Verdict(int(np.sum(shown > least)), round(documents), config.epsilon, config.unit)


def _shares(K: int) -> F64:
    """Return the sizes of topics, the largest first.

    >>> _shares(2).tolist()
    [0.75, 0.25]
    """
    return np.asarray((1.0 - (np.arange(K) + 0.5) / K) * 2.0 / K)


def verdict_on_corpora_or_none(
    config: EmbeddingTopicsSettings, corpora: Sequence[Corpus], louder: float
) -> Verdict | None:
    """Predict the same from a declared number, or from all parties' documents; None without either."""
    if config.declared_documents is not None:
        return verdict_or_none(config, config.declared_documents, louder=louder)
    if not corpora or config.epsilon is None:
        return None
    units = sum(_units(corpus, config.unit) for corpus in corpora)
    return verdict_or_none(config, units, louder) if units else None


def _units(corpus: Corpus, unit: str) -> int:
    if unit == "document" or "user" not in corpus.table.columns:
        return corpus.n_documents
    named = corpus.table["user"].cast(pl.String).str.strip_chars()
    return int(named.filter(named.str.len_chars() > 0).n_unique())


def check_verdict(found: Verdict | None, *, left: str) -> None:
    """Raise `ConfigError` if nothing can be learned; `left` says what of the budget is not spent."""
    if found is not None and found.topics < 1:
        raise ConfigError(
            f"{found.text}: {left}. Give more documents, a larger epsilon, or fewer parties that add noise of their "
            "own (secure sums let them share it)"
        )
