"""A federation on one machine: whoever rehearses owns all parties, lays them out, and may read what is theirs.

In a federation of organisations each party lays itself out, and the server neither writes nor reads a party's
directory. So the driver, which is the server's side, uses nothing of this module. What is here acts for the parties'
owner: it writes their configs, policies and documents before a run, and opens their ledgers and kept models after it.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from tertulia._disk import private_directory, private_file
from tertulia._locks import holding
from tertulia._logs import write_line
from tertulia.corpus import Corpus, TextOptions
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.federation.custom import pins_of
from tertulia.federation.engines.base import check_starts_here
from tertulia.federation.engines.local import LocalTransport
from tertulia.federation.messages import Inquiry
from tertulia.federation.party import failures
from tertulia.federation.party.door import policy_path_or_none
from tertulia.federation.party.host import PartyHost
from tertulia.federation.plan import Plan
from tertulia.federation.server.inquiries import inquire
from tertulia.methods.common import choosing
from tertulia.models import Topics, storage
from tertulia.privacy.policy import Policy
from tertulia.runs.budgets import check_budgets
from tertulia.runs.config import PartySettings, RunSettings
from tertulia.runs.continuing import copy_start, find_model, go_on
from tertulia.runs.driver import Observer, finish
from tertulia.runs.layout import Run
from tertulia.runs.making_room import make_room
from tertulia.runs.party_layout import choice_in, party_config
from tertulia.runs.plans import modules_of, plan_of
from tertulia.runs.results import FederatedTopics
from tertulia.runs.sources import POOLED, pool_documents, sources_of


def rehearse(
    settings: RunSettings, corpora: Mapping[str, Corpus], *, durable: bool = True, observe: Observer | None = None
) -> Any:
    """A whole run; the model comes with what each party has chosen for itself."""
    run = begin(settings, corpora, durable=durable)
    result = finish(run, corpora, observe)
    if settings.chooses and isinstance(result, FederatedTopics):
        choices = {party: choice_or_none(run, party) for party in run.parties}
        result.choices = {party: choice for party, choice in choices.items() if choice is not None}
    return result


def begin(
    settings: RunSettings,
    corpora: Mapping[str, Corpus] | None = None,
    *,
    durable: bool = True,
    fresh: bool = False,
    say: Callable[[str], None] = warnings.warn,
) -> Run:
    """Lay out a run's directory: each party gets one of its own with its documents, or with where to read them.

    A run that is there already may begin anew if no round of it ever ended, or if it shall (`fresh`).
    """
    check_starts_here(settings.engine)
    last = None if settings.start_from is None else find_model(Path(settings.start_from))
    if last is not None:
        settings = go_on(settings, Topics.load(last))
    if settings.method.pools:
        corpora = {POOLED: pool_documents(settings, corpora)}
    sources = sources_of(settings) if corpora is None else {}
    parties = tuple(corpora if corpora is not None else sources)
    strangers = set(settings.parties) - set(parties)
    if strangers and not settings.method.pools:
        raise ConfigError(f"there are settings for {sorted(strangers)}, but the parties are {sorted(parties)}")
    for party in parties:
        policy = policy_or_none(settings, party)
        if settings.federation.owners == "one":  # else a party's budget is its own affair: `_plan_within_budgets`
            check_budgets(settings, party, policy)
    plan = plan_of(settings, parties, start="" if last is None else storage.fingerprint(last))
    if settings.federation.owners == "several" and not plan.steps:
        raise ConfigError(
            f"method '{plan.method}' has no `plan(config)`: between several owners parties answer only what is planned"
        )
    with holding(Path(settings.directory)):
        make_room(Path(settings.directory), fresh, say)
        run = Run.new(Path(settings.directory), parties, settings.model_dump(mode="json"), durable)
        run = replace(run, pins=pins_of(modules_of(settings)))
        if last is not None:
            copy_start(last, run.directory)
        for party in parties:
            _lay_out(run, party, settings, sources.get(party), plan)
            if corpora is not None and (durable or settings.engine != "local" or party == POOLED):
                corpora[party].save(run.party_directory(party) / "corpus")
        run.save()  # last: a directory with run.json is complete
    return run


def policy_or_none(settings: RunSettings, party: str) -> Policy | None:
    """A party's own rules, if it has any; a broken policy is reported before a run begins, not in the middle of it."""
    own = settings.parties.get(party, PartySettings())
    if own.policy is None:
        return None
    policy = Policy.load(own.policy)
    policy.check_home(party, own.home)
    return policy


def _lay_out(run: Run, party: str, settings: RunSettings, source: dict[str, Any] | None, plan: Plan) -> None:
    """Give a party its directory."""
    own = settings.parties.get(party, PartySettings())
    directory = private_directory(run.party_directory(party))
    if own.policy:
        shutil.copyfile(own.policy, private_file(directory / "policy.toml"))
    config = party_config(run.id, party, settings, source, plan)
    if not _has_room(directory, party, settings):
        config = replace(config, plan=None)
    replace(config, durable=run.durable).save(directory)


def _has_room(directory: Path, party: str, settings: RunSettings) -> bool:
    """Whether the party's budgets have room for the whole run, where parties have several owners.

    If not, the party agrees to no plan: it refuses every question, so that nothing is charged for a run that it could
    not go through with. Why is for its own log; the server hears the name of a rule.
    """
    owners = settings.federation.owners
    path = policy_path_or_none(directory, settings.parties.get(party, PartySettings()).home, owners)
    if owners == "several" and path is not None:
        try:
            check_budgets(settings, party, Policy.load(path))
        except PolicyRefusal as refusal:
            write_line(directory / failures.LOG, "warning", f"agrees to no plan: {refusal}")
            write_line(directory / failures.REFUSALS, "warning", refusal.rule)
            return False
    return True


def open_party(run: Run, party: str) -> PartyHost:
    """A party of a run, opened by its owner: its config, policy, ledger and documents."""
    return PartyHost(run.party_directory(party))


def hosts_of(run: Run) -> list[PartyHost]:
    """All parties of a run."""
    return [open_party(run, party) for party in run.parties]


def ask_hosts(hosts: Sequence[PartyHost], about: str) -> dict[str, Any]:
    """What parties of one run, opened here, answer to an inquiry; the run may be in progress meanwhile."""
    with closing(LocalTransport(hosts)) as transport:
        return inquire(transport, Inquiry(hosts[0].config.run, about), None, warnings.warn)


def choice_or_none(run: Run, party: str) -> choosing.Choice | None:
    """What a party has chosen, if it had documents to choose by."""
    provenance = {"method": run.config["method"]["name"], "run": run.id, "party": party}
    return choice_in(run.party_directory(party), provenance, TextOptions.from_dict(run.config["text"]))


def best_for(directory: str | Path, party: str) -> Topics:
    """The model that a party of a finished run has chosen for its own documents, read from its directory.

    >>> best_for("runs/hospitals", "north").provenance["chosen"]  # doctest: +SKIP
    'mixture'
    """
    run = Run.open(Path(directory))
    if party not in run.parties:
        raise ConfigError(f"{directory} has no party '{party}': its parties are {sorted(run.parties)}")
    choice = choice_or_none(run, party)
    if choice is None:
        raise ConfigError(f"party '{party}' of {directory} has chosen no model: run with a share `validation`")
    return choice.best
