"""Agreeing on words with secure sums: the server learns no word that fewer than `min_parties` members have.

Over a public list (`listed`), parties sum indicators of its words, in an order that follows from the members' key and
that the server does not know. The server returns the positions with enough members.

Without a list (`common`), each word of a party goes into one of 2^22 buckets, by an HMAC under the members' key, and
the parties sum indicators of buckets. Words of fewer than RARE documents take no part.

In both cases the members do not rely on what the server says of positions or buckets. For their own words there they
exchange tags, HMACs under a second key, as notes that the server cannot read. A word is agreed on if enough notes have
its tag; the other words of a bucket are not.

With an `epsilon`, each party first names further words under noise (`word_union`), also words of one party alone.

Members name the agreed words only after all have signed that they have the same notes. One malicious member lowers
`min_parties` by one for words that it can guess. The server together with one member can test guessed words against all
buckets or positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from tertulia._arrays import U8, Array, Bool
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.vocabulary import UNKNOWN, pack_words, propose, prune, unpack_words
from tertulia.errors import FormatError, InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.methods.common.settings import Settings, VocabularySettings
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism, Public
from tertulia.privacy.mechanisms.things import thing
from tertulia.privacy.mechanisms.word_union import WordUnion, word_weights
from tertulia.privacy.policy import RARE

BITS = 22  # of the number of buckets
TAG_BYTES = 16
MOST_WORDS = 1 << 18  # of a party, the most frequent: with more, most buckets would hold words by chance
Bitmap = Annotated[Array, fields.Numbers(("*",), "u")]
TagRows = Annotated[Array, fields.Numbers(("*", "*"), "u")]
BucketBits = Annotated[int, fields.Between(8, 24)]

INDICATORS = Clear(thing("indicators of words", "which words it has, in an order that the server does not know"))
TAGS = Clear(thing("tags of words", "codes of words, for members only"))
NAMES = Clear(thing("names of agreed words", "words that several parties have", words="agreed"))
CHOSEN = thing("words chosen under noise", "words that many of its documents have", words="agreed")
KEPT = "chosen-words"
DOCUMENT_COUNTS = Clear(thing("document counts of agreed words", "in how many documents each agreed word is"))
DOCUMENTS = Public("number of documents")


@message
class BucketTask:
    """The number of buckets for words."""

    bits: BucketBits


@message
class ListedTask:
    """The public list whose words are to be counted."""

    words: fields.Words


@message
class HolderSettings(Settings):
    """The number of members that must have a word, which must be the plan's."""

    min_parties: Annotated[
        int | None,
        Field(description="None: the least"),
        fields.Between(1, 10_000),
        fields.OneOf(("vocabulary.min_parties",)),
    ]

    def least(self, own: int) -> int:
        """Return the number, given the least that secure sums allow."""
        return max(own, self.min_parties or 0)


@message
class Found:
    """The buckets or positions with enough members."""

    passed: Bitmap
    holders: HolderSettings
    bits: BucketBits = 8  # of buckets
    with_chosen: bool = False  # whether parties have named further words under noise
    words: fields.Words = ()  # the public list, in mode `listed`

    @property
    def is_empty(self) -> bool:
        """Whether nothing has passed: all agreed words are chosen under noise."""
        return self.with_chosen and not self.passed.any()


@message
class Indicators:
    """For each bucket or position, 1 if this party has a word there."""

    held: Annotated[Array, fields.Numbers(("*",), "iu", 0, 1, ring=16)]


@message
class Tags:
    """Tags of a party's words in the passed buckets, or at the passed positions."""

    tags: TagRows
    chosen: TagRows  # of words that it has named under noise


