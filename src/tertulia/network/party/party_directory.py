"""A party's own directory: `tertulia join` makes it, `tertulia attend` works in it.

party.toml            the party's: where the server is, where its documents are, which methods it offers, its choices
policy.toml           what may leave; the server sees neither of these two
identity/             the key, which was made here and never travels, and its certificate; not where FLARE has them
ledger.sqlite         with the noise key: what left, in all runs; unless party.toml names another `home`
heads.json            beside it: sealed heads of other members' ledgers, which this party holds for them
proposal.json         what the operator proposes, put here by hand where FLARE carries the federation
runs/<run>/           a run that was approved: its plan, the documents as arrays, what was answered, the shared model
status.json           the state of `tertulia attend`
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field, create_model, field_validator

from tertulia._disk import atomic_write, private_directory, private_file
from tertulia._locks import directory_lock
from tertulia._toml import toml_value
from tertulia.errors import ConfigError
from tertulia.federation.identity import keys
from tertulia.federation.identity.invitations import Invitation
from tertulia.federation.identity.party_identity import Identity
from tertulia.federation.party.host import PartyConfig
from tertulia.methods.common.settings import Explained, Settings
from tertulia.methods.registry import METHODS
from tertulia.network.server.federation_directory import Address
from tertulia.privacy.policy import Policy, write_example
from tertulia.runs.documents import NO_SOURCE, SourceSettings
from tertulia.runs.settings import PartySettings, anchor, party_choices, read_settings

FILE, POLICY, PROPOSAL = "party.toml", "policy.toml", "proposal.json"
OFFERED = tuple(name for name, method in METHODS.items() if method.settings.federates)
FORGOTTEN = (
    "corpus",
    "answers",
    "kept",
    "words",
    "model",
    "model.part",
    "start",
    "secure",
)  # of a run, when it is forgotten

if TYPE_CHECKING:
    from tertulia.federation.engines.nvflare.kits import Kit

    Choices = Settings
else:
    Choices = create_model("Choices", __base__=Settings, __doc__="What a party chooses itself.", **party_choices())


class PartyFile(Explained):
    """A party of a federation, as it describes itself."""

    name: str = Field(description="the party's name, which its certificate is for")
    federation: str = Field(description="the federation's name")
    server: Address = Field(description="`host:port` of the server")
    methods: tuple[str, ...] = Field(OFFERED, description="the methods whose steps this party runs")
    home: str | None = Field(
        None,
        description="where its ledger, its noise key and its policy.toml are; None: beside this file",
        json_schema_extra={"path": ""},
    )
    kit: str | None = Field(
        None,
        description="the startup kit of this party's site, where NVIDIA FLARE carries the federation",
        json_schema_extra={"path": ""},
    )
    documents: SourceSettings = Field(SourceSettings(), description="where its documents are")
    choices: Choices = Field(Choices(), description="what a method lets each party choose, see `[parties.NAME]`")

    @field_validator("methods")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in OFFERED:
                raise ValueError(f"there is no method '{name}' to offer: use some of {', '.join(OFFERED)}")
        return value


def _anchor_all(raw: dict[str, Any], base: Path) -> None:
    anchor(raw, PartyFile, base)


class PartyDirectory:
    """The directory of a party."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        if not (directory / FILE).exists():
            raise ConfigError(
                f"{directory} is not a party's directory, for it has no {FILE}: `tertulia join INVITATION --directory "
                f"{directory}` makes one"
            )

    @property
    def file(self) -> PartyFile:
        """The party's file, read now."""
        return read_settings(self.directory / FILE, PartyFile, _anchor_all)

    @property
    def identity(self) -> Identity:
        """Key and certificate."""
        if (kit := self.file.kit) is not None:
            raise ConfigError(
                f"NVIDIA FLARE carries what {self.directory} answers, not a server of ours: {kit}/startup/start.sh "
                "starts its site, and docs/nvflare.md has the rest"
            )
        return Identity(self.directory / "identity")

    @property
    def kit(self) -> Kit | None:
        """The kit of its site, where NVIDIA FLARE carries the federation."""
        if (kit := self.file.kit) is None:
            return None
        from tertulia.federation.engines.nvflare.kits import Kit

        return Kit.open(Path(kit), "client")

    @property
    def shown(self) -> Identity | Kit:
        """The certificate that identifies this party, with a key's fingerprint and a date."""
        return self.kit or self.identity

    def signer(self) -> tuple[bytes, Callable[[bytes], bytes]]:
        """Return the public half of this party's roster key, and the function that signs with it."""
        key = keys.read_key(self.identity.key_pem) if self.kit is None else self.kit.private_key
        return keys.public_der(key), partial(keys.sign, key)

    def sent_proposal(self) -> bytes:
        """Read the proposal that the operator sent as a file."""
        path = self.directory / PROPOSAL
        if not path.exists():
            raise ConfigError(f"{path} is missing: put there the {PROPOSAL} that the operator sent")
        return path.read_bytes()

    @property
    def home(self) -> Path:
        """The directory of the ledger and the policy."""
        return Path(self.file.home or self.directory).resolve()

    @property
    def policy_path(self) -> Path:
        """The path of the policy."""
        return self.home / POLICY

    @property
    def policy(self) -> Policy:
        """The policy; without a file, one that allows nothing in clear."""
        return Policy.load(self.policy_path) if self.policy_path.exists() else Policy.closed()

    @property
    def runs(self) -> Path:
        """The directory of approved runs."""
        return private_directory(self.directory / "runs")

    def own_settings(self) -> PartySettings:
        """Return the party's settings of a run."""
        file = self.file
        if not file.documents.is_given:
            raise ConfigError(f"{self.directory / FILE}: [documents] has {NO_SOURCE.format('the')}")
        policy = str(self.policy_path) if self.policy_path.exists() else None
        chosen = {name: value for name, value in file.choices if value is not None}
        return PartySettings(**file.documents.source(), **chosen, policy=policy, home=str(self.home))

    def run_directories(self) -> list[Path]:
        """List the directories of approved runs, the newest last."""
        found = [(path.stat().st_mtime_ns, path.parent) for path in self.runs.glob("*/party.json")]
        return [directory for _, directory in sorted(found)]

    def refuse_runs(self) -> list[str]:
        """Withdraw the approval of every run: all questions under its plan are refused from now on."""
        approved = [path for path in self.run_directories() if PartyConfig.load(path).plan is not None]
        with directory_lock(self.home, wait=lambda text: None):  # no question is being answered
            for directory in approved:
                replace(PartyConfig.load(directory), plan=None).save(directory)
        return [path.name for path in approved]

    def run_directory(self, run: str) -> Path:
        """Return the directory of a run; raise `ConfigError` if there is no such run."""
        directory = self.runs / run
        if directory not in self.run_directories():
            known = ", ".join(path.name for path in self.run_directories()) or "none"
            raise ConfigError(f"'{run[:100]}' is no run of {self.directory}: its runs are {known}")
        return directory

    def forget(self, run: str) -> list[str]:
        """Remove a run's documents and answers; its releases and their cost stay in the ledger."""
        directory = self.run_directory(run)
        with directory_lock(self.home, wait=lambda text: None):  # no question is being answered
            # Without a plan the party answers no question of this run, even if a crash interrupts the removal.
            replace(PartyConfig.load(directory), plan=None, source=None).save(directory)
            gone = [name for name in FORGOTTEN if (directory / name).exists()]
            for name in gone:
                shutil.rmtree(directory / name)
        return gone


