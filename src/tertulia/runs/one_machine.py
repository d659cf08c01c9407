"""A federation on one machine, where one user owns all parties, lays them out, and may read their files.

In a federation of organisations each party lays itself out, and the server neither writes nor reads a party's
directory. So the driver, which is the server's side, uses nothing of this module. These functions act for the parties'
owner: they write configs, policies and documents before a run, and open ledgers and kept models after it.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tertulia._disk import private_directory, private_file, write_line
from tertulia._locks import NAME as LOCK
from tertulia._locks import directory_lock
from tertulia.corpus import Corpus, TextOptions
from tertulia.corpus.recipes import read_recipe
from tertulia.errors import ConfigError, PolicyRefusal, TertuliaError
from tertulia.federation.engines.base import check_starts_here
from tertulia.federation.identity.keys import Key, fingerprint, new_key, public_der, sign
from tertulia.federation.method_modules import pins_of
from tertulia.federation.party import failures
from tertulia.federation.party.door import policy_path_or_none
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.federation.party.member_keys import make_run_keys
from tertulia.federation.party.reader import PartyReader
from tertulia.federation.plan import Plan
from tertulia.federation.server.journal import Journal
from tertulia.methods.common import model_choice
from tertulia.models import Topics, storage
from tertulia.privacy.home import LEDGER
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.policy import Policy
from tertulia.runs.budgets import check_budgets
from tertulia.runs.directory import Run
from tertulia.runs.documents import POOLED, sources_of
from tertulia.runs.driver import Observer, finish
from tertulia.runs.party_layout import best_at_home, choice_in, party_config
from tertulia.runs.plan import modules_of, plan_of
from tertulia.runs.present_documents import pool_documents, present_documents
from tertulia.runs.results import FederatedTopics
from tertulia.runs.settings import PartySettings, RunSettings
from tertulia.runs.start_model import copy_start, find_model, go_on


def run_on_one_machine(
    settings: RunSettings, corpora: Mapping[str, Corpus], *, durable: bool = True, observe: Observer | None = None
) -> Any:
    """Begin and finish a run; the model comes with the choices of each party."""
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

    An earlier run in the directory is replaced if none of its rounds ended, or if `fresh` is set.
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
            check_budgets(settings, party, policy, _documents(party, sources, corpora))
    roster = {party: new_key() for party in parties} if settings.federation.secure else {}
    fingerprints = {party: fingerprint(key.public_key()) for party, key in roster.items()}
    plan = plan_of(settings, parties, fingerprints, start="" if last is None else storage.fingerprint(last))
    if settings.federation.owners == "several" and not plan.steps:
        raise ConfigError(
            f"method '{plan.method}' has no `plan(config)`: between several owners parties answer only what is planned"
        )
    with directory_lock(Path(settings.directory)):
        make_room(Path(settings.directory), fresh, say)
        run = Run.new(Path(settings.directory), parties, settings.model_dump(mode="json"), durable)
        run = replace(run, pins=pins_of(modules_of(settings)), keys=fingerprints)
        if last is not None:
            copy_start(last, run.directory)
        for party in parties:
            _lay_out(run, party, settings, sources.get(party), plan, _documents(party, sources, corpora))
            if corpora is not None and (durable or settings.engine != "local" or party == POOLED):
                present_documents(settings, party, corpora[party]).save(run.party_directory(party) / "corpus")
        for party, key in roster.items():
            _make_run_keys(run, party, key, plan, last)
        run.save()  # last: a directory with run.json is complete
    return run


def _make_run_keys(run: Run, party: str, key: Key, plan: Plan, last: Path | None) -> None:
    """Make a party's keys for secure sums, signed by its roster key, which in a simulation is not kept."""
    words = () if last is None else Topics.load(last).vocabulary.words
    make_run_keys(
        run.party_directory(party), party, run.id, plan.hash, public_der(key), partial(sign, key), durable=run.durable,
        start_words=words,
    )  # fmt: skip


def policy_or_none(settings: RunSettings, party: str) -> Policy | None:
    """Load a party's policy, if it has one, so that a broken policy is reported before the run begins."""
    own = settings.parties.get(party, PartySettings())
    if own.policy is None:
        return None
    policy = Policy.load(own.policy)
    policy.check_home(party, own.home)
    return policy