@message
class UnionSettings(Settings):
    """The settings of the choice of words under noise, which must be those of the plan."""

    union_epsilon: Annotated[float, Field(gt=0, description="of a document"), fields.OneOf(("vocabulary.epsilon",))]
    union_delta: Annotated[float, Field(gt=0, lt=1, description="beside it"), fields.OneOf(("vocabulary.delta",))]
    distinct_words: Annotated[
        int,
        Field(ge=1, description="words of a document that count"),
        fields.Between(1, 10_000),
        fields.OneOf(("vocabulary.words_per_document",)),
    ]

    def mechanism(self) -> WordUnion:
        """Return the mechanism that chooses the words."""
        return WordUnion(
            CHOSEN, epsilon=self.union_epsilon, delta=self.union_delta, words_per_document=self.distinct_words
        )


@message
class UnionTask:
    """Ask a party to choose words under noise."""

    union: UnionSettings


@message
class Names:
    """The agreed words that a party has."""

    text: fields.Bytes
    offsets: fields.Offsets


@message
class Candidates:
    """The agreed words, to be counted."""

    text: fields.Bytes
    offsets: fields.Offsets


@message
class WordCounts:
    """The number of a party's documents that hold each agreed word."""

    counts: Annotated[Array, fields.Numbers(("*",), "iu", 0)]
    documents: fields.DocumentCount


# --- a party's steps --------------------------------------------------------------------------------------------------


@step(doing="agreeing on words")
def count_buckets(party: Party, state: Any, ask: BucketTask) -> tuple[Any, Indicators]:
    """Mark the buckets of this party's words."""
    held = np.zeros(1 << ask.bits, np.uint8)
    held[_buckets(party, _own_words(party), ask.bits)] = 1
    return state, Indicators(party.release(held, INDICATORS))


@step(doing="agreeing on words")
def count_listed(party: Party, state: Any, ask: ListedTask) -> tuple[Any, Indicators]:
    """Mark the words of the list that this party has, in the members' order."""
    own = _own_listed(party)
    held = np.array([word in own for word in _in_secret_order(party, ask.words)], np.uint8)
    return state, Indicators(party.release(held, INDICATORS))


@step(doing="agreeing on words", names_words=True)
def choose_words(party: Party, state: Any, ask: UnionTask) -> tuple[Any, Names]:
    """Name words of this party that pass a threshold under noise."""
    corpus, most = party.documents(), ask.union.distinct_words
    weights = word_weights(corpus.words, corpus.documents, len(corpus.vocabulary), most)
    passed = party.release(weights, ask.union.mechanism())
    chosen = sorted(corpus.vocabulary.words[v] for v in np.flatnonzero(passed))
    text, offsets = pack_words([word for word in chosen if word != UNKNOWN])
    derived = Derived(CHOSEN, parents=(passed,))
    party.keep(KEPT, text=text, offsets=offsets, source=np.frombuffer(party.source_of(passed).encode(), np.uint8))
    return state, Names(party.release(text, derived), party.release(offsets, derived))


@step(doing="agreeing on words")
def tag_words(party: Party, state: Any, ask: Found) -> tuple[Any, Tags]:
    """Tell the other members which words this party has in the passed buckets, or at the passed positions."""
    tags = np.array(party.word_tags(_passed_own(party, ask)))
    chosen, derived = _chosen_tags(party, ask)
    return state, Tags(party.release(tags, derived if ask.is_empty else TAGS), party.release(chosen, derived))


@step(doing="agreeing on words", names_words=True)
def name_words(party: Party, state: Any, ask: Found) -> tuple[Any, Names]:
    """Name the agreed words, of `common` those that this party has, once all have signed that their notes are equal."""
    notes = party.notes(tag_words)
    chosen = {row.tobytes() for note in notes.values() for row in note.chosen} if ask.with_chosen else set()
    counted = Counter(tag for note in notes.values() for tag in {row.tobytes() for row in note.tags})
    least = ask.holders.least(party.min_holders)
    agreed = {tag for tag, holders in counted.items() if holders >= least}
    words = _passed_listed(party, ask) if ask.words else _passed_own(party, ask)
    named = [word for word, tag in zip(words, party.word_tags(words), strict=True) if tag.tobytes() in agreed]
    party.agree_to_words(_rows(agreed | chosen))
    text, offsets = pack_words(sorted(named))
    how = _chosen_tags(party, ask)[1] if ask.is_empty else NAMES
    return state, Names(party.release(text, how), party.release(offsets, how))


