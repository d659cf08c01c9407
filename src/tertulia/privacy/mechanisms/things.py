"""The things that leave a party, with the words by which the officer's page names them."""

from __future__ import annotations

from typing import Literal

Words = Literal["own", "agreed"]
_PLAIN: dict[str, str] = {}
_WORDS: dict[str, Words] = {}


def thing(what: str, plain: str, *, words: Words | None = None) -> str:
    """Declare a thing that leaves: its name in ledgers, and plain words for people; return the name.

    `words` declares that the thing lists words: a party's `own`, or only those that were `agreed` on or drawn under
    noise.

    >>> thing("topic-word counts", "words by topic (counts)")
    'topic-word counts'
    """
    _PLAIN[what] = plain
    if words is not None:
        _WORDS[what] = words
    return what


def plain_words(what: str) -> str:
    """Return the plain words of a thing, or its name where nothing else was declared."""
    return _PLAIN.get(what, what)


def words_in_or_none(what: str) -> Words | None:
    """Return which words a thing lists; None if it lists none."""
    return _WORDS.get(what)
