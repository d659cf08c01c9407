"""The documents of parties as they are now, for their owner: without those that are withdrawn at a party's home."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from tertulia.corpus import Corpus
from tertulia.corpus.recipes import read_recipe
from tertulia.federation.party.withdrawn_documents import remaining
from tertulia.privacy.snapshots import read_ledger
from tertulia.privacy.withdrawals import Withdrawals
from tertulia.runs.documents import sources_of
from tertulia.runs.settings import RunSettings


def pool_documents(settings: RunSettings, corpora: Mapping[str, Corpus] | None) -> Corpus:
    """Concatenate the documents of all parties, for the pooled baseline."""
    if corpora is None:
        corpora = {party: read_recipe(recipe) for party, recipe in sources_of(settings).items()}
    return Corpus.concatenate([present_documents(settings, party, corpus) for party, corpus in corpora.items()])


def present_documents(settings: RunSettings, party: str, corpus: Corpus) -> Corpus:
    """Leave out the documents that are withdrawn at a party's home, if it has one."""
    return remaining(corpus, withdrawals_of(settings, party)).corpus


def withdrawals_of(settings: RunSettings, party: str) -> Withdrawals:
    """Return what is withdrawn at a party's home, if it has one; the home is only read."""
    own = settings.parties.get(party)
    if own is None or own.home is None:
        return Withdrawals()
    with closing(read_ledger(Path(own.home))) as ledger:
        return ledger.withdrawals()
