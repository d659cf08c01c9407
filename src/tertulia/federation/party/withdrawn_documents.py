"""Withdrawn documents: they are left out before any step sees a document, as if they were deleted at the source.

A run's documents are those at its first question: methods keep a state for each token, so a document cannot leave in
the middle. If a document of a run is withdrawn after that, the party answers no further question of the run.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tertulia._arrays import Bool
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import FormatError, PolicyRefusal
from tertulia.federation.party.reports import names_of
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.withdrawals import RULE, Withdrawals, counted

if TYPE_CHECKING:
    from tertulia.corpus.recipes import Recipe
    from tertulia.federation.party.host import PartyHost

LEFT_OUT = "withdrawn"
ALIKE = "has exactly the words of a withdrawn document, under another name: withdraw it too if it is the same"
SINCE = (
    "documents of this run were withdrawn since it began: this party answers it no more, and takes part in the next "
    "run without them"
)
_LONG = 20  # words from which on two documents with the same words are hardly equal by chance


class Remaining(NamedTuple):
    """The documents that are not withdrawn."""

    corpus: Corpus
    left_out: int
    alike: int  # documents that stay, and have exactly the words of a withdrawn one


def remaining(corpus: Corpus, withdrawals: Withdrawals) -> Remaining:
    """Leave out withdrawn documents, and note in the corpus' report how many there were."""
    if not withdrawals or corpus.n_documents == 0:
        return Remaining(corpus, 0, 0)
    out = are_withdrawn(corpus, withdrawals)
    alike = int((_alike(corpus, withdrawals) & ~out).sum()) if withdrawals.contents else 0
    left_out = int(out.sum())
    report = replace(corpus.report, kept=max(corpus.report.kept - left_out, 0))
    report = replace(report, dropped=dict(report.dropped), noted=dict(report.noted))
    for counts, reason, count in ((report.dropped, LEFT_OUT, left_out), (report.noted, ALIKE, alike)):
        if count:
            counts[reason] = count
    return Remaining(replace(corpus.select(~out) if left_out else corpus, report=report), left_out, alike)


def read_remaining(recipe: Recipe, directory: Path, withdrawals: Withdrawals) -> Remaining:
    """Read documents into a directory; it keeps neither withdrawn documents nor words that only these have."""
    from tertulia.corpus.recipes import read_recipe

    found = remaining(read_recipe(recipe, directory), withdrawals)
    if not found.left_out:
        return found
    found.corpus.encode(Vocabulary(found.corpus.words_in_use())).save(directory)
    return found._replace(corpus=Corpus.load(directory))


def are_withdrawn(corpus: Corpus, withdrawals: Withdrawals) -> Bool:
    """Tell which documents are withdrawn, [D]."""
    ids, users = names_of(corpus, _key(withdrawals))
    return np.fromiter(map(withdrawals.cover, ids, users), np.bool_, corpus.n_documents)


def _alike(corpus: Corpus, withdrawals: Withdrawals) -> Bool:
    """Tell which documents have the contents of a withdrawn one, [D]."""
    contents = contents_of(corpus, _key(withdrawals))
    return np.fromiter((content in withdrawals.contents for content in contents), np.bool_, corpus.n_documents)


def contents_of(corpus: Corpus, key: NoiseKey) -> list[bytes]:
    """Compute a MAC of each document's words in their order, whatever their numbers; empty for short documents."""
    hashes = [hashlib.blake2b(word.encode(), digest_size=8).digest() for word in corpus.vocabulary.words]
    numbers = np.frombuffer(b"".join(hashes), np.uint64)
    return [
        key.mac(b"withdrawn words", numbers[np.asarray(corpus.words[a:b])].tobytes()) if b - a >= _LONG else b""
        for a, b in pairwise(corpus.documents.tolist())
    ]


def _key(withdrawals: Withdrawals) -> NoiseKey:
    if withdrawals.key is None:
        raise FormatError("withdrawals can be compared with documents only by the home's noise key: restore it")
    return withdrawals.key


class RunWithdrawals:
    """The withdrawals that a run of one party obeys."""

    def __init__(self, host: PartyHost) -> None:
        self._host = host
        self._checked: int | None = None  # number of the last withdrawal that is known not to concern this run
        self._concerned = False

    def leave_out(self, corpus: Corpus) -> Corpus:
        """Leave out what was withdrawn before the run began; before it has begun, all that is withdrawn now."""
        return self._note(remaining(corpus, self._before))

    def read(self, recipe: Recipe, directory: Path) -> Corpus:
        """Read the run's documents into a directory without those that `leave_out` leaves out."""
        found = read_remaining(recipe, directory, self._before)
        return self._note(found._replace(alike=0))  # `leave_out` will note these

    @cached_property
    def _before(self) -> Withdrawals:
        """The withdrawals that the run's documents obey: later ones end the run at this party."""
        return self._host.ledger.withdrawals(until=self._host.door.withdrawn)

    def _note(self, found: Remaining) -> Corpus:
        """Inform the party's staff."""
        if found.left_out:
            self._host.notice(f"withdrawn and left out: {counted(0, found.left_out)}")
        if found.alike:
            self._host.notice(f"{counted(0, found.alike)}: each {ALIKE}")
        return found.corpus

    def check(self) -> None:
        """Raise `PolicyRefusal` if a document of the run was withdrawn after the run had begun."""
        if self._checked is None:
            self._checked = self._before.last
        later = self._host.ledger.withdrawals(after=self._checked)
        if later and not self._concerned:
            self._concerned = any(are_withdrawn(part, later).any() for part in self._host.parts.values())
        if self._concerned:
            raise PolicyRefusal(RULE, SINCE)
        self._checked = later.last
