"""Neighbours of a party's documents: data sets that differ by one token, one document or one user.

Which of them a run's promises speak of follows from the units and adjacencies of its mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.builder import text_id
from tertulia.corpus.offsets import narrow
from tertulia.corpus.vocabulary import UNKNOWN
from tertulia.federation.party.recorder import Neighbour
from tertulia.federation.party.reports import has_ids, users_of
from tertulia.privacy.audit.inputs import Difference, Level, covers
from tertulia.privacy.mechanisms import Adjacency, Mechanism, Unit

UNLISTED, LONG = "unlistedword", "unlisted" + "word" * 16  # on no list
_LONG_DOCUMENT = 1000  # tokens
_TRIES = 2000
_SUBSTITUTE, _NULL = Level(Unit.TOKEN, Adjacency.SUBSTITUTE), Level(Unit.TOKEN, Adjacency.NULL_REPLACE)
_ADD, _USER = Level(Unit.DOCUMENT, Adjacency.ADD_REMOVE), Level(Unit.USER, Adjacency.ADD_REMOVE)
_REPLACE, _OTHERS = Level(Unit.DOCUMENT, Adjacency.SUBSTITUTE), Level(Unit.USER, Adjacency.SUBSTITUTE)


class Parts(NamedTuple):
    """A party's documents, and which of them [D] it trains on and scores on."""

    corpus: Corpus
    train: I64
    heldout: I64

    @classmethod
    def of(cls, corpus: Corpus, parts: dict[str, Corpus]) -> Parts:
        """Find the places of parts' documents that have tokens."""
        place = {name: i for i, name in enumerate(corpus.table["id"].to_list())}
        full = set(np.flatnonzero(corpus.lengths > 1).tolist())
        found = [
            np.array([place[name] for name in parts[part].table["id"] if place[name] in full], np.int64)
            for part in ("train", "heldout")
        ]
        return cls(corpus, *found)


class Made(NamedTuple):
    """A data set that differs by one unit, and how many documents the unit has."""

    name: str
    corpus: Corpus
    documents: int = 1


Trains = Callable[[str], bool]  # whether a document of this id is trained on
Maker = Callable[[Parts, Sequence[str], np.random.Generator, Trains], Iterator[Made]]


def neighbours_of(
    parts: Parts, mechanisms: Iterable[Mechanism], words: Sequence[str], trains: Trains, seed: int = 0
) -> list[Neighbour]:
    """Make the neighbours of a party's documents of which all these mechanisms say something.

    `words` is the public list, if there is one; `trains` says whether a document of this id is trained on.
    """
    promising, found = list(mechanisms), list[Neighbour]()
    for level, makers in _MAKERS.items():
        if not promising or not all(covers(mechanism, level) for mechanism in promising):
            continue
        rng = np.random.default_rng(seed)
        for maker in makers:
            made = maker(parts, words, rng, trains)
            found += [Neighbour(one.name, one.corpus, Difference(level, one.documents)) for one in made]
    return found


# --- a token ----------------------------------------------------------------------------------------------------------


def _replaced_words(parts: Parts, words: Sequence[str], rng: np.random.Generator, trains: Trains) -> Iterator[Made]:
    """Replace a word by another listed one, in the middle, at the very end, and in a held-out document."""
    corpus = parts.corpus
    listed = [word for word in words or corpus.vocabulary.words if word != UNKNOWN]
    for name, documents, place in (
        ("a word replaced", parts.train, None),
        ("the first word of a document replaced", parts.train, 0),
        ("the last word of the last document replaced", parts.train[-1:], -1),
        ("a held-out word replaced", parts.heldout, 0),
    ):
        if len(documents):
            token = _token_of(corpus, int(rng.choice(documents)), place, rng)
            others = [word for word in listed if word != corpus.vocabulary.words[corpus.words[token]]]
            if others:
                yield Made(name, _with_words(corpus, {token: str(rng.choice(others))}))
    held = set(corpus.words_in_use())
    if len(parts.train) and (strange := [word for word in listed if word not in held]):
        token = _token_of(corpus, int(rng.choice(parts.train)), None, rng)
        yield Made("a word replaced by one that no document has", _with_words(corpus, {token: strange[0]}))


