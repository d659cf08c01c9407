"""Canaries: made-up documents and tokens that are planted in copies of the parties' documents.

Whether a canary document is there, or which of two words a canary token is, decides a fair coin that the auditor tosses
and then guesses. Canary words are on no other document.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from tertulia._arrays import I32, I64, Array, Bool
from tertulia.corpus import Corpus, Vocabulary
from tertulia.federation.types import PartyId
from tertulia.methods.common.audited import audited
from tertulia.runs.settings import RunSettings

NAME = "canary"  # ids of planted documents begin with it
WORDS_PER_CANARY = 2
_REPEATS = 20  # of each word of a canary document: it is longer than the norms to which documents are cut
_LETTERS = "bcdfghjklmnpqrstvwxz"


class Planted(NamedTuple):
    """Canary documents, and the words that no other document has."""

    corpus: Corpus  # all canaries, whether they take part or not
    owner: I64  # [D] the canary of each document: a user has several
    words: tuple[str, ...]


def canary_words(number: int, avoid: frozenset[str]) -> tuple[str, ...]:
    """Make up words of consonants that are not in `avoid`."""
    found, place = list[str](), 0
    while len(found) < number:
        digits, text = place, "qz"
        for _ in range(4):
            digits, digit = divmod(digits, len(_LETTERS))
            text += _LETTERS[digit]
        place += 1
        if text not in avoid:
            found.append(text)
    return tuple(found)


def canary_documents(number: int, background: Corpus, documents_each: int = 1) -> Planted:
    """Make canaries of two private words each; where the unit is a user, one has several equal documents."""
    words = canary_words(WORDS_PER_CANARY * number, frozenset(background.vocabulary.words))
    owner = np.repeat(np.arange(number), documents_each)
    one = np.tile(np.arange(WORDS_PER_CANARY), _REPEATS)
    tokens = (owner[:, None] * WORDS_PER_CANARY + one).astype(np.int32)
    return Planted(corpus_of(tokens, words, background, owner), owner, words)


def corpus_of(tokens: I32, words: tuple[str, ...], like: Corpus, users: Array) -> Corpus:
    """Make a corpus of documents of equal length, [D, L], with users if those of `like` have some."""
    offsets = np.arange(0, tokens.size + 1, tokens.shape[1], dtype=np.int64)
    columns = {"id": [f"{NAME}-{tokens.shape[1]}-{i}" for i in range(len(tokens))]}
    if "user" in like.table.columns:
        columns["user"] = [f"{NAME}-{i}" for i in users]
    return Corpus(tokens.reshape(-1), offsets, offsets, offsets, Vocabulary(words), pl.DataFrame(columns), like.options)


def join(background: Corpus, planted: Planted, there: Bool) -> Corpus:
    """Add the documents of those canaries that are there."""
    return Corpus.concatenate([background, planted.corpus.select(there[planted.owner])])


def copies(corpora: Mapping[PartyId, Corpus], most: int) -> dict[PartyId, Corpus]:
    """Take the first documents of each party, `most` at most."""
    return {party: corpus.select(np.arange(min(most, corpus.n_documents))) for party, corpus in corpora.items()}


def frequent_words(corpora: Mapping[PartyId, Corpus], allowed: tuple[str, ...], most: int) -> tuple[str, ...]:
    """Return the most frequent words of all parties, of a list if there is one."""
    whole = Corpus.concatenate(list(corpora.values()))
    if allowed:
        whole = whole.encode(Vocabulary(allowed))
    counts: Array = whole.document_frequency()
    order = np.argsort(-counts, kind="stable")[:most]
    return tuple(whole.vocabulary.words[i] for i in order if counts[i])


def settings_for(settings: RunSettings, directory: Path, words: tuple[str, ...] | None) -> RunSettings:
    """Return the settings of a run on planted documents: in a directory, with homes there, in one process.

    All documents are trained on, and parties are there from beginning to end.
    """
    own = {"home": None, "path": None, "joins": 0, "leaves": None}
    parties = {
        name: party.replace(**own | {"home": str(directory / "homes" / str(i))})
        for i, (name, party) in enumerate(settings.parties.items())
    }
    terms = settings.federation.replace(owners="one", dropouts=type(settings.federation.dropouts)())
    return settings.replace(
        directory=str(directory / "run"), engine="local", address=None, data=None, heldout=0.0, validation=0.0,
        start_from=None, parties=parties, federation=terms, method=audited(settings.method, words),
    )  # fmt: skip
