"""The topics that Consensus starts from, found by sums over parties alone.

1. **Words.** One sum counts the documents and the tokens of each agreed word.
2. **Profiles.** One sum adds up the profiles of the most frequent words (`kernels.lda.word_profiles`). Each party
   groups words with similar profiles into K first topics: the same ones, for all have the same totals.
3. **Soft counts.** In a few rounds of EM each party sends the expected counts of its words by topic
   (`kernels.lda.soft_counts`). The sum is what EM on the pooled documents would have.

Questions hold totals alone. Under secure sums a tag shows members that a total is true (`Party.check_sum`), so a server
cannot make up topics by which it would single out documents, unless a member helps it.

Under secure sums a party adds nothing to the numbers of a word that fewer than five of its documents hold, nor to a
topic that fewer than five have. Totals of fewer documents could be read like these documents.

In mode `sound` all of this is computed from noisy reports of words, which are charged once. Profiles take a report for
the word that it names loudest; EM takes it as evidence for a topic, or as background (`noise_aware.reported`).
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np

from tertulia._arrays import F64, I32, I64, Array
from tertulia._kinds import check_array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import FormatError, InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Place, Planned, message, step
from tertulia.kernels.core.checks import check_alpha, check_counts
from tertulia.kernels.lda import word_profiles
from tertulia.kernels.lda.soft_counts import soft_counts
from tertulia.kernels.noise_aware import Source
from tertulia.kernels.noise_aware.reported import expected_counts, named_words
from tertulia.methods.common.contributions import counted_or_none
from tertulia.methods.common.earlier_model import smooth
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import plan_reports, report_tokens
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.seeds import Prior
from tertulia.methods.common.vocabulary import check_has_words
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.privacy.mechanisms import Clear, Derived
from tertulia.privacy.mechanisms.things import thing

WORD_COUNTS = Clear(thing("counts of agreed words", "in how many documents each agreed word is, and how often"))
PROFILES = Clear(thing("profiles of words", "sums over the documents that hold a word"))
SOFT_COUNTS = Clear(thing("expected counts by topic", "words by topic (expected counts)"))
FRACTION = 256  # soft counts are whole numbers of 1/256 token: a sixteenth loses 1 % in perplexity
EXPECTED = "expected counts"  # the name of tags
_UNKNOWN = 0.5  # a share of words off the list of which the party's staff should know
_SMOOTHING = 0.01  # tokens that each word has in each topic beforehand
_PROFILE_BITS = 5  # profiles are whole numbers of 2^-5: a number of a document's row is about 2^-4

_Total = TypeVar("_Total", bound=Any)
OfWords = Annotated[Array, fields.Numbers(("V",), "iu", 0)]
ProfileSums = Annotated[Array, fields.Numbers(("words", str(word_profiles.DIMENSIONS)), "iu", ring=16)]
Seed = Annotated[int | None, fields.Uncapped("a key")]
PerToken = Annotated[int, fields.Between(1, FRACTION)]


@message
class FirstTopics(Training):
    """The settings of the start. The door compares them with the plan's."""

    seed: Seed = None


@message
class WordTask:
    """The question for counts of words."""

    words: fields.Words
    settings: FirstTopics


@message
class WordTotals:
    """The documents that hold each word, and its tokens."""

    documents: OfWords
    tokens: OfWords
    tag: fields.SumTag


@message
class ProfileTask:
    """The question for profiles of the words in most documents."""

    words: fields.Words
    settings: FirstTopics
    seen: WordTotals


@message
class Profiles:
    """Profiles of words, in units of 2^-5."""

    sums: ProfileSums  # [n, DIMENSIONS]
    tag: fields.SumTag


@message
class FoundProfiles:
    """The totals from which every party computes the same first topics."""

    seen: WordTotals
    profiles: Profiles


@message
class SoftCounts:
    """One party's new expected counts minus those in the sum, in units of 1/256 token, or larger ones if asked for."""

    counts: fields.CountChange  # [K, V]
    tag: fields.SumTag


