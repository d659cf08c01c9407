"""How PrivateTopics divides its budget among its sums, and what can be learned for it.

All noise is Gaussian, so that the squares of shift / deviation of all sums add up (Dong, Roth, Su 2022): a sum gets a
fixed part of the square that epsilon and delta allow.

The verdict compares two numbers. A topic is an eigenvalue of the co-occurrence matrix. Without noise the k-th largest
is about n c / k for n documents, with c = 0.021 L^0.2 for documents of L words. Noise alone has eigenvalues up to
2 s sqrt(v), for deviation s and v words. So about n c / (2 s sqrt(v)) topics show above the noise.
"""

# The power of L is from medical abstracts, Reuters, food reviews and grants without noise, where k times the k-th
# eigenvalue is much the same for k from 2 to 20. The factor is from runs on documents generated from the topics of
# medical abstracts, where noise hides a quarter of the topics that this law alone would show.

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tertulia._arrays import Array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import ConfigError
from tertulia.federation.types import message
from tertulia.kernels.lda.clipped import PAIRS_NORM
from tertulia.methods.common.settings import DocumentDelta, DocumentEpsilon, Rounds, Settings
from tertulia.methods.common.units import PrivacyUnit
from tertulia.methods.private_topics.settings import NoiseMode, PrivateTopicsSettings
from tertulia.privacy.mechanisms import Adjacency, Claim, Clear, Mechanism, Unit
from tertulia.privacy.mechanisms.gaussian import sigma_for
from tertulia.privacy.mechanisms.shared_gaussian import SharedGaussian
from tertulia.privacy.mechanisms.things import thing

WORDS = thing("weights of words", "how often each word of the list occurs")
LENGTHS = thing("numbers of documents by length", "how many documents there are, by length")
PAIRS = thing("co-occurrence of words", "how often two words are in one document")
COUNTS = thing("clipped counts by topic", "words by topic (expected counts)")
PARTS = {WORDS: 0.04, LENGTHS: 0.01, PAIRS: 0.60, COUNTS: 0.35}  # of the budget
BITS = 14  # sums are in steps of 2^-14
_SOURCE = "PrivateTopics, whole run"
_MARGIN = 1.001  # the accountant's grid rounds epsilon up
_STRENGTH, _BY_LENGTH = 0.021, 0.2  # c = 0.021 L^0.2
USUAL_LENGTH = 100  # words of a document, if nobody says
_USUAL_LIST = 187  # words of a list on which weak topics show: 1,500, halved three times


@message
class Noise(Settings):
    """The part of the settings that says how much noise there is. A party holds a question to the plan's."""

    mode: NoiseMode
    epsilon: DocumentEpsilon
    delta: DocumentDelta
    unit: PrivacyUnit
    rounds: Rounds  # that share the budget of the counts


def mechanism_of(what: str, noise: Noise, *, clip: float = 1.0, shares: int = 1) -> Mechanism:
    """Return the mechanism of a sum that a unit moves by its sensitivity times `clip`."""
    if noise.mode == "clear" or noise.epsilon is None:
        return Clear(what)
    unit = Unit.USER if noise.unit == "user" else Unit.DOCUMENT
    claim = Claim(noise.epsilon, noise.delta, _SOURCE)
    return SharedGaussian(
        what, sensitivity=sensitivity_of(what) * clip, sigma=deviation(what, noise, clip), bits=BITS, shares=shares,
        unit=unit, adjacency=Adjacency.ADD_REMOVE, claimed=claim,
    )  # fmt: skip


def sensitivity_of(what: str) -> float:
    """Return how far one unit moves a sum, in the L2 norm, for a clip of 1."""
    return PAIRS_NORM if what == PAIRS else 1.0


def deviation(what: str, noise: Noise, clip: float = 1.0) -> float:
    """Return the standard deviation of the noise on each number of a sum; 0 without noise."""
    if noise.mode == "clear" or noise.epsilon is None:
        return 0.0
    whole = _MARGIN * sigma_for(noise.epsilon, noise.delta, rounds=noise.rounds if what == COUNTS else 1)
    return sensitivity_of(what) * clip * whole / math.sqrt(PARTS[what])


class Verdict(NamedTuple):
    """What can be learned from this number of documents."""

    topics: int
    documents: int
    words_per_document: float
    epsilon: float
    unit: str

    @property
    def text(self) -> str:
        """Say it in a sentence.

        >>> Verdict(4, 2100, 119.0, 3.0, "document").text
        'at epsilon 3 of a document, 2,100 documents of about 119 words show about 4 topics'
        """
        found = f"about {self.topics} topic{'s' * (self.topics != 1)}" if self.topics else "no topic"
        units = f"{self.documents:,} {self.unit}s of about {self.words_per_document:.0f} words"
        return f"at epsilon {self.epsilon:g} of a {self.unit}, {units} show {found}"


def verdict_or_none(
    config: PrivateTopicsSettings, documents: float, words_per_document: float, louder: float = 1.0
) -> Verdict | None:
    """Predict how many topics show above the noise, at most those that are asked for; None without noise.

    `louder` is by how much the noise of the total is larger than the plan's, where parties do not share it.
    """
    noise = config.part(Noise)
    if noise.mode == "clear" or noise.epsilon is None:
        return None
    strength = documents * _STRENGTH * max(words_per_document, 1.0) ** _BY_LENGTH
    edge = 2.0 * louder * deviation(PAIRS, noise) * math.sqrt(_USUAL_LIST)
    topics = min(int(strength / edge), config.topics)
    return Verdict(topics, round(documents), words_per_document, noise.epsilon, noise.unit)


def verdict_on_corpora_or_none(
    config: PrivateTopicsSettings, corpora: Sequence[Corpus], louder: float
) -> Verdict | None:
    """Predict the same from declared numbers, or from all parties' documents; None without either."""
    if config.declared_documents is not None:
        return verdict_or_none(config, config.declared_documents, config.words_per_document or USUAL_LENGTH, louder)
    if not corpora:
        return None
    words = Vocabulary(config.vocabulary.words)
    lengths = np.concatenate([_unit_lengths(corpus.encode(words), config.unit) for corpus in corpora])
    if not len(lengths):
        return None
    return verdict_or_none(config, len(lengths), config.words_per_document or float(np.median(lengths)), louder)


def _unit_lengths(corpus: Corpus, unit: str) -> Array:
    """Return the tokens of each document, or of all documents of each user that is named."""
    if unit == "document" or "user" not in corpus.table.columns:
        return corpus.lengths
    lengths = pl.DataFrame({"user": corpus.table["user"], "tokens": corpus.lengths})
    named = lengths.filter(pl.col("user").str.strip_chars().str.len_chars() > 0)
    return named.group_by("user").agg(pl.col("tokens").sum())["tokens"].to_numpy()


def check_verdict(found: Verdict | None, *, left: str) -> None:
    """Raise `ConfigError` if nothing can be learned; `left` says what of the budget is not spent."""
    if found is not None and found.topics < 1:
        raise ConfigError(
            f"{found.text}: {left}. Give more documents, a larger epsilon, or fewer parties that add noise of their "
            "own (secure sums let them share it)"
        )
