"""A party's withdrawals: find a user, or a document, in all places that a party has, and record it in its ledger.

A name is known if the party's documents have it now, if the copy of a run has it, or if the ledger does: a person whose
documents were deleted at the source can still be withdrawn. Nothing is written for a name that is in no place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tertulia._locks import directory_lock
from tertulia.corpus import Corpus, TextOptions
from tertulia.corpus.recipes import find_documents
from tertulia.errors import ConfigError, InputError
from tertulia.federation.party.host import PartyConfig
from tertulia.federation.party.reader import PartyReader
from tertulia.federation.party.reports import names_of
from tertulia.federation.party.withdrawn_documents import contents_of
from tertulia.network.endings import ABANDONED, FINISHED, ending_or_none
from tertulia.network.party.party_directory import FILE, PartyDirectory
from tertulia.privacy.home import Home, open_home
from tertulia.privacy.snapshots import read_ledger
from tertulia.privacy.withdrawals import RULE, Kind, Withdrawal

UNDER_WAY, BEFORE, OVER = "under way", "not begun", "over"
_NO_HOME = (
    "{} has no home: what is withdrawn there would be forgotten with the run. Set `home` for this party, in "
    "[parties.NAME], and run again; or delete the documents at their source"
)
_NO_COLUMN = {
    "user": "These documents name no user: name the column of users by `user`, beside `path`",
    "document": "These documents have no column of ids: name it by `id`, beside `path`",
}
_EXACTLY = "Names are compared exactly, with capitals and blanks"


class Copy(NamedTuple):
    """Documents in the copy that belongs to a run."""

    run: str
    documents: int
    state: str  # UNDER_WAY, BEFORE or OVER


@dataclass(frozen=True)
class Found:
    """A user or a document, and the places that have it."""

    kind: Kind
    name: str
    source: Corpus | None  # the documents at the source, if there are any
    copies: Mapping[Copy, Corpus]
    reported: bool  # whether the ledger knows reports of it
    since: str = ""  # when it was withdrawn, if it was
    unread: str = ""  # why the source could not be read

    @property
    def documents(self) -> int:
        """The number of documents at the source."""
        return 0 if self.source is None else self.source.n_documents

    def runs(self, *states: str) -> list[str]:
        """Return the runs in one of these states whose copies have the documents."""
        return [copy.run for copy in self.copies if copy.state in states]

    @property
    def lines(self) -> list[str]:
        """Say where it was found, and what follows for runs under way."""
        reported = "its tokens were reported" if self.reported else "no reports of its tokens are in the ledger"
        now = f"{_number(self.documents, 'document')} now"
        source = f"not looked for at the source ({self.unread})" if self.unread else now
        said = [f"{self.kind} '{self.name}': {source}, copies in {_number(len(self.copies), 'run')}; {reported}"]
        if under_way := self.runs(UNDER_WAY):
            said.append(
                f"run {', '.join(under_way)} has begun with them: from now on this party answers it no more. To let "
                "it end with them, withdraw when it has ended"
            )
        return said


@dataclass(frozen=True)
class Holder:
    """A party with a home: its documents, and the directories of its runs."""

    place: Path
    home: Path
    recipe: Mapping[str, Any] | None  # where the documents are now; None: the party does not read them itself
    runs: tuple[Path, ...]
    fixed_key: str | None = None  # for tests

    @classmethod
    def open(cls, directory: Path) -> Holder:
        """Open a party's directory, or its directory of a run on one machine, if it has a home."""
        if (directory / FILE).exists() or not (directory / "party.json").exists():
            return cls._of_party(PartyDirectory(directory))
        config = PartyConfig.load(directory)
        if config.home is None:
            raise ConfigError(_NO_HOME.format(directory))
        return cls(directory, Path(config.home), config.source, (directory,), config.noise_key)

    @classmethod
    def _of_party(cls, party: PartyDirectory) -> Holder:
        runs, documents = party.run_directories(), party.file.documents
        recipes = [config.source for run in runs if (config := PartyConfig.load(run)).source is not None]
        options = recipes[-1]["options"] if recipes else TextOptions().to_dict()
        recipe = {**documents.source(), "options": options} if documents.is_given else None
        return cls(party.directory, party.home, recipe, tuple(runs))

    def find(self, kind: Kind, name: str) -> Found:
        """Find a name in all places; raise `ConfigError` if it is in none."""
        if not name.strip():
            raise ConfigError(f"rule '{RULE}': an empty name is no {kind}: nothing was written")
        source, unread = self._at_source(kind, name)
        copies = {copy: found for copy, found in self._in_copies(kind, name) if found is not None}
        found = Found(kind, name, source, copies, *self._in_ledger(kind, name), unread)
        if source is None and not copies and not found.reported and not found.since:
            remedy = f"The documents cannot be read: {unread}" if unread else self._remedy(kind)
            raise ConfigError(
                f"rule '{RULE}': {kind} '{name[:100]}' is unknown to {self.place}: neither its documents, nor the "
                f"copies of its runs, nor its ledger have it, so nothing was written. {remedy}"
            )
        return found

    def record(self, found: Sequence[Found]) -> str:
        """Record withdrawals in the ledger; return the number of its last entry and that entry's hash."""
        with directory_lock(self.home, wait=lambda text: None):  # no question is being answered
            home = open_home(self.home, fixed_key=self.fixed_key)
            with closing(home.ledger) as ledger:
                ledger.withdraw([self._withdrawal(home, one) for one in found])
                return ledger.digest()

    @staticmethod
    def _withdrawal(home: Home, found: Found) -> Withdrawal:
        """Add to a name the ids and contents of all its documents that are known."""
        entry = Withdrawal.of(home.key, found.kind, found.name)
        known = [corpus for corpus in (found.source, *found.copies.values()) if corpus is not None]
        ids = {mac for corpus in known for mac in names_of(corpus, home.key)[0]}
        if found.kind == "user":
            ids.update(*(reported.ids_of_user(entry.mac) for reported in home.ledger.every_reported()))
        contents = {mac for corpus in known for mac in contents_of(corpus, home.key) if mac}
        return entry._replace(ids=frozenset(ids), contents=frozenset(contents))

    def _remedy(self, kind: Kind) -> str:
        column = (self.recipe or {}).get("user" if kind == "user" else "id")
        return _NO_COLUMN[kind] if self.recipe is not None and column is None else _EXACTLY

    def _at_source(self, kind: Kind, name: str) -> tuple[Corpus | None, str]:
        """Read the documents of a name; or say why the source cannot be read."""
        if self.recipe is None:
            return None, ""
        try:
            return find_documents(self.recipe, lambda row: (row.user if kind == "user" else row.id) == name), ""
        except (InputError, OSError) as error:
            return None, str(error)

    def _in_copies(self, kind: Kind, name: str) -> list[tuple[Copy, Corpus | None]]:
        """Look into the copies of documents that runs have."""
        found = []
        for directory in self.runs:
            if (directory / "corpus" / "corpus.json").exists():
                theirs = _documents_of(Corpus.load(directory / "corpus"), kind, name)
                copy = Copy(PartyConfig.load(directory).run, theirs.n_documents, _state_of(directory))
                found.append((copy, theirs if theirs.n_documents else None))
        return found

    def _in_ledger(self, kind: Kind, name: str) -> tuple[bool, str]:
        """Look into the ledger: whether it holds reports of a name, and when the name was withdrawn, if it was."""
        ledger, key = self._read
        if key is None:
            return False, ""
        entry = Withdrawal.of(key, kind, name)
        since = next((row.entry.time for row in ledger.entries() if row.entry.id == entry.entry_id), "")
        covered = ledger.every_reported()
        if kind == "document":
            return any(one.has_id(entry.mac) for one in covered), since
        return any(one.ids_of_user(entry.mac) for one in covered), since

    @cached_property
    def _read(self) -> tuple[Any, Any]:
        """A copy of the ledger, and its key; no key if the home has not been begun."""
        ledger = read_ledger(self.home, fixed_key=self.fixed_key)
        return ledger, ledger.withdrawals().key


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _documents_of(corpus: Corpus, kind: Kind, name: str) -> Corpus:
    column = "user" if kind == "user" else "id"
    if column not in corpus.table.columns:
        return corpus.select(np.zeros(corpus.n_documents, np.bool_))
    return corpus.select(np.array([value == name for value in corpus.table[column]], np.bool_))


def _state_of(directory: Path) -> str:
    """Say whether a run at a party is under way, by the files of the party."""
    ending = ending_or_none(directory)
    ended = ending is not None and ending.state in (FINISHED, ABANDONED)
    fetched = any((place / "model" / "model.json").exists() for place in (directory, directory.parents[1]))
    host = PartyReader(directory)
    if ended or fetched or (host.door.closed and host.door.plan is None):
        return OVER
    return BEFORE if host.door.withdrawn is None else UNDER_WAY