@message
class SoftTask:
    """The question of a round of EM. It holds totals alone, so that a server has nothing to choose."""

    words: fields.Words
    round: fields.Round  # of EM: without it, topics that no longer change would look like a repeated question
    settings: FirstTopics
    per_token: PerToken  # units of counts in a token
    start: FoundProfiles | None  # in the first round
    counts: SoftCounts | None  # the total of the round before


@message
class Expected:
    """The expected counts that a party contributed: it has few words, and a word few topics."""

    place: Place
    cells: Array  # [n] places in [K, V] of the counts that are not 0
    counts: Array  # [n]


@message
class Expecting:
    """A party's state."""

    latest: Expected
    counted: Expected | None  # this party's part of the sum when it sent its latest


class _Tokens(NamedTuple):
    """A party's tokens: words of the list, or reports of words."""

    words: I32  # [n]; of reports, those that they name
    documents: I64  # [D+1] offsets
    reports: tuple[Source, I64] | None  # and where documents begin among them
    parents: tuple[str, ...]  # the charges for reports

    def release(self, party: Party, x: Array, mechanism: Clear) -> Array:
        """Release numbers that are computed from these tokens."""
        return party.release(x, Derived(mechanism.what, parents=self.parents) if self.parents else mechanism)


@step(doing="counting words", one_list=True)
def count_tokens(party: Party, state: Any, ask: WordTask) -> tuple[Any, WordTotals]:
    """Count the documents and the tokens of each word."""
    tokens = _tokens(party, ask)
    _check_enough(party, ask)
    df, counts = word_profiles.counts_of_words(tokens.words, tokens.documents, len(ask.words), _least_of_words(party))
    seen = tokens.release(party, df, WORD_COUNTS), tokens.release(party, counts, WORD_COUNTS)
    return state, WordTotals(*seen, party.sum_tag("words", *seen))


@step(doing="finding topics", one_list=True)
def profile_words(party: Party, state: Any, ask: ProfileTask) -> tuple[Any, Profiles]:
    """Add up the documents of each of the words in most documents."""
    chosen = _chosen(party, ask.seen)
    tokens, least = _tokens(party, ask), _least_of_words(party)
    found, _ = word_profiles.profiles(tokens.words, tokens.documents, len(ask.words), chosen, least)
    sums = tokens.release(party, word_profiles.on_grid(found, _PROFILE_BITS), PROFILES)
    return state, Profiles(sums, party.sum_tag("profiles", sums))


@step(doing="finding topics", replies="changes")
def expect(party: Party, state: Any, ask: SoftTask) -> tuple[Expecting, SoftCounts]:
    """Do the E-step, and send the change of the party's expected counts."""
    tokens = _tokens(party, ask)
    known = state if isinstance(state, Expecting) else None
    held = counted_or_none(party, known)
    expected, used = _expected(party, tokens, ask)
    cells = np.flatnonzero(expected)
    topic, word = np.divmod(cells, len(used))
    places = topic * len(ask.words) + used[word]
    latest = Expected(party.place, places.astype(np.int32), expected.reshape(-1)[cells])
    change = np.zeros((len(expected), len(ask.words)), dtype=np.int32)
    change.reshape(-1)[latest.cells] = latest.counts
    if held is not None:
        change.reshape(-1)[held.cells] -= held.counts
    change = tokens.release(party, change, SOFT_COUNTS)
    return Expecting(latest, held), SoftCounts(change, party.sum_tag(EXPECTED, change))


STEPS = (count_tokens, profile_words, expect)