class Admission(NamedTuple):
    """A party's membership of a federation."""

    member: str
    federation: str
    address: str
    kit: Path | None = None


def settle(
    directory: Path, admission: Invitation | Admission, documents: Path | None, text: str,
    stated: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Write a party's files, once it has its certificate; `party.toml` is last, so a directory with it is complete."""
    policy = directory / POLICY
    if not policy.exists():
        write_example(policy, strict=True, record=stated)
    private_file(policy)
    source = [f"path = {toml_value(str(documents.resolve()))}"] if documents else ['#path = "documents.jsonl"']
    given = getattr(admission, "kit", None)
    kit = f"kit = {toml_value(str(given))}\n" if given else ""
    content = _TEMPLATE.format(
        name=toml_value(admission.member), federation=toml_value(admission.federation),
        server=toml_value(admission.address), kit=kit, methods=toml_value(OFFERED), path=source[0],
        text=toml_value(text),
    )  # fmt: skip
    atomic_write(directory / FILE, content.encode())


def empty_directory(directory: Path) -> Path:
    """Make a directory for a new party; raise `ConfigError` if it holds one, or cannot be written."""
    if (directory / FILE).exists():
        name = PartyDirectory(directory).file.name
        raise ConfigError(f"{directory} holds a party already, '{name}': choose another place with --directory")
    try:
        return private_directory(directory)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be written ({error.strerror}): choose a place that is yours") from error


_TEMPLATE = """# This party, for itself: the server never sees this file, nor policy.toml, which says what may leave.

name = {name}
federation = {federation}
server = {server}
{kit}methods = {methods}   # whose steps this party runs
#home = "."    # where ledger, noise key and policy.toml are: budgets last as long as this place does

[documents]    # docs/reference.md lists the rest: queries of databases, columns of ids, dates and labels, encodings
{path}
text = {text}

[choices]      # what the method lets each party choose; what is left out is as the plan says
#threads = 2
"""
