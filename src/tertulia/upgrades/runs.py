"""Runs of earlier versions, and parties' directories of runs: what is carried over, and whether a run can go on."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tertulia._disk import read_checked
from tertulia.errors import ConfigError, FormatError, TertuliaError
from tertulia.federation.codec import decode
from tertulia.federation.custom import OURS
from tertulia.federation.plan import Plan
from tertulia.federation.server import journal
from tertulia.runs import layout
from tertulia.runs.config import RunSettings
from tertulia.runs.former import carry_module, carry_settings
from tertulia.runs.plans import modules_of, plan_of
from tertulia.upgrades.homes import find_home
from tertulia.upgrades.items import AS_IT_IS, FileChange, Item, as_json, newer, read_json

_LOST = "it cannot be resumed, begin it anew; what left is in its parties' ledgers"


def look_at_run(directory: Path) -> list[Item]:
    """A run and the parties in its directory."""
    path = directory / "run.json"
    facts = read_json(path)
    version = facts.get("format")
    if isinstance(version, int) and version > layout.FORMAT:
        raise newer(path, version, layout.FORMAT)
    try:
        config = carry_settings(facts["config"])
        names = {layout.directory_name(party): str(party) for party in facts["parties"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{path} is damaged ({error}): restore it from a backup") from error
    except ConfigError as error:
        return [Item("run", directory, f"format {version}", f"{_LOST}: {error}")]
    parties = {name: _Party(directory / "parties" / name) for name in names}
    there = {name: party for name, party in parties.items() if (party.directory / "party.json").exists()}
    for name, party in there.items():
        party.carry()
        parties_of_config = config.get("parties")
        own = parties_of_config.get(names[name]) if isinstance(parties_of_config, dict) else None
        if isinstance(own, dict) and own.get("home") and party.facts.get("home"):
            own["home"] = party.facts["home"]
    why, settings = _settings_or_why(config)
    if settings is not None and not _is_finished(directory):
        why = why or _carry_plan(settings, facts, there.values())
        why = why or why_not_resumed(modules_of(settings), _states(directory, there.values()))
    changed = config != facts["config"]
    changes = (FileChange(path, as_json(facts | {"config": config})),) if changed else ()
    item = Item("run", directory, f"format {version}", _becomes(directory, changed, why), changes)
    return [item, *(party.item() for party in there.values())]


def look_at_party(directory: Path) -> Item:
    """A party's directory of a run, in a house of its own."""
    party = _Party(directory)
    party.carry()
    return party.item()


def _becomes(directory: Path, changed: bool, why: str | None) -> str:
    settings = "its settings have the names of now" if changed else AS_IT_IS
    if _is_finished(directory):
        return settings
    return f"{settings}; {_LOST}: {why}" if why else f"{settings}; it can be resumed"


def _is_finished(directory: Path) -> bool:
    return (directory / "model" / "model.json").exists()


def _settings_or_why(config: dict[str, Any]) -> tuple[str | None, RunSettings | None]:
    try:
        return None, RunSettings(**config)
    except (TertuliaError, TypeError) as error:
        return str(error), None


class _Party:
    """A `party.json`, as it is and as it will be."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.problem: str | None = None
        self.agreed: dict[str, Any] | None = None  # `agreed.json`, if it has to change

    def carry(self) -> None:
        """Find what has another name or place now."""
        self._before = read_json(self.directory / "party.json")
        self.facts = dict(self._before)
        methods, home = self.facts.get("methods"), self.facts.get("home")
        if isinstance(methods, list):
            self.facts["methods"] = [carry_module(str(name)) for name in methods]
        if isinstance(home, str) and not Path(home).is_absolute():
            places = (Path.cwd(), *self.directory.resolve().parents)
            try:
                self.facts["home"] = str(find_home(home, str(self.facts.get("run")), places))
            except FormatError as error:
                self.problem = str(error)

    @property
    def plan(self) -> Plan | None:
        """What the party has agreed to."""
        fields = self.facts.get("plan")
        return None if fields is None else Plan.from_dict(fields)

    def agree(self, plan: Plan) -> None:
        """The same plan as this version names it."""
        self.facts["plan"] = asdict(plan)
        path = self.directory / "agreed.json"
        if path.exists():
            self.agreed = read_json(path) | {"plan": plan.hash}

    def item(self) -> Item:
        """What becomes of it."""
        if self.problem is not None:
            why = f"cannot be carried over: {self.problem}"
            return Item("party", self.directory, "an earlier party.json", why, wrong=True)
        if self.facts == self._before:
            return Item("party", self.directory, "party.json", AS_IT_IS)
        changes = [FileChange(self.directory / "party.json", as_json(self.facts))]
        if self.agreed is not None:
            changes.append(FileChange(self.directory / "agreed.json", as_json(self.agreed)))
        differ = ", ".join(name for name, value in self.facts.items() if value != self._before.get(name))
        return Item("party", self.directory, "an earlier party.json", f"as now: {differ}", tuple(changes))


def _carry_plan(settings: RunSettings, facts: dict[str, Any], parties: Iterable[_Party]) -> str | None:
    """Name the plan as this version does, where it has settings that the plan does not speak of; else say why not."""
    if facts.get("keys"):  # each house has agreed to it, and no server may change it
        return None
    new = plan_of(settings, facts["parties"])
    for party in parties:
        old = party.plan
        if old is None or old.hash == new.hash:
            continue
        added = {name: value for name, value in new.settings.items() if name not in old.settings}
        if asdict(new) != asdict(old) | {"settings": {**old.settings, **added}}:
            return "this version would ask its parties for something else than they have agreed to"
        party.agree(new)
    return None


def _states(directory: Path, parties: Iterable[_Party]) -> list[Path]:
    """The files that a run goes on from: the server's last commit, and all answers."""
    commits = sorted((directory / "server").glob("commit-*.safetensors"))[-1:]
    return commits + [path for party in parties for path in sorted((party.directory / "answers").glob("*.safetensors"))]


def why_not_resumed(modules: Sequence[str], states: Sequence[Path]) -> str | None:
    """Why what a run goes on from cannot be read, if so. Of a user's own method nothing is imported, nor said."""
    if not all(module.startswith(OURS) for module in modules):
        return None
    for module in (journal.__name__, *modules):
        importlib.import_module(module)  # it defines what states are made of
    for path in states:
        try:
            decode(read_checked(path))
        except FormatError:
            return f"{path.name} is not written as this version writes it"
    return None
