"""Assumptions under which a guarantee holds: sentences, which ledgers store.

The assumption that something is public is written and read here, so that pages can list what was declared public.
"""

from __future__ import annotations

_IS, _ARE = " is public", " are public"
AT_ONE_PARTY = "no user has documents at two parties"


def declare_public(thing: str, *, plural: bool = False) -> str:
    """Return the assumption that something is public.

    >>> declare_public("number of documents"), declare_public("the lengths of documents", plural=True)
    ('number of documents is public', 'the lengths of documents are public')
    """
    return f"{thing}{_ARE if plural else _IS}"


def public_thing_or_none(assumption: str) -> str | None:
    """Return the thing that an assumption declares public; None for any other assumption.

    >>> public_thing_or_none("number of documents is public"), public_thing_or_none("a document has 9 words at most")
    ('number of documents', None)
    """
    for end in (_IS, _ARE):
        if assumption.endswith(end):
            return assumption.removesuffix(end)
    return None
