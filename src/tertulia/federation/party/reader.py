"""A read-only view of a party: its directory, its home and its ledger do not change."""

from __future__ import annotations

from functools import cached_property

from tertulia.corpus import Corpus
from tertulia.errors import InputError, Unreleased
from tertulia.federation.codec import encode
from tertulia.federation.party import failures
from tertulia.federation.party.host import PartyHost
from tertulia.privacy.home import Home
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.snapshots import read_ledger


class PartyReader(PartyHost):
    """A party's side of a run, open for reading: its releases can be read, and no step can run."""

    @cached_property
    def home(self) -> Home:
        """Raise an error: nothing can be released."""
        raise Unreleased(f"party '{self.config.id}' is open for reading: nothing leaves")

    @cached_property
    def _ledger(self) -> Ledger:
        return read_ledger(self.config.home_in(self.directory), fixed_key=self.config.noise_key)

    @property
    def ledger(self) -> Ledger:
        """The ledger, as it was at the first access."""
        return self._ledger

    @cached_property
    def corpus(self) -> Corpus:
        """The documents that the run has stored; no source is read."""
        stored = self.directory / "corpus"
        if not (stored / "corpus.json").exists():
            raise InputError(f"party '{self.config.id}' has no documents in {stored}: they were forgotten")
        return Corpus.load(stored)

    def notice(self, text: str) -> None:
        """Write nothing to the party's log."""

    def _fail(self, error: Exception) -> bytes:
        """Answer with the reason, which the reader, its owner, may see."""
        return encode(failures.full_answer(error, None))