def _moved_documents(parts: Parts, words: Sequence[str], rng: np.random.Generator, trains: Trains) -> Iterator[Made]:
    """Replace a word in a document that is known by a hash of its text, so that the hash says it is held out."""
    corpus = parts.corpus
    if has_ids(corpus) or not len(parts.train) or not len(parts.heldout):
        return
    listed = list(words or corpus.vocabulary.words)
    for _ in range(_TRIES):
        document = int(parts.train[-1])  # the last: nothing after it gets another place
        token = _token_of(corpus, document, None, rng)
        changed = _with_words(corpus, {token: str(rng.choice(listed))})
        name = text_id(" ".join(_texts_of(changed, document)))
        if not trains(name):
            yield Made("a word replaced in a document without id", _with_ids(changed, {document: name}))
            return


def _emptied_words(parts: Parts, words: Sequence[str], rng: np.random.Generator, trains: Trains) -> Iterator[Made]:
    """Replace a listed word by one that is on no list."""
    corpus, on_list = parts.corpus, set(words or parts.corpus.vocabulary.words)
    listed = np.array([word in on_list for word in corpus.vocabulary.words])
    for name, documents, place, new in (
        ("a word replaced by one off the list", parts.train, None, UNLISTED),
        ("the last word of the last document off the list", parts.train[-1:], -1, UNLISTED),
        ("a word replaced by a much longer one off the list", parts.train, 0, LONG),
    ):
        tokens = [_token_of(corpus, int(document), place, rng) for document in documents]
        fitting = [token for token in tokens if listed[corpus.words[token]]]
        if fitting:
            yield Made(name, _with_words(corpus, {int(rng.choice(fitting)): new}))


# --- documents --------------------------------------------------------------------------------------------------------


def _added_documents(parts: Parts, words: Sequence[str], rng: np.random.Generator, trains: Trains) -> Iterator[Made]:
    """Add a document: like others, long, of all words, empty, with a new word, held out; or remove the last."""
    corpus, listed = parts.corpus, list(words or parts.corpus.vocabulary.words)
    model = int(rng.choice(parts.train)) if len(parts.train) else 0
    made = {
        "a document added": _texts_of(corpus, model),
        "a long document of one word added": [str(rng.choice(listed))] * _LONG_DOCUMENT,
        "a document of all words added": [str(word) for word in rng.permutation(listed)],
        "an empty document added": [],
        "a document with an unlisted word added": [*_texts_of(corpus, model), UNLISTED],
    }
    for name, texts in made.items():
        ids, user = [_fresh_id(corpus, trains, True)], users_of(corpus)[model]
        yield Made(name, _with_documents(corpus, [texts], ids, user))
    if len(parts.heldout):
        scored = [_fresh_id(corpus, trains, False)]
        yield Made("a held-out document added", _with_documents(corpus, [_texts_of(corpus, model)], scored))
    if len(parts.train) > 1:
        yield Made("the last document removed", _without(corpus, parts.train[-1:]))


def _added_users(parts: Parts, words: Sequence[str], rng: np.random.Generator, trains: Trains) -> Iterator[Made]:
    """Add a user with one document, or with several; or remove one with all documents."""
    corpus = parts.corpus
    if "user" not in corpus.table.columns or not len(parts.train):
        return
    for name, n in (("a user with one document added", 1), ("a user with five documents added", 5)):
        texts = [_texts_of(corpus, int(document)) for document in rng.choice(parts.train, n)]
        ids = [_fresh_id(corpus, trains, True, k) for k in range(n)]
        yield Made(name, _with_documents(corpus, texts, ids, user="audited-user"), n)
    if (last := users_of(corpus)[int(parts.train[-1])]) is not None:
        own = _documents_of(corpus, last)
        yield Made("a user removed", _without(corpus, own), len(own))


def _changed_users(parts: Parts, words: Sequence[str], rng: np.random.Generator, trains: Trains) -> Iterator[Made]:
    """Replace all words of one document, which is all that a user has; lengths stay."""
    corpus, listed = parts.corpus, list(words or parts.corpus.vocabulary.words)
    if not len(parts.train):
        return
    for name, document in (("all words of a user replaced", rng.choice(parts.train)),
                           ("all words of the last user replaced", parts.train[-1])):  # fmt: skip
        user = users_of(corpus)[int(document)]
        own = [int(document)] if user is None else _documents_of(corpus, user).tolist()
        tokens = [token for d in own for token in range(corpus.documents[d], corpus.documents[d + 1])]
        yield Made(name, _with_words(corpus, {token: str(rng.choice(listed)) for token in tokens}), len(own))


