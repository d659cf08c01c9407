"""A party looks at what is proposed, with its own software, before it says yes: what would be read, and what leave.

Nothing that the server says is believed: the plan is made here from the settings, and its hash, which names every
member's key, is what is approved. Whatever is asked under another hash is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tertulia._disk import private_directory
from tertulia.corpus import TextOptions
from tertulia.corpus.recipes import read_recipe
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.federation.identity.keys import spoken
from tertulia.federation.party.host import PartyConfig
from tertulia.models import Topics
from tertulia.privacy.policy_lines import lines_needed
from tertulia.runs.budgets import announced, check_budgets, planned_releases
from tertulia.runs.config import RunSettings
from tertulia.runs.continuing import START
from tertulia.runs.fetching import write_files
from tertulia.runs.membership import PartyDirectory
from tertulia.runs.party_layout import party_config
from tertulia.runs.proposals import Proposal
from tertulia.runs.sources import sources_of
from tertulia.runs.starting import NOT_SEEN, open_start

_CAPS = {"topics": "max_topics", "rounds": "max_rounds", "sweeps": "max_sweeps", "start_sweeps": "max_sweeps"}


@dataclass(frozen=True)
class Consideration:
    """A proposal as one party sees it."""

    party: PartyDirectory
    proposal: Proposal
    start: Topics | None = None  # the model that the run would begin with, once it was looked at
    start_files: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, party: PartyDirectory, data: bytes) -> Consideration:
        """Look at what the server sent; raise an error if it is not for this party, or is beyond what it offers."""
        file, proposal = party.file, Proposal.from_bytes(data)
        if proposal.federation != file.federation:
            raise ConfigError(f"the server proposes a run of '{proposal.federation[:100]}', not of '{file.federation}'")
        if file.name not in proposal.roster:
            raise ConfigError(f"the next run is without '{file.name}': ask the operator why it is not on the roster")
        if proposal.keys.get(file.name) != party.shown.fingerprint:
            raise ConfigError(
                "the server names a key for this party that is not the one that it has: unless a run is "
                "under way that was agreed before this party joined anew, call the operator; nothing was approved"
            )
        settings = proposal.run_settings
        if settings.federation.owners != "several":
            raise ConfigError("the server proposes a simulation, where one owner has all parties: do not approve")
        if settings.method.name not in file.methods:
            offered = ", ".join(file.methods)
            raise ConfigError(
                f"this party does not offer the method '{settings.method.name}', which is proposed: its file offers "
                f"{offered}"
            )
        return cls(party, proposal)

    def with_start(self, data: bytes) -> Consideration:
        """The same with the model that the run would begin with, if what the server sent for it can be that."""
        options = TextOptions.from_dict(self.proposal.run_settings.text)
        files, start = open_start(data, self.proposal.start["hash"], self.party, options)
        return replace(self, start=start, start_files=files)

    @property
    def name(self) -> str:
        """The party's."""
        return self.party.file.name

    @property
    def run_directory(self) -> Path:
        """Where the run is, or would be, at this party."""
        return self.party.runs / self.proposal.run

    @cached_property
    def settings(self) -> RunSettings:
        """The run as this party would see it: with itself, and no other party."""
        own = {self.name: self.party.own_settings()}
        return self.proposal.run_settings.replace(parties=own, directory=str(self.run_directory))

    def lines_needed(self) -> dict[str, Any]:
        """The settings that this party's policy lacks for the plan."""
        policy = self.party.policy
        return lines_needed(policy, planned_releases(announced(self.settings, self.name, policy), self.name))

    def check(self) -> None:
        """Raise an error unless policy and budgets have room for the whole plan; nothing has been charged by then."""
        if self.proposal.start and self.start is None:
            raise ConfigError(NOT_SEEN)
        policy, method = self.party.policy, self.proposal.run_settings.method
        epsilon = getattr(self.party.file.choices, "epsilon", None)
        if epsilon is not None and getattr(method, "epsilon", None) is None:
            raise PolicyRefusal(
                "the party's own epsilon", f"[choices] has epsilon = {epsilon:g}, and the plan has no noise: ask for a "
                "private mode, or take the line out"
            )  # fmt: skip
        for name, rule in _CAPS.items():
            asked, most = getattr(method, name, None), getattr(policy, rule)
            if isinstance(asked, int) and asked > most:
                raise PolicyRefusal(rule, f"the plan has {name} = {asked}, and the policy allows {most}")
        check_budgets(self.settings, self.name, policy)

    def keys(self) -> list[dict[str, str]]:
        """Every member's key, for the telephone."""
        return [
            {"member": member, "key": spoken(self.proposal.keys[member]), "": "this party" * (member == self.name)}
            for member in self.proposal.roster
            if member in self.proposal.keys
        ]

    def lay_out(self) -> Path:
        """Give the run a directory, with the documents as they are now; one that it has already stays."""
        directory, plan = self.run_directory, self.proposal.own_plan
        if (directory / "party.json").exists():
            if PartyConfig.load(directory).plan is None:
                raise ConfigError(f"run {self.proposal.run} was forgotten here: a new run needs a new proposal")
            return directory
        source = sources_of(self.settings)[self.name]
        if not (directory / "corpus" / "corpus.json").exists():
            read_recipe(source, directory / "corpus")
        if self.start_files:
            write_files(private_directory(directory / START), self.start_files)
        party_config(self.proposal.run, self.name, self.settings, source, plan).save(directory)
        return directory

    def approval(self) -> bytes:
        """What is sent: the run, and the hash of the plan that was made here."""
        return json.dumps({"run": self.proposal.run, "plan": self.proposal.own_plan.hash}).encode()