def _documents(
    party: str, sources: Mapping[str, dict[str, Any]], corpora: Mapping[str, Corpus] | None
) -> Callable[[], Corpus]:
    """Return a function that reads a party's documents."""
    return lambda: corpora[party] if corpora is not None else read_recipe(sources[party])


def _lay_out(
    run: Run, party: str, settings: RunSettings, source: dict[str, Any] | None, plan: Plan,
    documents: Callable[[], Corpus],
) -> None:  # fmt: skip
    """Give a party its directory."""
    own = settings.parties.get(party, PartySettings())
    directory = private_directory(run.party_directory(party))
    if own.policy:
        shutil.copyfile(own.policy, private_file(directory / "policy.toml"))
    config = party_config(run.id, party, settings, source, plan)
    if not _has_room(directory, party, settings, documents):
        config = replace(config, plan=None)
    replace(config, durable=run.durable).save(directory)


def _has_room(directory: Path, party: str, settings: RunSettings, documents: Callable[[], Corpus]) -> bool:
    """Return whether the party's budgets have room for the whole run, where parties have several owners.

    If not, the party agrees to no plan. It then refuses every question, and is charged nothing for a run that it could
    not finish. The reason goes to its own log; the server hears the name of a rule.
    """
    owners = settings.federation.owners
    path = policy_path_or_none(directory, settings.parties.get(party, PartySettings()).home, owners)
    if owners == "several" and path is not None:
        try:
            check_budgets(settings, party, Policy.load(path), documents)
        except PolicyRefusal as refusal:
            write_line(directory / failures.LOG, "warning", f"agrees to no plan: {refusal}")
            write_line(directory / failures.REFUSALS, "warning", refusal.rule)
            return False
    return True


def open_party(run: Run, party: str) -> PartyHost:
    """Open a party of a run, as its owner: its config, policy, ledger and documents."""
    return PartyHost(run.party_directory(party))


def hosts_of(run: Run) -> list[PartyHost]:
    """Open all parties of a run for reading; no file of theirs is made or changed."""
    return [PartyReader(run.party_directory(party)) for party in run.parties]


def choice_or_none(run: Run, party: str) -> model_choice.Choice | None:
    """Return the choice of a party, if it had documents to choose by."""
    provenance = {"method": run.config["method"]["name"], "run": run.id, "party": party}
    return choice_in(run.party_directory(party), provenance, TextOptions.from_dict(run.config["text"]))


def best_for(directory: str | Path, party: str) -> Topics:
    """Read the model that a party of a finished run has chosen for its own documents.

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


_RUN = "run.json"


def load(path: str | Path) -> Topics:
    """Load a model: a saved one, the one of a run, or the one that a party of a run has chosen.

    >>> load("runs/hospitals").top_words()  # doctest: +SKIP
    """
    place = Path(path)
    if not (place / "party.json").exists():
        return Topics.load(place / "model" if (place / _RUN).exists() else place)
    run = place.resolve().parents[1]  # of a party's directory in it
    return best_for(run, PartyConfig.load(place).id) if (run / _RUN).exists() else best_at_home(place)


def make_room(directory: Path, fresh: bool, say: Callable[[str], None]) -> None:
    """Clear a directory for a new run, if its run has no commit, or if `fresh` is set.

    Ledgers with entries are moved aside, never removed: they say what has left. The caller holds the directory's lock.
    """
    if not (directory / _RUN).exists():
        return
    if not fresh and Journal(directory / "server").rounds():
        return  # `Run.new` says what to do
    inside = [path for path in directory.iterdir() if path.name != LOCK]
    if not fresh and not _has_charges(directory):
        for path in inside:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        say(f"{directory}: the run that was begun here never ended a round, and nothing has left: it begins again")
        return
    aside = _free_name(directory)
    aside.mkdir()
    for path in sorted(inside, key=lambda path: path.name == _RUN):  # last: a crash leaves a run
        path.rename(aside / path.name)
    say(f"{directory} begins again; the run that was here, with its ledgers, is in {aside}")


def _has_charges(directory: Path) -> bool:
    """Return whether anything may have left a party of this run; an unreadable ledger counts as yes."""
    try:
        return any(Ledger(path).releases() for path in directory.glob(f"parties/*/{LEDGER}"))
    except TertuliaError:
        return True


def _free_name(directory: Path) -> Path:
    """Return the directory's name with the first free number."""
    number = 1
    while (name := directory.with_name(f"{directory.name}.{number}")).exists():
        number += 1
    return name