def _replaced_documents(parts: Parts, words: Sequence[str], rng: np.random.Generator, trains: Trains) -> Iterator[Made]:
    """Replace the last document by another, or by a long one."""
    corpus, listed = parts.corpus, list(words or parts.corpus.vocabulary.words)
    if len(parts.train) < 2:
        return
    rest, user = _without(corpus, parts.train[-1:]), users_of(corpus)[int(parts.train[-1])]
    other, long = _texts_of(corpus, int(parts.train[0])), [str(rng.choice(listed))] * _LONG_DOCUMENT
    for name, texts in (("a document replaced", other), ("a document replaced by a long one", long)):
        yield Made(name, _with_documents(rest, [texts], [_fresh_id(corpus, trains, True)], user))


_MAKERS: dict[Level, tuple[Maker, ...]] = {
    _SUBSTITUTE: (_replaced_words, _emptied_words, _moved_documents),
    _NULL: (_emptied_words,),
    _ADD: (_added_documents,),
    _REPLACE: (_replaced_documents,),
    _USER: (_added_users,),
    _OTHERS: (_changed_users,),
}


# --- corpora ----------------------------------------------------------------------------------------------------------


def _token_of(corpus: Corpus, document: int, place: int | None, rng: np.random.Generator) -> int:
    """Return a token of a document: at a place, from the end if it is negative, or any."""
    first, end = int(corpus.documents[document]), int(corpus.documents[document + 1])
    if place is None:
        return int(rng.integers(first, end))
    return end + place if place < 0 else first + place


def _texts_of(corpus: Corpus, document: int) -> list[str]:
    first, end = corpus.documents[document], corpus.documents[document + 1]
    return [corpus.vocabulary.words[w] for w in corpus.words[first:end]]


def _with_words(corpus: Corpus, changes: dict[int, str]) -> Corpus:
    """Replace tokens by words; new words get the last numbers, so that all others keep theirs."""
    new = [word for word in dict.fromkeys(changes.values()) if word not in corpus.vocabulary.index]
    vocabulary = Vocabulary((*corpus.vocabulary.words, *new)) if new else corpus.vocabulary
    words = np.array(corpus.words)
    words[list(changes)] = [vocabulary.index[word] for word in changes.values()]
    changed = replace(corpus, words=words, vocabulary=vocabulary)
    if "text" not in corpus.table.columns:
        return changed
    documents = np.unique(np.searchsorted(corpus.documents, list(changes), side="right") - 1).tolist()
    texts = corpus.table["text"].to_list()
    for document in documents:
        texts[document] = " ".join(_texts_of(changed, document))
    return _with_column(changed, "text", texts)


def _with_column(corpus: Corpus, name: str, values: list[str]) -> Corpus:
    import polars as pl

    return replace(corpus, table=corpus.table.with_columns(pl.Series(name, values)))


def _with_ids(corpus: Corpus, changes: dict[int, str]) -> Corpus:
    ids = corpus.table["id"].to_list()
    for document, name in changes.items():
        ids[document] = name
    return _with_column(corpus, "id", ids)


def _with_documents(corpus: Corpus, texts: Sequence[list[str]], ids: list[str], user: str | None = None) -> Corpus:
    """Add documents of a user at the end; without `user`, each is of a user of its own."""
    lengths = np.array([len(text) for text in texts], np.int64)
    like = corpus.select(np.zeros(len(texts), np.int64))
    index = {word: n for n, word in enumerate(dict.fromkeys(word for text in texts for word in text))}
    documents = np.concatenate(([0], np.cumsum(lengths)))
    ends = narrow(np.unique(documents))
    added = replace(
        like, words=np.array([index[word] for text in texts for word in text], np.int32), documents=documents,
        sentences=ends, paragraphs=ends, vocabulary=Vocabulary(tuple(index)),
    )  # fmt: skip
    added = _with_column(added, "id", ids)
    if "user" in corpus.table.columns:
        added = _with_column(added, "user", [user or f"user of {name}" for name in ids])
    if "text" in corpus.table.columns:
        added = _with_column(added, "text", [" ".join(text) for text in texts])
    return Corpus.concatenate([corpus, added])


def _without(corpus: Corpus, documents: Array) -> Corpus:
    return corpus.select(np.setdiff1d(np.arange(corpus.n_documents), documents))


def _documents_of(corpus: Corpus, user: str) -> I64:
    return np.array([i for i, name in enumerate(users_of(corpus)) if name == user], np.int64)


def _fresh_id(corpus: Corpus, trains: Trains, trained: bool, number: int = 0) -> str:
    """Return an id that no document has, and that is trained on or held out."""
    known = set(corpus.table["id"].to_list())
    plain = (f"audited-{number}-{k}" for k in range(_TRIES))
    names = plain if has_ids(corpus) else map(text_id, plain)
    return next(name for name in names if name not in known and trains(name) == trained)