def _tokens(party: Party, ask: WordTask | ProfileTask | SoftTask) -> _Tokens:
    """Return a party's tokens as the mode lets the start see them."""
    corpus = _documents(party, ask)
    if ask.settings.mode != "sound":
        check_has_words(party, corpus)
        return _Tokens(corpus.words, corpus.documents, None, ())
    reported = report_tokens(party, corpus, ask.settings)  # charged also without a word: the cost must not show that
    check_has_words(party, corpus)
    listed = reported.listed(corpus.n_tokens)
    reports = listed.source, listed.offsets(corpus.documents)
    return _Tokens(*named_words(*reports), reports, reported.parents)


def _expected(party: Party, tokens: _Tokens, ask: SoftTask) -> tuple[I32, I64]:
    """Return the expected counts [K, n] of the words that a party has, in the question's units, and these words [n]."""
    V, reports = len(ask.words), tokens.reports
    used = np.flatnonzero(np.bincount(tokens.words, minlength=V)) if reports is None else np.arange(V)
    counts, prior = _counts_in(party, ask), Prior.of(ask.settings, ask.words)
    if prior is not None:
        counts = counts + prior.counts(len(counts)) * ask.per_token
    topics = smooth(counts, _SMOOTHING * ask.per_token, used)
    alpha = check_alpha(symmetric(ask.settings.alpha, len(topics)), len(topics))
    least, threads = party.min_documents_per_topic, party.setting("threads", 1)
    if reports is None:
        place = np.zeros(V, dtype=np.int32)
        place[used] = np.arange(len(used))
        found = soft_counts(place[tokens.words], tokens.documents, topics, alpha, least, threads)
    else:
        found = expected_counts(*reports, topics, alpha, least)
    return np.ascontiguousarray(np.rint(found.T * ask.per_token).astype(np.int32)), used


def _chosen(party: Party, seen: WordTotals) -> I64:
    """Return the words that have a profile; refuse totals that are not true."""
    party.check_sum("words", seen.tag, seen.documents, seen.tokens)
    return word_profiles.most_frequent(seen.documents)


def _counts_in(party: Party, ask: SoftTask) -> Array:
    """Return the counts [K, V] of a question, or compute them from profiles; refuse totals that are not true."""
    K, V = ask.settings.topics, len(ask.words)
    if ask.counts is not None:
        party.check_sum(EXPECTED, ask.counts.tag, ask.counts.counts)
        check_array("counts", ask.counts.counts, (K, V))
        check_counts(ask.counts.counts)
        return ask.counts.counts
    if ask.start is None:
        raise FormatError("a round of EM needs the counts of the round before, or profiles")
    seen, profiles = ask.start.seen, ask.start.profiles
    chosen = _chosen(party, seen)
    party.check_sum("profiles", profiles.tag, profiles.sums)
    check_array("sums", profiles.sums, (len(chosen), word_profiles.DIMENSIONS))
    first, prior = _first_topics(ask.start, K, ask.settings.seed or 0), Prior.of(ask.settings, ask.words)
    return np.rint((first if prior is None else prior.arrange(first, K)) * ask.per_token)


@lru_cache(maxsize=1)
def _first_topics(start: FoundProfiles, K: int, seed: int) -> F64:
    """Compute first topics, once for all parties of a process that share the question, which cannot change."""
    seen = start.seen
    chosen = word_profiles.most_frequent(seen.documents)
    profiles = np.ldexp(start.profiles.sums.astype(np.float64), -_PROFILE_BITS)
    tokens = seen.tokens.astype(np.int64)
    return word_profiles.topics_of_profiles(profiles, seen.documents[chosen], chosen, tokens, K, np.uint64(seed))


class Found(NamedTuple):
    """The total of the last round of EM."""

    counts: I64  # [K, V]
    tag: I64
    per_token: int