@step(doing="agreeing on words", one_list=True)
def count_words(party: Party, state: Any, ask: Candidates) -> tuple[Any, WordCounts]:
    """Count the documents that hold each agreed word."""
    words = unpack_words(ask.text, ask.offsets)
    party.check_words(words)
    corpus = party.documents()
    counts = _frequencies(corpus, words)
    documents = np.array(corpus.n_documents)
    return state, WordCounts(party.release(counts, DOCUMENT_COUNTS), party.release(documents, DOCUMENTS))


def _chosen_tags(party: Party, ask: Found) -> tuple[U8, Mechanism]:
    """Return the tags of the words that this party has named under noise, and what they are derived from."""
    if not ask.with_chosen:
        return np.zeros((0, TAG_BYTES), np.uint8), TAGS
    kept = party.kept(KEPT)
    words = unpack_words(kept["text"], kept["offsets"])
    return np.array(party.word_tags(words)), Derived(CHOSEN, parents=(kept["source"].tobytes().decode(),))


def _rows(tags: Iterable[bytes]) -> U8:
    return np.frombuffer(b"".join(sorted(tags)), np.uint8).reshape(-1, TAG_BYTES)


def _own_words(party: Party) -> list[str]:
    """Return the words that enough of this party's documents hold, at most MOST_WORDS of them."""
    words, counts, _ = propose(party.documents(), max(RARE, party.min_documents_per_word))
    if len(words) > MOST_WORDS:
        frequent = np.sort(np.argsort(-np.asarray(counts), kind="stable")[:MOST_WORDS])
        return [words[v] for v in frequent]
    return list(words)


def _buckets(party: Party, words: Sequence[str], bits: int) -> Array:
    tags = np.ascontiguousarray(party.word_tags(words, "buckets")[:, :4])
    return tags.view("<u4").reshape(-1) & ((1 << bits) - 1)


def _own_listed(party: Party) -> set[str]:
    """Return the words that count for a public list: there each is known anyway."""
    return set(propose(party.documents(), party.min_documents_per_word).words)


def _passed_own(party: Party, ask: Found) -> list[str]:
    """Return this party's words in the passed buckets, or at the passed positions of the list."""
    if ask.words:
        own = _own_listed(party)
        return [word for word in _passed_listed(party, ask) if word in own]
    passed = _bitmap(ask.passed, 1 << ask.bits)
    words = _own_words(party)
    return [word for word, bucket in zip(words, _buckets(party, words, ask.bits), strict=True) if passed[bucket]]


def _passed_listed(party: Party, ask: Found) -> list[str]:
    """Return the words of the list at the passed positions, sorted."""
    ordered, passed = _in_secret_order(party, ask.words), _bitmap(ask.passed, len(ask.words))
    return sorted(ordered[place] for place in np.flatnonzero(passed))


def _in_secret_order(party: Party, words: Sequence[str]) -> list[str]:
    """Order words by their tags, which the server cannot make."""
    return [word for _, word in sorted(zip(map(bytes, party.word_tags(words, "order")), words, strict=True))]


