"""The topics that Consensus starts from, found by sums over parties alone.

1. **Words.** One sum counts the documents and the tokens of each agreed word.
2. **Profiles.** One sum adds up the profiles of the most frequent words (`kernels.lda.word_profiles`). The server
   groups words with similar profiles into K first topics. The question holds nothing but words, so that a server can
   choose nothing by which it would single out documents.
3. **Soft counts.** In a few rounds of EM each party sends the expected counts of its words by topic
   (`kernels.lda.soft_counts`). The sum is what EM on the pooled documents would have.

Under secure sums a party adds nothing to the numbers of a word that fewer than five of its documents hold, nor to a
topic that fewer than five have. Totals of fewer documents could be read like these documents.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import FormatError, InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Place, Planned, message, step
from tertulia.kernels.core.checks import check_alpha
from tertulia.kernels.lda import word_profiles
from tertulia.kernels.lda.soft_counts import soft_counts
from tertulia.methods.common.contributions import counted_or_none
from tertulia.methods.common.earlier_model import smooth
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.vocabulary import check_has_words
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.privacy.mechanisms import Clear
from tertulia.privacy.mechanisms.things import thing

WORD_COUNTS = Clear(thing("counts of agreed words", "in how many documents each agreed word is, and how often"))
PROFILES = Clear(thing("profiles of words", "sums over the documents that hold a word"))
SOFT_COUNTS = Clear(thing("expected counts by topic", "words by topic (expected counts)"))
FRACTION = 256  # soft counts are whole numbers of 1/256 token: a sixteenth loses 1 % in perplexity
_UNKNOWN = 0.5  # a share of words off the list of which the party's staff should know
_SMOOTHING = 0.01  # tokens that each word has in each topic beforehand
_PROFILE_BITS = 5  # profiles are whole numbers of 2^-5: a number of a document's row is about 2^-4

OfWords = Annotated[Array, fields.Numbers(("V",), "iu", 0)]
Chosen = Annotated[Array, fields.Numbers(("words",), "iu", 0, fields.MOST_COUNT)]
ProfileSums = Annotated[Array, fields.Numbers(("words", str(word_profiles.DIMENSIONS)), "iu", ring=16)]


@message
class WordTask:
    """The question for counts of words."""

    words: fields.Words


@message
class WordTotals:
    """The documents that hold each word, and its tokens."""

    documents: OfWords
    tokens: OfWords


@message
class ProfileTask:
    """The question for profiles of some words."""

    words: fields.Words
    chosen: Chosen  # [n] places on the list


@message
class Profiles:
    """Profiles of words, in units of 2^-5."""

    sums: ProfileSums  # [n, DIMENSIONS]


@message
class SoftTask:
    """The question of a round of EM."""

    words: fields.Words
    round: fields.Round  # of EM: without it, topics that no longer change would look like a repeated question
    counts: fields.Counts  # [K, V] in any unit
    alpha: fields.Prior  # [K]


@message
class SoftCounts:
    """One party's new expected counts minus those in the sum, in units of 1/256 token."""

    counts: fields.CountChange  # [K, V]


@message
class Expected:
    """The expected counts that a party contributed."""

    place: Place
    counts: Array  # [K, V]


@message
class Expecting:
    """A party's state."""

    latest: Expected
    counted: Expected | None  # this party's part of the sum when it sent its latest


@step(doing="counting words", one_list=True)
def count_tokens(party: Party, state: Any, ask: WordTask) -> tuple[Any, WordTotals]:
    """Count the documents and the tokens of each word."""
    corpus = _documents(party, ask.words)
    check_has_words(party, corpus)
    _check_enough(party, corpus)
    df, tokens = word_profiles.counts_of_words(corpus.words, corpus.documents, len(ask.words), _least_of_words(party))
    return state, WordTotals(party.release(df, WORD_COUNTS), party.release(tokens, WORD_COUNTS))


@step(doing="finding topics", one_list=True)
def profile_words(party: Party, state: Any, ask: ProfileTask) -> tuple[Any, Profiles]:
    """Add up the documents of each chosen word."""
    if np.any(np.diff(ask.chosen) <= 0) or (len(ask.chosen) and ask.chosen[-1] >= len(ask.words)):
        raise FormatError("'chosen' must be places on the word list, in increasing order")
    corpus = _documents(party, ask.words)
    chosen = ask.chosen.astype(np.int64)
    found, _ = word_profiles.profiles(corpus.words, corpus.documents, len(ask.words), chosen, _least_of_words(party))
    return state, Profiles(party.release(word_profiles.on_grid(found, _PROFILE_BITS), PROFILES))