def find_topics(fed: Federation, config: ConsensusSettings, words: tuple[str, ...]) -> Found:
    """Return first topics as expected numbers of tokens."""
    _check_topics(config.topics, len(words))
    settings = config.part(FirstTopics)
    seen = _narrow(fed.sum(count_tokens, WordTask(words, settings)))
    chosen = word_profiles.most_frequent(seen.documents)
    if not len(chosen):
        raise InputError("no word is in enough documents of a party to begin with: give more documents")
    _check_topics(config.topics, len(chosen))
    found = FoundProfiles(seen, _narrow(fed.sum(profile_words, ProfileTask(words, settings, seen))))
    per_token = _units(seen.tokens)
    total: SoftCounts | None = None
    for round_ in range(config.start_rounds):
        ask = SoftTask(words, round_, settings, per_token, found if total is None else None, total)
        total = _narrow(_added(total, fed.sum(expect, ask)))
    assert total is not None
    return Found(np.asarray(total.counts, np.int64), np.asarray(total.tag), per_token)


def _added(total: SoftCounts | None, change: SoftCounts) -> SoftCounts:
    return change if total is None else SoftCounts(total.counts + change.counts, total.tag + change.tag)


def _narrow(total: _Total) -> _Total:
    """Return a total whose whole numbers take 16 or 32 bits if they fit: parties hash and unpack fewer bytes."""
    parts = {field.name: getattr(total, field.name) for field in dataclasses.fields(total)}
    kinds = {name: np.min_scalar_type(-1 - int(np.abs(x).max(initial=0))) for name, x in parts.items()}
    return dataclasses.replace(total, **{name: x.astype(kinds[name]) for name, x in parts.items()})


def _check_topics(topics: int, words: int) -> None:
    """Raise `InputError` if fewer words than topics can be grouped: topics would repeat others."""
    if words < topics:
        raise InputError(
            f"topics = {topics}, but the start can find {words} at most, for only {words} agreed words are in enough "
            f"documents of a party: set topics = {words} or less, or give more documents"
        )


def plan_start(config: ConsensusSettings) -> list[Planned]:
    """List what finding topics will disclose."""
    charge, _ = plan_reports(config.part(Training), len(config.vocabulary.words))
    asked = ((count_tokens, WORD_COUNTS, 1), (profile_words, PROFILES, 1), (expect, SOFT_COUNTS, config.start_rounds))
    if charge is None:
        return [Planned(step, "sum", clear, times) for step, clear, times in asked]
    derived = (Planned(step, "sum", Derived(clear.what, parents=("reports",)), times) for step, clear, times in asked)
    return [Planned(count_tokens, "reports", charge, 1), *derived]


def _units(tokens: Array) -> int:
    """Return the units of counts in a token: the most for which a question may hold all of a word's tokens.

    >>> _units(np.array([7, 900])), _units(np.array([fields.MOST_COUNT // 3]))
    (256, 2)
    """
    units = FRACTION
    while units > 1 and int(tokens.max(initial=0)) * units > fields.MOST_COUNT:
        units //= 2
    return units


def _documents(party: Party, ask: WordTask | ProfileTask | SoftTask) -> Corpus:
    return party.documents(Vocabulary.of(ask.words), unknown=ask.settings.mode == "sound")


def _check_enough(party: Party, ask: WordTask) -> None:
    """Raise if a party has so few documents that nothing of it may leave; tell its staff if most words are dropped."""
    corpus = _documents(party, ask)
    if corpus.n_documents < (least := party.min_documents_per_topic):
        raise InputError(
            f"party '{party.id}' has {corpus.n_documents} documents to train on, and with secure sums nothing of fewer "
            f"than {least} leaves: give it more, or leave it out"
        )
    unknown = 1 - np.count_nonzero(corpus.words < len(ask.words)) / max(party.documents().n_tokens, 1)
    if unknown > _UNKNOWN:
        plain = least == 1 and ask.settings.mode != "sound"  # else words may not be shown
        remedy = "A longer list, or vocabulary mode 'union', keeps more" if plain else "A longer list keeps more"
        party.notice(
            f"{unknown:.0%} of its words are not on the agreed list and are left out: are its language and its subject "
            f"those of the others? {remedy}"
        )


def _least_of_words(party: Party) -> int:
    return max(party.min_documents_per_word, party.min_documents_per_topic)
