"""The server's side of a run: train over whatever transport there is, from the last commit to a saved model.

It opens no file of a party. What it needs of one, such as the digest of its ledger, it asks for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from tertulia._locks import holding
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.custom import check_pins
from tertulia.federation.engines.base import Transport
from tertulia.federation.server.handle import Handle, Terms
from tertulia.federation.server.ledger_digests import LedgerDigests
from tertulia.federation.server.membership import Dropouts, Membership
from tertulia.methods import CustomSettings, entry_of
from tertulia.methods.common import choosing
from tertulia.methods.common.result import Trained
from tertulia.models import Topics
from tertulia.models.continuity import keep_ids
from tertulia.runs.config import RunSettings
from tertulia.runs.continuing import START, hash_of_start
from tertulia.runs.layout import Run, drive
from tertulia.runs.plans import modules_of, plan_of
from tertulia.runs.provenance import public_settings
from tertulia.runs.results import FederatedTopics, reason_of, warn_of_absent

Observer = Callable[[str, Mapping[str, Any]], None]  # gets the facts of each "round" and each "warning"


def finish(
    run: Run,
    corpora: Mapping[str, Corpus] | None = None,
    observe: Observer | None = None,
    transport: Transport | None = None,
) -> Any:
    """Drive a run, new or interrupted, to its end, and save the model; a custom method's result comes back as it is.

    Parties are reached by the run's engine, unless a transport is given. Two processes cannot drive one run: the second
    gets an error that names the first.
    """
    settings = settings_of(run)
    check_pins(modules_of(settings), run.pins)
    with holding(run.directory):
        last = None if settings.start_from is None else Topics.load(run.directory / START)
        train, config = _method_of(settings, last)
        reached = transport or run.transport(settings.engine, settings.workers, corpora, settings.address or "local")
        with closing(reached) as transport:
            plan = plan_of(settings, run.parties, run.keys, hash_of_start(run.directory)).hash
            handle = Handle(run.id, transport, run.journal(), terms_of(settings), observe, plan)
            warn = lambda text: handle.observe("warning", {"text": text})  # noqa: E731
            ledgers = LedgerDigests(run.directory / "server" / "ledgers.json", run.id, durable=run.durable)
            ledgers.check(transport, handle.terms.timeout, warn)
            result = drive(handle, train, config)
            digests = ledgers.check(transport, handle.terms.timeout, warn)
            if isinstance(settings.method, CustomSettings) or not isinstance(result, Trained):
                return result
        absent = {party: reason_of(why) for party, why in handle.absent.items()}
        provenance = {
            "method": settings.method.name,
            "config": public_settings(settings),
            "parties": [party for party in run.parties if party not in absent],
            **({"absent": absent} if absent else {}),
            "run": run.id,
            "ledgers": digests,
        }
        if last is not None:
            provenance["continues"] = {"run": last.provenance.get("run"), "model": hash_of_start(run.directory)}
            result = replace(result, topics=keep_ids(result.topics, last))
        model = FederatedTopics.of(result, settings.text, provenance, handle.history, run.directory)
        model.save(run.directory / "model")
        warn_of_absent(provenance)
        return model


def settings_of(run: Run) -> RunSettings:
    """What a run was asked for, if its `run.json` still says so."""
    path = run.directory / "run.json"
    try:
        return RunSettings(**run.config)
    except ConfigError as error:
        remedy = f"`tertulia upgrade {run.directory}` carries over what an earlier version began"
        raise ConfigError(f"{path}: {error}. {remedy}") from None
    except (TypeError, RecursionError) as error:
        raise FormatError(f"{path} is damaged ({error}): restore it from a backup") from error


def _method_of(settings: RunSettings, last: Topics | None = None) -> tuple[Callable[..., Any], Any]:
    """The function that trains, and what it is configured with."""
    module, function, config = entry_of(settings.method)
    train = getattr(importlib.import_module(module), function)
    if last is not None:
        train = _going_on(train, importlib.import_module(module).continue_from, last)
    return (_then_choose(train) if settings.chooses else train), config


def _going_on(train: Callable[..., Any], continue_from: Callable[..., Any], last: Topics) -> Callable[..., Any]:
    """Train from an earlier model, instead of from nothing."""

    def both(fed: Any, method: Any, state: Any) -> Any:
        return train(fed, method, fed.commit(continue_from(fed, method, last)) if state is None else state)

    return both


def _then_choose(train: Callable[..., Any]) -> Callable[..., Any]:
    """Train, then let parties choose their models."""

    def both(fed: Any, method: Any, state: Any) -> Any:
        result = train(fed, method, state)
        choosing.let_choose(fed, method, result)
        return result

    return both


def terms_of(settings: RunSettings) -> Terms:
    """The terms on which parties meet."""
    federation = settings.federation
    return Terms(
        quorum=federation.quorum,
        timeout=federation.timeout,
        on_failure=federation.on_failure,
        max_documents=federation.max_documents,
        dropouts=Dropouts(federation.dropouts.rate, settings.seed, federation.dropouts.script),
        membership={name: Membership(own.joins, own.leaves) for name, own in settings.parties.items()},
    )
