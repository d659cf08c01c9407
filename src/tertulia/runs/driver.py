"""From settings to a saved model: how a run is laid out, driven and finished. API and CLI both stand on this."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tertulia._disk import read_checked
from tertulia._locks import holding
from tertulia.corpus import Corpus, TextOptions
from tertulia.errors import ConfigError
from tertulia.federation.codec import decode
from tertulia.federation.party.host import PartyConfig
from tertulia.federation.server.handle import Handle, Terms
from tertulia.federation.server.membership import Dropouts, Membership
from tertulia.methods import CustomSettings, entry_of
from tertulia.methods.common import choosing
from tertulia.methods.common.result import Trained
from tertulia.models import Topics
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.policy import Policy
from tertulia.runs.config import PartySettings, RunSettings
from tertulia.runs.layout import Run, drive
from tertulia.runs.results import FederatedTopics
from tertulia.runs.sources import POOLED, pooled, sources_of

Observer = Callable[[str, Mapping[str, Any]], None]  # told of each "round" and each "warning"


def begin(settings: RunSettings, corpora: Mapping[str, Corpus] | None = None, *, durable: bool = True) -> Run:
    """Lay out a run's directory: each party gets a home with its documents, or with where to read them."""
    if settings.method.pools:
        corpora = {POOLED: pooled(settings, corpora)}
    sources = sources_of(settings) if corpora is None else {}
    parties = tuple(corpora if corpora is not None else sources)
    strangers = set(settings.parties) - set(parties)
    if strangers and not settings.method.pools:
        raise ConfigError(f"there are settings for {sorted(strangers)}, but the parties are {sorted(parties)}")
    for party in parties:
        policy_of(settings, party)
    with holding(Path(settings.directory)):
        run = Run.new(Path(settings.directory), parties, settings.model_dump(mode="json"), durable)
        for party in parties:
            _settle(run, party, settings, sources.get(party))
            if corpora is not None and (durable or settings.engine == "processes" or party == POOLED):
                corpora[party].save(run.party_directory(party) / "corpus")
        run.save()  # last: a directory with run.json is complete
    return run


def policy_of(settings: RunSettings, party: str) -> Policy | None:
    """A party's own rules, if it has any; a broken policy is reported before a run begins, not in the middle of it."""
    own = settings.parties.get(party, PartySettings())
    if own.policy is None:
        return None
    policy = Policy.load(own.policy)
    policy.check_home(party, own.home)
    return policy


def _settle(run: Run, party: str, settings: RunSettings, source: dict[str, Any] | None) -> None:
    """Give a party its directory."""
    own = settings.parties.get(party, PartySettings())
    directory = run.party_directory(party)
    home = None if own.home is None else str(Path(own.home).resolve())  # the same wherever the run is resumed
    rules = PartyConfig(
        id=party, run=run.id, seed=settings.seed, methods=_modules(settings), heldout=settings.heldout,
        validation=settings.validation, settings=own.choices(), source=source, home=home, durable=run.durable,
    )  # fmt: skip
    rules.save(directory)
    if own.policy:
        shutil.copyfile(own.policy, directory / "policy.toml")


def finish(run: Run, corpora: Mapping[str, Corpus] | None = None, observe: Observer | None = None) -> Any:
    """Drive a run, new or interrupted, to its end, and save the model; a custom method's result comes back as it is.

    Two processes cannot drive one run: the second gets an error that names the first.
    """
    with holding(run.directory):
        return _finish(run, corpora, observe)


def _finish(run: Run, corpora: Mapping[str, Corpus] | None, observe: Observer | None) -> Any:
    settings = RunSettings(**run.config)
    method = settings.method
    entry = entry_of(method)
    train = getattr(importlib.import_module(entry.module), entry.function)
    transport = run.transport(settings.engine, settings.workers, corpora)
    try:
        handle = Handle(run.id, transport, run.journal(), terms(settings), observe)
        driven = _then_choose(train) if settings.chooses else train
        result = drive(handle, driven, entry.config)
    finally:
        transport.close()
    if isinstance(method, CustomSettings) or not isinstance(result, Trained):
        return result
    provenance = {
        "method": method.name,
        "config": run.config,
        "parties": list(run.parties),
        "run": run.id,
        "ledgers": {party: ledger_of(run, party).digest() for party in run.parties},
    }
    model = FederatedTopics.of(result, settings.text, provenance, handle.history, run.directory)
    model.save(run.directory / "model")
    chosen = {party: choice_of(run, party) for party in run.parties} if settings.chooses else {}
    model.choices = {party: choice for party, choice in chosen.items() if choice is not None}
    return model


def _modules(settings: RunSettings) -> tuple[str, ...]:
    return (entry_of(settings.method).module, *((choosing.__name__,) if settings.chooses else ()))


def _then_choose(train: Callable[..., Any]) -> Callable[..., Any]:
    """Train, then let parties choose their models."""

    def both(fed: Any, method: Any, state: Any) -> Any:
        result = train(fed, method, state)
        choosing.let_choose(fed, method, result)
        return result

    return both


def choice_of(run: Run, party: str) -> choosing.Choice | None:
    """What a party that lives on this machine has chosen, if it had documents to choose by."""
    path = run.party_directory(party) / "kept" / f"{choosing.KEPT}.safetensors"
    if not path.exists():
        return None
    provenance = {"method": run.config["method"]["name"], "run": run.id, "party": party}
    found = choosing.read_choice(decode(read_checked(path)), provenance)
    options = TextOptions.from_dict(run.config["text"])
    return choosing.Choice(*(replace(topics, options=options) for topics in found))


def best_for(directory: str | Path, party: str) -> Topics:
    """The model that a party of a finished run has chosen for its own documents, read from its directory.

    >>> best_for("runs/hospitals", "north").provenance["chosen"]  # doctest: +SKIP
    'mixture'
    """
    run = Run.open(Path(directory))
    if party not in run.parties:
        raise ConfigError(f"{directory} has no party '{party}': its parties are {sorted(run.parties)}")
    choice = choice_of(run, party)
    if choice is None:
        raise ConfigError(f"party '{party}' of {directory} has chosen no model: run with a share `validation`")
    return choice.best


def ledger_of(run: Run, party: str) -> Ledger:
    """The ledger of a party that lives on this machine."""
    home = run.party_directory(party)
    return Ledger(PartyConfig.load(home).ledger_path(home))


def terms(settings: RunSettings) -> Terms:
    """The terms on which parties meet."""
    federation = settings.federation
    return Terms(
        quorum=federation.quorum,
        timeout=federation.timeout,
        on_failure=federation.on_failure,
        dropouts=Dropouts(federation.dropouts.rate, settings.seed, federation.dropouts.script),
        membership={name: Membership(own.joins, own.leaves) for name, own in settings.parties.items()},
    )