@step(doing="finding topics", replies="changes")
def expect(party: Party, state: Any, ask: SoftTask) -> tuple[Expecting, SoftCounts]:
    """Do the E-step, and send the change of the party's expected counts."""
    corpus = _documents(party, ask.words)
    known = state if isinstance(state, Expecting) else None
    held = counted_or_none(party, known)
    alpha = check_alpha(ask.alpha, len(ask.counts))
    topics = smooth(ask.counts, _SMOOTHING * FRACTION)
    expected = soft_counts(
        corpus.words, corpus.documents, topics, alpha, party.min_documents_per_topic, party.setting("threads", 1)
    )
    counts = np.ascontiguousarray(np.rint(expected.T * FRACTION).astype(np.int32))
    change = counts if held is None else counts - held.counts
    return Expecting(Expected(party.place, counts), held), SoftCounts(party.release(change, SOFT_COUNTS))


STEPS = (count_tokens, profile_words, expect)


def find_topics(fed: Federation, config: ConsensusSettings, words: tuple[str, ...]) -> I64:
    """Return first topics as expected numbers of tokens [K, V]."""
    _check_topics(config.topics, len(words))
    seen = fed.sum(count_tokens, WordTask(words))
    chosen = word_profiles.most_frequent(seen.documents)
    if not len(chosen):
        raise InputError("no word is in enough documents of a party to begin with: give more documents")
    _check_topics(config.topics, len(chosen))
    found = fed.sum(profile_words, ProfileTask(words, chosen))
    sums = np.ldexp(found.sums.astype(np.float64), -_PROFILE_BITS)
    key = np.uint64(config.seed or 0)
    first = word_profiles.topics_of_profiles(sums, seen.documents[chosen], chosen, seen.tokens, config.topics, key)
    counts, alpha = np.rint(first * FRACTION), symmetric(config.alpha, config.topics)
    contributed = np.zeros(counts.shape, dtype=np.int64)
    for round_ in range(config.start_rounds):
        contributed += fed.sum(expect, SoftTask(words, round_, _within_bounds(counts), alpha)).counts
        counts = np.maximum(contributed, 0)
    return np.asarray(np.rint(counts / FRACTION).astype(np.int64))


def _check_topics(topics: int, words: int) -> None:
    """Raise `InputError` if fewer words than topics can be grouped: topics would repeat others."""
    if words < topics:
        raise InputError(
            f"topics = {topics}, but the start can find {words} at most, for only {words} agreed words are in enough "
            f"documents of a party: set topics = {words} or less, or give more documents"
        )


def plan_start(config: ConsensusSettings) -> list[Planned]:
    """List what finding topics will disclose."""
    return [
        Planned(count_tokens, "sum", WORD_COUNTS, 1),
        Planned(profile_words, "sum", PROFILES, 1),
        Planned(expect, "sum", SOFT_COUNTS, config.start_rounds),
    ]


def _within_bounds(counts: F64 | I64) -> Array:
    """Return counts as whole numbers that a question may hold; of large ones half, until they fit."""
    while counts.max(initial=0) > fields.MOST_COUNT:
        counts = counts / 2
    return np.rint(counts).astype(np.int32)


def _documents(party: Party, words: tuple[str, ...]) -> Corpus:
    return party.documents(Vocabulary.of(words))


def _check_enough(party: Party, corpus: Corpus) -> None:
    """Raise if a party has so few documents that nothing of it may leave; tell its staff if most words are dropped."""
    if corpus.n_documents < (least := party.min_documents_per_topic):
        raise InputError(
            f"party '{party.id}' has {corpus.n_documents} documents to train on, and with secure sums nothing of fewer "
            f"than {least} leaves: give it more, or leave it out"
        )
    unknown = 1 - corpus.n_tokens / max(party.documents().n_tokens, 1)
    if unknown > _UNKNOWN:
        party.notice(
            f"{unknown:.0%} of its words are not on the agreed list and are left out: are its language and its subject "
            "those of the others? A longer list, or vocabulary mode 'union', keeps more"
        )


def _least_of_words(party: Party) -> int:
    return max(party.min_documents_per_word, party.min_documents_per_topic)
