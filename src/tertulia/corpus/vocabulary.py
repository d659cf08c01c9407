"""The ordered word list that all parties share, and the functions by which they agree on it.

Parties `propose` words with document counts; the server `merge`s the proposals into one `Vocabulary`. With a `public`
list, nothing about the data is sent. The functions are pure; `methods` wrap them into party steps.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from tertulia._arrays import I32, I64, U8, Bool
from tertulia.errors import FormatError, InputError

if TYPE_CHECKING:
    from tertulia.corpus.corpus import Corpus

MergeMode = Literal["union", "min_parties"]
ENGLISH, _SHIPPED = "english", "english.txt.gz"
JOINT = "_"  # joins the words of an n-gram; no single word contains it
PHRASE = 0.3  # least normalised pointwise mutual information of a phrase
UNKNOWN = "<unk>"  # stands for all words that are not on a list; no token of a text equals it


@dataclass(frozen=True)
class Vocabulary:
    """An ordered list of unique words; a word's place is its number in every array.

    >>> vocabulary = Vocabulary(("apple", "pear"))
    >>> vocabulary.lookup(["pear", "plum"])
    array([ 1, -1], dtype=int32)
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.index) != len(self.words):
            twice = next(word for place, word in enumerate(self.words) if self.index[word] != place)
            raise InputError(f"the vocabulary holds '{twice}' more than once: words must be unique")

    @classmethod
    def of(cls, words: tuple[str, ...]) -> Vocabulary:
        """Return the cached vocabulary of a list that comes again in every round, with its index and fingerprint."""
        return _of_same(_Same(words))

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the words and their order."""
        return _fingerprint(self.words)

    @cached_property
    def with_unknown(self) -> Vocabulary:
        """The same words, and one at the end that stands for all others.

        >>> Vocabulary(("apple", "pear")).with_unknown.words
        ('apple', 'pear', '<unk>')
        """
        if UNKNOWN in self.index:
            raise InputError(f"the word list holds '{UNKNOWN}', which stands for all words off the list: leave it out")
        return Vocabulary((*self.words, UNKNOWN))

    def lookup(self, words: Sequence[str]) -> I32:
        """Find the number of each given word, -1 where it is unknown."""
        return np.fromiter(map(self.index.get, words, repeat(-1)), dtype=np.int32, count=len(words))

    def places_in(self, other: Vocabulary) -> I32:
        """Find the number of each of these words in another vocabulary, -1 if unknown; read the shorter list."""
        if len(self) <= len(other):
            return other.lookup(self.words)
        found = np.full(len(self), -1, np.int32)
        places = self.lookup(other.words)
        known = np.flatnonzero(places >= 0)
        found[places[known]] = known
        return found


class _Same:
    """A list that equals itself alone: to hash all words of one takes longer than a party needs for a small answer."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    def __hash__(self) -> int:
        return id(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.words is self.words


@lru_cache(maxsize=8)
def _of_same(key: _Same) -> Vocabulary:
    return _of_equal(key.words)


@lru_cache(maxsize=4)
def _of_equal(words: tuple[str, ...]) -> Vocabulary:
    return Vocabulary(words)


@lru_cache(maxsize=8)  # all questions of a run have the same words
def _fingerprint(words: tuple[str, ...]) -> str:
    blob, offsets = pack_words(words)
    return hashlib.blake2b(offsets.tobytes() + blob.tobytes(), digest_size=16).hexdigest()


class Proposal(NamedTuple):
    """The words of one party, with their document counts."""

    words: Sequence[str]
    counts: Sequence[int] | I64  # documents that contain the word
    n_documents: int


Proposals = Mapping[str, Proposal | tuple[Sequence[str], Sequence[int] | I64, int]]  # by party


def propose(corpus: Corpus, min_documents: int = 1, max_share: float = 1.0) -> Proposal:
    """List a party's own words with document counts, pruned by document frequency.

    Words in fewer than `min_documents` documents, or in more than `max_share` of them, are left out, and so is
    `<unk>`. The words are sorted, because their order of appearance would reveal how the first document begins.
    """
    counts = corpus.document_frequency()  # [V]
    keep = _frequent(counts, corpus.n_documents, min_documents, max_share)
    if UNKNOWN in corpus.vocabulary.index:
        keep[corpus.vocabulary.index[UNKNOWN]] = False
    order = sorted(np.flatnonzero(keep).tolist(), key=corpus.vocabulary.words.__getitem__)
    return Proposal([corpus.vocabulary.words[v] for v in order], counts[order], corpus.n_documents)


def choose_words(
    corpus: Corpus, min_documents: int, max_share: float, max_words: int | None, phrases: bool = False
) -> Vocabulary:
    """Choose the words to model, in the corpus's own order: if nothing is pruned, its arrays stay as they are."""
    words, counts, n_documents = propose(corpus)
    counts = np.asarray(counts)
    kept = _frequent(counts, n_documents, min_documents, max_share)
    places = np.flatnonzero(kept & without_chance(words, counts, n_documents) if phrases else kept)
    frequent = places[np.argsort(-counts[places], kind="stable")[:max_words]]
    chosen = {words[v] for v in frequent}
    return Vocabulary(tuple(word for word in corpus.vocabulary.words if word in chosen))


def merge(
    proposals: Proposals,
    mode: MergeMode = "union",
    min_parties: int = 1,
    min_documents: int = 1,
    max_share: float = 1.0,
    max_words: int | None = None,
    phrases: bool = False,
) -> Vocabulary:
    """Merge the parties' proposals into one vocabulary.

    The order is by total document count, most frequent first, then by the word itself (code points). It depends
    neither on the names nor on the order of the parties. `union` keeps the words of any party; `min_parties` keeps
    words that at least that number of parties propose. The limits apply to the totals; `max_words` keeps the first.
    `phrases` leaves out n-grams that are none, by the totals, too.

    >>> merge({"north": (["bank", "river"], [3, 1], 4), "south": (["bank"], [2], 2)}).words
    ('bank', 'river')
    """
    if mode not in ("union", "min_parties"):
        raise InputError(f"vocabulary mode '{mode}' is unknown: use 'union', 'min_parties' or a public word list")
    words = tuple(dict.fromkeys(chain.from_iterable(proposal[0] for proposal in proposals.values())))
    number = {word: v for v, word in enumerate(words)}
    counts = np.zeros(len(words), np.int64)
    parties = np.zeros(len(words), np.int64)
    for proposed, documents, _ in proposals.values():
        own = np.fromiter(map(number.__getitem__, proposed), np.int64, len(proposed))
        np.add.at(counts, own, np.asarray(documents, np.int64))
        held = np.zeros(len(words), np.bool_)
        held[own] = True
        parties += held
    n_documents = sum(int(proposal[2]) for proposal in proposals.values())

    shared = parties >= (min_parties if mode == "min_parties" else 1)
    frequent = _frequent(counts, n_documents, min_documents, max_share)
    kept = np.flatnonzero(shared & frequent & (without_chance(words, counts, n_documents) if phrases else True))
    if not len(kept):
        raise InputError(_why_empty(shared, frequent, len(proposals), min_parties, min_documents, max_share))
    return _ordered([words[v] for v in kept], counts[kept], max_words)


def prune(
    words: Sequence[str], counts: I64, n_documents: int, limits: tuple[int, float], max_words: int | None, phrases: bool
) -> Vocabulary:
    """Make a vocabulary of words with these document counts, by the limits and in the order of `merge`."""
    min_documents, max_share = limits
    frequent = _frequent(counts, n_documents, min_documents, max_share)
    kept = np.flatnonzero(frequent & (without_chance(words, counts, n_documents) if phrases else True))
    if not len(kept):
        raise InputError(
            f"the agreed vocabulary is empty: all {len(words)} words have too few or too many documents. Lower "
            f"min_documents (now {min_documents}), or raise max_share (now {max_share})"
        )
    return _ordered([words[int(v)] for v in kept], counts[kept], max_words)


def _ordered(words: Sequence[str], counts: I64, max_words: int | None) -> Vocabulary:
    order = sorted(zip((-counts).tolist(), words, strict=True))
    return Vocabulary(tuple(word for _, word in order[:max_words]))


def without_chance(words: Sequence[str], counts: I64, n_documents: int) -> Bool:
    """Mark single words, and n-grams whose words stand together more often than by chance: phrases.

    The measure is normalised pointwise mutual information over documents, in the split of the n-gram where it is least
    (Bouma 2009). It needs only how many documents have each word and n-gram, in all parties together.

    >>> without_chance(("heart", "attack", "heart_attack", "good", "heart_good"), np.array([9, 8, 7, 50, 4]), 100)
    array([ True,  True,  True,  True, False])
    """
    index = {word: v for v, word in enumerate(words)}
    share = np.asarray(counts, np.float64) / max(n_documents, 1)
    kept = np.ones(len(words), np.bool_)
    for v, word in enumerate(words):
        parts = word.split(JOINT)
        if len(parts) > 1:
            splits = [(JOINT.join(parts[:cut]), JOINT.join(parts[cut:])) for cut in range(1, len(parts))]
            known = all(part in index for split in splits for part in split)
            kept[v] = known and min(_npmi(share[v], *(share[index[p]] for p in split)) for split in splits) >= PHRASE
    return kept


def _npmi(both: float, one: float, other: float) -> float:
    return 1.0 if both >= 1.0 else float(np.log(both / (one * other)) / -np.log(both))


def _frequent(counts: I64, n_documents: int, min_documents: int, max_share: float) -> Bool:
    # A word of a single document is never too common; otherwise a party of one document would have no words.
    return (counts >= min_documents) & (counts <= max(1.0, max_share * n_documents))


def _why_empty(
    shared: Bool, frequent: Bool, n_parties: int, min_parties: int, min_documents: int, max_share: float
) -> str:
    if not len(shared):
        return f"no word was proposed by any of the {n_parties} parties: are their documents empty, or all stop words?"
    return (
        f"the merged vocabulary is empty: of {len(shared)} proposed words {int((~shared).sum())} have too few parties "
        f"and {int((~frequent).sum())} too few or too many documents. Lower min_parties (now {min_parties}) or "
        f"min_documents (now {min_documents}), or raise max_share (now {max_share})"
    )


def disjoint_parties(proposals: Proposals) -> list[str]:
    """List the parties that share no word with any other: another language, or another tokenisation.

    >>> disjoint_parties({"a": (["sun"], [1], 1), "b": (["sun"], [1], 1), "c": (["soleil"], [1], 1)})
    ['c']
    """
    if len(proposals) < 2:
        return []
    words = {party: set(proposal[0]) for party, proposal in proposals.items()}
    return [party for party in words if all(words[party].isdisjoint(words[p]) for p in words if p != party)]


def public(words: str | Path | Iterable[str]) -> Vocabulary:
    """Make a vocabulary of public words: a sequence, or a UTF-8 file with one word per line (`#`: a comment).

    Repeated words count once, blank lines are ignored. `english` names a list that comes with the package: 30,000
    words, the most frequent first.
    """
    if words == ENGLISH:
        listed: Iterable[str] = _lines(
            gzip.decompress(files("tertulia.corpus").joinpath(_SHIPPED).read_bytes()).decode()
        )
    else:
        listed = _word_file(Path(words)) if isinstance(words, str | Path) else words
    unique = tuple(dict.fromkeys(word for line in listed if (word := line.strip())))
    if not unique:
        raise InputError(f"the public word list {words if isinstance(words, str | Path) else ''} holds no word")
    return Vocabulary(unique)


def _word_file(path: Path) -> list[str]:
    try:
        return _lines(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read the public word list {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"the public word list {path} is not UTF-8: save it as UTF-8, one word per line") from error


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def word_list(
    corpus: Corpus,
    max_words: int | None = None,
    min_documents: int = 5,
    max_share: float = 0.5,
    phrases: bool = False,
) -> Vocabulary:
    """Make a public word list from a corpus that is public itself, the most frequent words first.

    Never make one from private documents: a word on the list reveals that they contain it.
    """
    return merge({"": propose(corpus)}, "union", 1, min_documents, max_share, max_words, phrases)


def pack_words(words: Sequence[str]) -> tuple[U8, I64]:
    r"""Encode words as numeric arrays, for replies of arrays only: UTF-8 bytes and n + 1 offsets into them.

    >>> blob, offsets = pack_words(["day", "öl"])
    >>> bytes(blob), offsets.tolist()
    (b'day\xc3\xb6l', [0, 3, 6])
    """
    encoded = [word.encode("utf-8") for word in words]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def unpack_words(blob: U8, offsets: I64) -> list[str]:
    """Decode the words of `pack_words`."""
    data, bounds = blob.tobytes(), offsets.tolist()
    if not bounds or bounds[0] != 0 or bounds[-1] != len(data) or (offsets[1:] < offsets[:-1]).any():
        raise FormatError("packed words are damaged: the offsets do not fit the bytes")
    try:
        return [data[start:end].decode("utf-8") for start, end in pairwise(bounds)]
    except UnicodeDecodeError as error:
        raise FormatError("packed words are damaged: the bytes are not UTF-8") from error
