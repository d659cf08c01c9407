"""A party's review of a proposal, with its own software, before it approves: what would be read, and what would leave.

The server is not trusted. The party makes the plan itself from the settings, and approves the plan's hash, which covers
every member's key. It refuses questions under another hash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tertulia._disk import private_directory
from tertulia.corpus import Corpus, TextOptions
from tertulia.corpus.recipes import read_recipe
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.federation.identity.keys import readable
from tertulia.federation.party.door import NOT_SECURE
from tertulia.federation.party.host import PartyConfig
from tertulia.federation.party.member_keys import make_run_keys
from tertulia.federation.party.withdrawn_documents import read_remaining
from tertulia.models import Topics
from tertulia.network.party.approvers import Approvers
from tertulia.network.party.party_directory import PartyDirectory
from tertulia.network.party.received_models import NOT_SEEN, is_fetched, open_start, write_files
from tertulia.network.proposals import Proposal
from tertulia.privacy.policy_lines import lines_needed
from tertulia.runs.budgets import announced, check_budgets, check_caps, planned_releases
from tertulia.runs.documents import sources_of
from tertulia.runs.party_layout import party_config
from tertulia.runs.present_documents import present_documents, withdrawals_of
from tertulia.runs.settings import RunSettings
from tertulia.runs.start_model import START


@dataclass(frozen=True)
class Review:
    """A proposal as one party sees it."""

    party: PartyDirectory
    proposal: Proposal
    start: Topics | None = None  # the model that the run would start from, once it was checked
    start_files: Mapping[str, bytes] = field(default_factory=dict)
    start_fetched: bool = False  # did this party fetch that very model before?

    @classmethod
    def of(cls, party: PartyDirectory, data: bytes) -> Review:
        """Decode and check a proposal; raise an error if it is not for this party, or is beyond what it offers."""
        file, proposal = party.file, Proposal.from_bytes(data)
        if proposal.federation != file.federation:
            raise ConfigError(f"the server proposes a run of '{proposal.federation[:100]}', not of '{file.federation}'")
        if file.name not in proposal.roster:
            raise ConfigError(f"the next run is without '{file.name}': ask the operator why it is not on the roster")
        if proposal.keys.get(file.name) != party.shown.fingerprint:
            raise ConfigError(
                "the server names a key for this party that is not the one that it has: unless a run is "
                "under way that was agreed before this party joined again, call the operator; nothing was approved"
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
        check_caps(settings.method, party.policy)
        return cls(party, proposal)

    @cached_property
    def corpus(self) -> Corpus:
        """The party's documents as they are now, without withdrawn ones."""
        return present_documents(self.settings, self.name, read_recipe(sources_of(self.settings)[self.name]))

    def with_start(self, data: bytes) -> Review:
        """Add the model that the run would start from; raise `ConfigError` if the proposal names another one."""
        options = TextOptions.from_dict(self.proposal.run_settings.text)
        run, named = self.proposal.start["run"], self.proposal.start["hash"]
        files, start = open_start(data, named, self.party, options)
        fetched = is_fetched(self.party, run, named)
        return replace(self, start=start, start_files=files, start_fetched=fetched)

    @property
    def name(self) -> str:
        """The party's name."""
        return self.party.file.name

    @property
    def run_directory(self) -> Path:
        """The directory of the run at this party."""
        return self.party.runs / self.proposal.run

    @cached_property
    def settings(self) -> RunSettings:
        """The run's settings with this party, and no other."""
        own = {self.name: self.party.own_settings()}
        return self.proposal.run_settings.replace(parties=own, directory=str(self.run_directory))

    @property
    def approvers(self) -> Approvers:
        """The people who must approve the plan."""
        return Approvers(self.party.policy, self.party.home, self.proposal.run, self.proposal.own_plan.hash)

    def lines_needed(self) -> dict[str, Any]:
        """Return the lines that this party's policy lacks for the plan."""
        policy = self.party.policy
        return lines_needed(policy, planned_releases(announced(self.settings, self.name, policy), self.name))

    def check(self) -> None:
        """Raise an error unless policy and budgets have room for the whole plan; nothing is charged."""
        if self.proposal.start and self.start is None:
            raise ConfigError(NOT_SEEN)
        if self.party.policy.require_secure and not self.proposal.run_settings.federation.secure:
            raise PolicyRefusal("require_secure", NOT_SECURE)
        policy, method = self.party.policy, self.proposal.run_settings.method
        epsilon = self.party.own_settings().own_epsilon
        if epsilon is not None and not method.has_noise:
            raise PolicyRefusal(
                "the party's own epsilon", f"[choices] has epsilon = {epsilon:g}, and the plan has no noise: ask for a "
                "private mode, or take the line out"
            )  # fmt: skip
        check_budgets(self.settings, self.name, policy, lambda: self.corpus)

    def keys(self) -> list[dict[str, str]]:
        """List every member's key, to be compared by telephone."""
        return [
            {"member": member, "key": readable(self.proposal.keys[member]), "": "this party" * (member == self.name)}
            for member in self.proposal.roster
            if member in self.proposal.keys
        ]

    def lay_out(self) -> Path:
        """Make the run's directory, with the documents as they are now; an existing one stays."""
        directory, plan = self.run_directory, self.proposal.own_plan
        self.approvers.check()
        if (directory / "party.json").exists():
            if PartyConfig.load(directory).plan is None:
                raise ConfigError(f"run {self.proposal.run} was forgotten here: a new run needs a new proposal")
            return directory
        source = sources_of(self.settings)[self.name]
        if not (directory / "corpus" / "corpus.json").exists():
            read_remaining(source, directory / "corpus", withdrawals_of(self.settings, self.name))
        if self.start_files:
            write_files(private_directory(directory / START), self.start_files)
        if plan.secure:
            roster_key, sign = self.party.signer()
            words = () if self.start is None else self.start.vocabulary.words
            make_run_keys(directory, self.name, self.proposal.run, plan.hash, roster_key, sign, start_words=words)
        party_config(self.proposal.run, self.name, self.settings, source, plan).save(directory)
        return directory

    def approval(self) -> bytes:
        """Encode the approval: the run, and the hash of the plan that was made here."""
        return json.dumps({"run": self.proposal.run, "plan": self.proposal.own_plan.hash}).encode()
