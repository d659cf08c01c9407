"""The replay audit of a run: what mechanisms are fed, on a party's documents and on neighbours of these.

A run of the given settings is recorded on one machine, with keys, homes and ledgers of its own in a temporary folder.
Each of a party's steps runs again on neighbours of its documents, beside the released values of the recording
(`federation.party.recorder`). Every input must differ by no more than its mechanism declares. All else that leaves
must be equal.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tertulia.corpus import Corpus
from tertulia.corpus.recipes import read_recipe
from tertulia.corpus.splits import is_heldout
from tertulia.errors import ConfigError, TertuliaError
from tertulia.federation.engines.local import LocalTransport
from tertulia.federation.party.recorder import RecordedHost, Recorder
from tertulia.privacy.audit.inputs import Violation, promises
from tertulia.privacy.mechanisms import Clear, Mechanism
from tertulia.runs.budgets import announced
from tertulia.runs.documents import sources_of
from tertulia.runs.driver import finish
from tertulia.runs.neighbours import Parts, neighbours_of
from tertulia.runs.one_machine import begin, policy_or_none
from tertulia.runs.settings import PartySettings, RunSettings

NOTHING_TO_AUDIT = (
    "nothing to audit: this configuration promises nothing, for nothing that leaves has noise of a finite epsilon. "
    "Choose a mode that promises something, such as mode = 'sound'"
)
NO_PLAN = (
    "nothing to audit: the method announces no releases, so that nobody knows what it promises. Give its module a "
    "function `plan(config)`"
)
NO_DOCUMENTS = "nothing to audit: no party has two documents of at least two words to train on"


@dataclass(frozen=True)
class ReplayReport:
    """The findings of a replay."""

    mode: str
    party: str  # whose documents had neighbours
    neighbours: tuple[str, ...]
    compared: int  # inputs and derived values, over all neighbours
    violations: tuple[Violation, ...]
    unpromised: tuple[str, ...]  # what leaves without noise, and may differ
    closest: float  # the largest part of a declared sensitivity that an input has moved
    ended: str = ""  # why the run ended early, if it did: what left until then was compared

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as data for JSON, which knows no infinity."""
        closest = None if math.isinf(self.closest) else self.closest
        found = [violation.to_dict() for violation in self.violations]
        return {**vars(self), "closest": closest, "violations": found}


def replay(
    settings: RunSettings,
    corpora: Mapping[str, Corpus] | None = None,
    *,
    seed: int = 0,
    observe: Callable[[str], None] | None = None,
) -> ReplayReport:
    """Record a run, replay it on neighbours of one party's documents, and list the promises that do not hold.

    Without `corpora`, the parties' documents are read as the settings say. Homes and budgets of the settings are not
    touched. Nothing stays on disk, also after an interruption.
    """
    say = observe or (lambda text: None)
    planned = _planned(settings)
    documents = dict(corpora or {party: read_recipe(source) for party, source in sources_of(settings).items()})
    with TemporaryDirectory(prefix="tertulia-replay-") as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a run whose model nobody will use
        run = begin(_apart(settings, documents, Path(place)), documents, durable=False)
        hosts = [RecordedHost(run.party_directory(party), documents[party]) for party in run.parties]
        for host in hosts:
            host.pins = run.pins
        host, parts = _audited(hosts)
        recorder = _recorder(settings, host, parts, planned, seed)
        say(f"replaying party '{host.config.id}' on {len(recorder.neighbours)} neighbours of its documents")
        ended = ""
        try:
            finish(run, documents, transport=LocalTransport(hosts))
        except TertuliaError as error:  # such as: nothing can be learned from documents like these
            if not recorder.compared:
                raise
            ended = str(error)
    return ReplayReport(
        settings.method.noise or settings.method.name, host.config.id, recorder.neighbours, recorder.compared,
        tuple(recorder.violations), tuple(sorted(recorder.unpromised)), recorder.closest, ended,
    )  # fmt: skip


def _planned(settings: RunSettings) -> list[Mechanism]:
    """Return the planned mechanisms; raise if none of them promises anything."""
    any_party = next(iter(settings.parties), "")
    planned = announced(settings, any_party, policy_or_none(settings, any_party))
    if not planned:
        raise ConfigError(NO_PLAN)
    if not any(promises(one.mechanism) for one in planned):
        raise ConfigError(NOTHING_TO_AUDIT)
    return [one.mechanism for one in planned]


def _apart(settings: RunSettings, parties: Mapping[str, Corpus], place: Path) -> RunSettings:
    """Return the settings of a run that lives in a folder of its own, with homes there, in one process."""
    own = {
        party: settings.parties.get(party, PartySettings()).model_copy(update={"home": str(place / "homes" / str(i))})
        for i, party in enumerate(parties)
    }
    update = {"directory": str(place / "run"), "engine": "local", "address": None, "workers": 1, "parties": own}
    return settings.model_copy(update=update)


def _audited(hosts: Sequence[RecordedHost]) -> tuple[RecordedHost, Parts]:
    """Choose the party whose documents get neighbours: the first that has enough."""
    for host in hosts:
        parts = Parts.of(host.corpus, host.parts)
        if len(parts.train) > 1:
            return host, parts
    raise ConfigError(NO_DOCUMENTS)


def _recorder(settings: RunSettings, host: RecordedHost, parts: Parts, planned: list[Mechanism], seed: int) -> Recorder:
    terms = settings.method.vocabulary_settings
    words = () if terms is None else tuple(terms.words)
    left_out = settings.heldout + settings.validation
    promised = [mechanism for mechanism in planned if promises(mechanism)]
    found = neighbours_of(parts, promised, words, lambda name: not is_heldout(name, left_out), seed)
    return Recorder(host, found, exposed=any(isinstance(one, Clear) and not one.metric for one in planned))
