"""The server's side of a run: train over a transport, from the last commit to a saved model.

It never opens a party's files. It sends inquiries instead, for example for the digest of a ledger.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from tertulia._locks import directory_lock
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.engines.base import Transport
from tertulia.federation.method_modules import check_pins
from tertulia.federation.server.handle import Handle, Terms
from tertulia.federation.server.inquiries import LedgerDigests
from tertulia.federation.server.membership import Dropouts, Membership
from tertulia.methods.common import model_choice
from tertulia.methods.common.rounds import Trained
from tertulia.methods.registry import CustomSettings, entry_of
from tertulia.metrics.history import participation
from tertulia.models import Topics
from tertulia.models.continuity import keep_ids
from tertulia.runs.directory import Run, drive
from tertulia.runs.plan import modules_of, plan_of
from tertulia.runs.results import FederatedTopics, public_settings, reason_of, warn_of_absent
from tertulia.runs.settings import RunSettings
from tertulia.runs.start_model import hash_of_start, load_start, train_from

Observer = Callable[[str, Mapping[str, Any]], None]  # called with "round" or "warning", and the facts


def finish(
    run: Run,
    corpora: Mapping[str, Corpus] | None = None,
    observe: Observer | None = None,
    transport: Transport | None = None,
) -> Any:
    """Drive a new or interrupted run to its end, save the model and return it.

    The result of a custom method is returned unchanged, and not saved. The run's engine provides the transport, unless
    one is given. Two processes cannot drive the same run: the second gets an error that names the first.
    """
    settings = settings_of(run)
    check_pins(modules_of(settings), run.pins)
    with directory_lock(run.directory):
        last = None if settings.start_from is None else load_start(run.directory)
        train, config = _method_of(settings, last)
        reached = transport or run.transport(settings.engine, settings.workers, corpora, settings.address or "local")
        with closing(reached) as transport:
            plan = plan_of(settings, run.parties, run.keys, hash_of_start(run.directory))
            handle = Handle(run.id, transport, run.journal(), terms_of(settings), observe, plan)
            warn = lambda text: handle.observe("warning", {"text": text})  # noqa: E731
            ledgers = LedgerDigests(run.directory / "server" / "ledgers.json", run.id, durable=run.durable)
            ledgers.check(transport, handle.terms.timeout, warn)
            handle.prepare()
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
            "participation": {p: one.to_dict() for p, one in participation(handle.history, run.parties).items()},
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
    """Return the settings of a run; raise an error if this version cannot read its `run.json`."""
    path = run.directory / "run.json"
    try:
        return RunSettings(**run.config)
    except ConfigError as error:
        remedy = "if an earlier, unreleased version made this run, begin it again"
        raise ConfigError(f"{path}: {error}; {remedy}") from None
    except (TypeError, RecursionError) as error:
        raise FormatError(f"{path} is damaged ({error}): restore it from a backup") from error


def _method_of(settings: RunSettings, last: Topics | None = None) -> tuple[Callable[..., Any], Any]:
    """Return the training function and its configuration."""
    module, function, config = entry_of(settings.method)
    train = getattr(importlib.import_module(module), function)
    if last is not None:
        train = train_from(last, train, importlib.import_module(module).continue_from)
    return (_then_choose(train) if settings.chooses else train), config


def _then_choose(train: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that trains, then lets each party choose the model that it keeps."""

    def both(fed: Any, method: Any, state: Any) -> Any:
        result = train(fed, method, state)
        model_choice.let_choose(fed, method, result)
        return result

    return both


def terms_of(settings: RunSettings) -> Terms:
    """Return the terms of participation."""
    federation = settings.federation
    return Terms(
        quorum=federation.quorum,
        timeout=federation.timeout,
        on_failure=federation.on_failure,
        max_documents=federation.max_documents,
        dropouts=Dropouts(federation.dropouts.rate, settings.seed, federation.dropouts.script),
        membership={name: Membership(own.joins, own.leaves) for name, own in settings.parties.items()},
    )
