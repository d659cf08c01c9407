"""The things that leave a party, with the words by which the officer's page names them."""

from __future__ import annotations

_PLAIN: dict[str, str] = {}


def thing(what: str, plain: str) -> str:
    """Declare a thing that leaves: its name in ledgers, and plain words for people; return the name.

    >>> thing("topic-word counts", "words by topic (counts)")
    'topic-word counts'
    """
    _PLAIN[what] = plain
    return what


def plain_words(what: str) -> str:
    """Return the plain words of a thing, or its name where nothing else was declared."""
    return _PLAIN.get(what, what)
