"""The server's side of a run: train over whatever transport there is, from the last commit to a saved model.

It opens no file of a party. What it needs of one, such as the digest of its ledger, it asks for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from tertulia._locks import holding
from tertulia.corpus import Corpus
from tertulia.errors import FormatError
from tertulia.federation.custom import check_pins
from tertulia.federation.engines.base import Transport
from tertulia.federation.server.handle import Handle, Terms
from tertulia.federation.server.ledger_digests import LedgerDigests
from tertulia.federation.server.membership import Dropouts, Membership
from tertulia.methods import CustomSettings, entry_of
from tertulia.methods.common import choosing
from tertulia.methods.common.result import Trained
from tertulia.runs.config import RunSettings
from tertulia.runs.layout import Run, drive
from tertulia.runs.plans import modules_of, plan_of
from tertulia.runs.provenance import public_settings
from tertulia.runs.results import FederatedTopics

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
    train, config = _method_of(settings)
    with holding(run.directory):
        reached = transport or run.transport(settings.engine, settings.workers, corpora)
        with closing(reached) as transport:
            plan = plan_of(settings, run.parties, run.keys).hash
            handle = Handle(run.id, transport, run.journal(), terms_of(settings), observe, plan)
            warn = lambda text: handle.observe("warning", {"text": text})  # noqa: E731
            ledgers = LedgerDigests(run.directory / "server" / "ledgers.json", run.id, durable=run.durable)
            ledgers.check(transport, handle.terms.timeout, warn)
            result = drive(handle, train, config)
            digests = ledgers.check(transport, handle.terms.timeout, warn)
            if isinstance(settings.method, CustomSettings) or not isinstance(result, Trained):
                return result
        provenance = {
            "method": settings.method.name,
            "config": public_settings(settings),
            "parties": list(run.parties),
            "run": run.id,
            "ledgers": digests,
        }
        model = FederatedTopics.of(result, settings.text, provenance, handle.history, run.directory)
        model.save(run.directory / "model")
        return model


def settings_of(run: Run) -> RunSettings:
    """What a run was asked for, if its `run.json` still says so."""
    try:
        return RunSettings(**run.config)
    except (TypeError, RecursionError) as error:
        raise FormatError(f"{run.directory / 'run.json'} is damaged ({error}): restore it from a backup") from error


def _method_of(settings: RunSettings) -> tuple[Callable[..., Any], Any]:
    """The function that trains, and what it is configured with."""
    module, function, config = entry_of(settings.method)
    train = getattr(importlib.import_module(module), function)
    return (_then_choose(train) if settings.chooses else train), config


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