def _bitmap(packed: Array, size: int) -> Bool:
    if packed.dtype != np.uint8 or len(packed) != -(-size // 8):
        raise FormatError("the bitmap of words has another length")
    return np.unpackbits(packed, count=size).astype(np.bool_)


def _frequencies(corpus: Corpus, words: Sequence[str]) -> Array:
    places = corpus.vocabulary.lookup(words)
    counts = corpus.document_frequency()
    return np.where(places >= 0, counts[np.maximum(places, 0)], 0) if len(counts) else np.zeros(len(words), np.int64)


# --- the server -------------------------------------------------------------------------------------------------------


def agree_in_secret(fed: Federation, terms: VocabularySettings) -> Vocabulary:
    """Let all members agree on words that enough of them have, and on those that parties name under noise."""
    chosen = choose(fed, terms)
    found = _find(fed, terms)
    fed.relay(tag_words, found)
    replies = fed.each(name_words, found).values()
    if terms.mode == "private":  # further counts would not be
        return Vocabulary(chosen[: terms.max_words])
    words = sorted({*chosen} | {word for one in replies for word in unpack_words(one.text, one.offsets)})
    if not words:
        least = terms.least_holders(len(fed.parties))
        raise InputError(f"the members have agreed on no word: none is held by {least} of them")
    counted = fed.sum(count_words, Candidates(*pack_words(words)))
    limits = terms.limits(int(counted.documents))
    return prune(words, np.asarray(counted.counts), int(counted.documents), limits, terms.max_words, terms.phrases)


def choose(fed: Federation, terms: VocabularySettings) -> tuple[str, ...]:
    """Return the words that parties name under noise, those of most parties first; none without an epsilon."""
    if terms.epsilon is None:
        return ()
    replies = fed.each(choose_words, UnionTask(_union(terms))).values()
    named = Counter(word for one in replies for word in unpack_words(one.text, one.offsets))
    return tuple(sorted(named, key=lambda word: (-named[word], word)))


def _union(terms: VocabularySettings) -> UnionSettings:
    most = terms.words_per_document
    return UnionSettings(union_epsilon=terms.epsilon or 0.0, union_delta=terms.delta, distinct_words=most)


def _find(fed: Federation, terms: VocabularySettings) -> Found:
    """Find the buckets of words, or positions on the list, with enough members."""
    least, with_chosen = terms.least_holders(len(fed.parties)), terms.epsilon is not None
    holders = HolderSettings(min_parties=terms.min_parties)
    if terms.mode == "private":
        return Found(np.zeros(1 << 5, np.uint8), holders, 8, with_chosen)  # no bucket
    if terms.mode == "common":
        held = fed.sum(count_buckets, BucketTask(BITS)).held
    else:
        held = fed.sum(count_listed, ListedTask(terms.words)).held
    passed = np.asarray(held >= least)
    if not passed.any() and not with_chosen:
        raise InputError(
            f"no word is held by {least} of the {len(fed.parties)} members, in {RARE} documents each: are their "
            "languages different, or their documents few? Lower min_parties, or use a public word list"
        )
    if terms.mode == "common":
        return Found(np.packbits(passed), holders, BITS, with_chosen)
    return Found(np.packbits(passed), holders, 8, with_chosen, terms.words)


def plan_in_secret(terms: VocabularySettings) -> list[Planned]:
    """List what agreeing on words will disclose."""
    return [
        *plan_choice(terms),
        Planned(count_buckets if terms.mode == "common" else count_listed, "sum", INDICATORS, 1),
        Planned(tag_words, "relay", TAGS, 1),
        Planned(name_words, "each", NAMES, 1),
        Planned(count_words, "sum", DOCUMENT_COUNTS, 1),
        Planned(count_words, "sum", DOCUMENTS, 1),
    ]


def plan_choice(terms: VocabularySettings) -> list[Planned]:
    """List what naming words under noise will disclose."""
    if terms.epsilon is None:
        return []
    union, derived = _union(terms).mechanism(), Derived(CHOSEN, parents=(CHOSEN,))
    passed_on = [Planned(tag_words, "relay", derived, 0, 1), Planned(name_words, "each", derived, 0, 1)]  # if secure
    return [Planned(choose_words, "each", union, 1), Planned(choose_words, "each", derived, 1), *passed_on]


STEPS = (choose_words, count_buckets, count_listed, tag_words, name_words, count_words)
