"""A forecast of a run's cost: a copy of a party's ledger is charged by the code that will charge the party.

The copy is in a temporary folder; the party's home is only read. The cost of a run depends on earlier charges, on the
word list, on the documents and on the policy's limits. The ledger and `federation.party.reports` decide all of it, so
this module computes none of it.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np

from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import FormatError
from tertulia.federation.party import reports
from tertulia.federation.party.document_limits import limit_corpus, parts_of
from tertulia.federation.party.withdrawn_documents import remaining
from tertulia.federation.types import Planned, names_words
from tertulia.privacy.home import KEY, LEDGER, Home
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import EventData, Mechanism, Randomiser
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.policy import Policy
from tertulia.runs.settings import PartySettings, RunSettings

if TYPE_CHECKING:
    from tertulia.federation.party.host import PartyHost
    from tertulia.federation.plan import Plan

Documents = Callable[[], Corpus]


def planned_release(planned: Planned, party: str, plan: Plan | None = None) -> Release:
    """Make one ledger row for all planned releases of one thing: its event is composed as often.

    With a plan, the row says how many members share noise, and at how many a user may have documents.
    """
    step, verb, mechanism, times = planned[:4]
    if plan is not None and planned.masked:
        mechanism = mechanism.with_shares(plan.noise_shares)
    one = Release.of(
        mechanism, id=f"check/{step.__name__}/{verb}/{mechanism.what}", run="check", party=party, round=0,
        step=step.__name__, verb=verb, message_hash="", x=np.zeros(0), masked=planned.masked, agreed=names_words(step),
        user_at=None if plan is None else plan.user_at,
    )  # fmt: skip
    return replace(one, event=_repeated(one.event, times)) if one.charges and not one.non_private else one


def _repeated(event: EventData | None, times: int) -> EventData | None:
    return event if event is None or times == 1 else {"type": "SelfComposedDpEvent", "event": event, "count": times}


class _Repeated:
    """A mechanism whose single charge is that of several uses."""

    def __init__(self, mechanism: Mechanism, times: int) -> None:
        self._mechanism, self._times = mechanism, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mechanism, name)

    def charge(self) -> EventData | None:
        """Return the cost of all uses together."""
        return _repeated(self._mechanism.charge(), self._times)


class _Named(NamedTuple):
    id: str


@dataclass(frozen=True)
class _Charging:
    """The part of a party's host that `reports.randomise` uses."""

    config: _Named
    noise_key: NoiseKey
    policy: Policy
    fingerprints: WeakKeyDictionary[Corpus, reports.CorpusReports] = field(default_factory=WeakKeyDictionary)
    user_at: int | None = None  # a forecast is of this party alone


class Trial:
    """A run that is charged to a copy of one party's ledger."""

    def __init__(self, home: Home, settings: RunSettings, party: str, policy: Policy, documents: Documents) -> None:
        self.ledger = home.ledger
        self._key, self._settings, self._party = home.key, settings, party
        self._policy, self._documents = policy, documents

    def charge(self, planned: Planned) -> str:
        """Charge for one planned thing; return a remark on how many documents' reports are new, if that is known."""
        release = planned_release(planned, self._party)
        words = self._words
        if not release.charges:
            return ""
        if planned.verb != reports.REPORTS or words is None:
            self.ledger.record(release, self._allowing)
            return ""
        mechanism, corpus = cast(Randomiser, planned.mechanism), self._train.encode(words, unknown=True)
        seen = reports.forecast(self._party, self.ledger, self._key, corpus, mechanism)
        host = _Charging(_Named(self._party), self._key, self._allowing)
        repeated = cast(Randomiser, _Repeated(mechanism, planned.times))
        reports.randomise(cast("PartyHost", host), self.ledger, corpus, repeated)
        if not mechanism.by_document:
            return ""
        return f"{planned.mechanism.what}: {seen.new} of {seen.documents} documents are new or edited"

    @cached_property
    def _words(self) -> Vocabulary | None:
        """The given word list; None if parties have still to agree on one, of which nothing was reported yet."""
        terms = self._settings.method.vocabulary_settings
        return Vocabulary(tuple(terms.words)) if terms is not None and terms.words else None

    @cached_property
    def _train(self) -> Corpus:
        """The documents that a step would see."""
        present = remaining(self._documents(), self.ledger.withdrawals()).corpus
        corpus = limit_corpus(present, self._policy.bounds)
        shares, hides = (self._settings.heldout, self._settings.validation), self._settings.hides_words
        return parts_of(corpus, *shares, hides_words=hides)["train"]

    @cached_property
    def _allowing(self) -> Policy:
        """The policy's limits without its rules, which `budgets.verdicts` reports."""
        return self._policy.model_copy(
            update={"allow_clear": True, "allow_single": True, "allow_metrics": True, "budget": ()}
        )


@contextmanager
def trial(settings: RunSettings, party: str, policy: Policy, documents: Documents) -> Iterator[Trial]:
    """Open a copy of a party's home, for as long as it is charged."""
    home = settings.parties.get(party, PartySettings()).home
    with TemporaryDirectory() as place:
        key = _copy(None if home is None else Path(home), Path(place))
        with closing(Ledger(Path(place) / LEDGER, key, durable=False)) as ledger:
            yield Trial(Home(ledger, key), settings, party, policy, documents)


def charge_all(trial: Trial, planned: Sequence[Planned]) -> tuple[str, ...]:
    """Charge for a whole plan; return the remarks on documents."""
    return tuple(filter(None, [trial.charge(one) for one in planned]))


def _copy(home: Path | None, place: Path) -> NoiseKey:
    """Copy a home's ledger, if there is one; its key, or one for the occasion."""
    ledger, key = (None, None) if home is None else (home / LEDGER, home / KEY)
    if ledger is not None and ledger.exists():
        try:
            source = sqlite3.connect(f"{ledger.resolve().as_uri()}?mode=ro", uri=True, timeout=60)
            with closing(source), closing(sqlite3.connect(place / LEDGER)) as copy:
                source.backup(copy)
        except sqlite3.DatabaseError as error:
            raise FormatError(f"{ledger} is not a ledger ({error}); restore it from a backup") from error
    return NoiseKey.load(key) if key is not None and key.exists() else NoiseKey(secrets.token_bytes(32))
