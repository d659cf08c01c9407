"""The directory of a federation at its server: `tertulia init` makes it, `tertulia serve` works in it.

federation.toml           the operator's: who, where, what is trained, on which terms
authority/                the keys that sign certificates; members.json says who is admitted
invitations/              one file for each member, to be sent to it
proposal.json             the run that parties are asked to approve; approvals.json says who has
runs/<run>/               a run that was started; it holds no party's directory
status.json, server.log   the state and the log of `tertulia serve`

It holds nothing that belongs to a party: no path, no policy, no document.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from tertulia._disk import atomic_write, private_directory
from tertulia._toml import toml_value
from tertulia.errors import ConfigError
from tertulia.federation.identity.authority import Authority
from tertulia.federation.identity.invitations import Invitation
from tertulia.federation.identity.keys import member_name
from tertulia.federation.identity.members import Members
from tertulia.federation.plan import MIN_SUMMED
from tertulia.methods.registry import CustomSettings
from tertulia.runs.settings import (
    OperatorSettings,
    RunSettings,
    Statement,
    TermsSettings,
    TrainingSettings,
    anchor_method,
    read_settings,
)

FILE = "federation.toml"
_COMMANDS = {
    "grpc": "its commands are `tertulia serve` and `tertulia start`",
    "nvflare": "NVIDIA FLARE has its members and keys, and `tertulia nvflare supervise` its runs",
}
PORT = 7433
_EVERYWHERE = "0.0.0.0"  # noqa: S104  callers must show a certificate


def split_address(address: str) -> tuple[str, int]:
    """Split an address into host and port.

    >>> split_address("topics.example.org:7433"), split_address("[::1]:7433")
    (('topics.example.org', 7433), ('::1', 7433))
    """
    host, _, port = address.rpartition(":")
    if not host.strip("[]") or not port.isdecimal() or not 0 < int(port) < 1 << 16 or ("[" in host) != (":" in host):
        raise ConfigError(f"'{address[:100]}' is no address: write host:port, such as topics.example.org:{PORT}")
    return host.strip("[]"), int(port)


def _address(value: str) -> str:
    try:
        split_address(value)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return value


Address = Annotated[str, AfterValidator(_address)]


class NetworkTerms(TermsSettings):
    """The terms on which organisations meet."""

    on_failure: Literal["stop", "skip"] = Field(
        "skip",
        description="what to do when a party's step fails, or its reply cannot be: go on without the party in this "
        "round, or stop the run until it is started again",
    )
    absent_after: float = Field(
        30.0, gt=0, description="seconds for which a party may be out of reach before a question goes on without it"
    )


class FederationFile(TrainingSettings):
    """A federation of organisations, as its operator describes it."""

    name: str = Field(description="what the federation is called")
    address: Address = Field(description="`host:port` that parties dial; the server's certificate is for this host")
    listen: Address | None = Field(
        None,
        description="`host:port` that the server listens on; None: the same port, on all interfaces unless `address` "
        "is this machine alone",
    )
    engine: Literal["grpc", "nvflare"] = Field(
        "grpc", description="what carries the questions: our own server, or NVIDIA FLARE, see docs/nvflare.md"
    )
    reason: Statement = Field("", description="of the next run; `tertulia start --reason` writes it here")
    members: tuple[str, ...] = Field(min_length=1, description="the parties, in the order in which results are added")
    terms: NetworkTerms = Field(NetworkTerms(), description="the terms on which organisations meet")

    @field_validator("members")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for member in value:
            try:
                member_name(member)
            except ConfigError as error:
                raise ValueError(str(error)) from None
            if value.count(member) > 1:
                raise ValueError(f"'{member}' is named twice, and a name is one party's")
        return value

    @field_validator("method")
    @classmethod
    def _between_organisations(cls, value: Any) -> Any:
        if value.pools:
            raise ValueError(f"method '{value.name}' brings all documents to one place: organisations keep theirs")
        if isinstance(value, CustomSettings):
            raise ValueError("a method of your own runs on one machine only so far: take one of the package's")
        return value

    @model_validator(mode="after")
    def _goes_on_over_our_own_server(self) -> Self:
        if self.engine == "nvflare" and self.start_from is not None:
            raise ValueError("a run inside NVIDIA FLARE starts afresh: leave `start_from` out, or use engine 'grpc'")
        return self

    @property
    def listens_on(self) -> str:
        """The address that the server listens on."""
        if self.listen is not None:
            return self.listen
        host, port = split_address(self.address)
        return self.address if _is_loopback(host) else f"{_EVERYWHERE}:{port}"

    def run_settings(self, directory: Path | str = "run") -> RunSettings:
        """Return the settings of a run."""
        training = {name: getattr(self, name) for name in TrainingSettings.model_fields}
        training["operator"] = self.operator.replace(reason=self.reason or self.operator.reason)
        terms = {name: getattr(self.terms, name) for name in TermsSettings.model_fields}
        federation = {**terms, "owners": "several"}
        return RunSettings(**training, federation=federation, directory=str(directory), engine=self.engine)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _anchor_all(raw: dict[str, Any], base: Path) -> None:
    anchor_method(raw.get("method"), base)


class FederationDirectory:
    """The directory of a federation at its server."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        if not (directory / FILE).exists():
            raise ConfigError(
                f"{directory} is not a federation's directory, for it has no {FILE}: `tertulia init {directory} "
                "--members north,south` makes one"
            )

    @property
    def file(self) -> FederationFile:
        """The operator's file, read now."""
        return read_settings(self.directory / FILE, FederationFile, _anchor_all)

    def check_engine(self, needed: str) -> None:
        """Raise `ConfigError` if a command is for federations that another engine carries."""
        if self.file.engine != needed:
            raise ConfigError(f"{self.directory} is not carried by '{needed}': {_COMMANDS[self.file.engine]}")

    @cached_property
    def authority(self) -> Authority:
        """The authority that signs certificates."""
        self.check_engine("grpc")
        return Authority.open(self.directory / "authority")

    @cached_property
    def members(self) -> Members:
        """The register of members."""
        return Members(self.directory)

    @property
    def runs(self) -> Path:
        """The directory of runs."""
        return private_directory(self.directory / "runs")

    @property
    def roster(self) -> tuple[str, ...]:
        """The members of the next run: those in the file, except for members that left or were revoked."""
        members = self.file.members
        self.members.add(members)
        return tuple(name for name in members if self.members.state(name) in ("invited", "joined"))

    def invite(self, member: str, days: float) -> Path:
        """Write an invitation, which can be used once; an older one becomes invalid."""
        file = self.file
        self.members.add([member])
        if self.members.state(member) == "joined":
            raise ConfigError(
                f"'{member}' has joined already: if it lost its key, `tertulia revoke {self.directory} {member}` first"
            )
        invitation: Invitation = self.authority.invite(member, file.address, file.name, days)
        self.members.note_invitation(member, invitation.serial, invitation.expires)
        path = private_directory(self.directory / "invitations") / f"{member}.invite"
        invitation.save(path)
        return path


def create(
    directory: Path, members: Sequence[str], address: str, days: float, stated: Mapping[str, str] | None = None
) -> list[Path]:
    """Make a federation's directory, and return the paths of its invitations.

    `stated` has the operator's statements. `federation.toml` is written after everything but the invitations.
    """
    if (directory / FILE).exists():
        raise ConfigError(f"{directory} holds a federation already: choose another name, or edit {directory / FILE}")
    name = directory.resolve().name
    try:
        member_name(name)
    except ConfigError as error:
        raise ConfigError(str(error).replace("a member", "a federation", 1)) from None
    text = template(name, members, _DIALLED.format(address=address), stated)
    operator = OperatorSettings(**(stated or {}))
    FederationFile(name=name, address=address, members=tuple(members), operator=operator)  # checks all settings
    try:
        authority = private_directory(directory) / "authority"
        if not (authority / "ca.pem").exists():  # else an earlier attempt has made it
            Authority.create(private_directory(authority), name)
        Members(directory).add(members)
        atomic_write(directory / FILE, text.encode())
    except OSError as error:
        raise ConfigError(f"{directory} cannot be written ({error.strerror}): choose a place that is yours") from error
    federation = FederationDirectory(directory)
    return [federation.invite(member, days) for member in members]


def template(name: str, members: Sequence[str], carried: str, stated: Mapping[str, str] | None = None) -> str:
    """Return a commented `federation.toml`; `carried` has the lines that say how parties are reached."""
    said = "\n".join(
        f"{key} = {toml_value(stated[key])}" if stated and key in stated else f'#{key} = ""     # not stated'
        for key in OperatorSettings.model_fields
        if key != "reason"  # a run's own
    )
    words, secure = _MASKED if len(members) >= MIN_SUMMED else _PLAIN
    return _TEMPLATE.format(
        name=name, carried=carried, members=json.dumps(list(members)), operator=said, words=words, secure=secure
    )


_DIALLED = """address = "{address}"      # that parties dial; the server's certificate is for this host
#listen = "0.0.0.0:7433"   # that the server listens on, if that differs"""

TOO_FEW = "masked sums need three members (of two, each could tell the other's part)"
_MASKED = (
    'vocabulary = { mode = "common" }   # words that several members have',
    "secure = true              # sums are masked: the server learns totals only, see docs/secure.md",
)
_PLAIN = (
    '#vocabulary = { mode = "public", words = "english" }',
    f"secure = false             # {TOO_FEW}",
)

_TEMPLATE = """# The federation "{name}": who trains what, on which terms. Parties see all but paths, and approve it.
# `tertulia start` pins what they have approved: what is edited here afterwards counts for the next run.

name = "{name}"
{carried}
members = {members}

seed = 0
heldout = 0.1              # the share of each party's documents that is only scored on

[method]                   # docs/reference.md lists every setting of every method
name = "consensus"
topics = 20
rounds = 8
#mode = "sound"            # with noise at the parties: a word can be denied; it needs a public word list, and no masks
#epsilon = 8.0
{words}

[text]
language = "en"

[operator]                 # parties approve this with the plan, and their officers read it
{operator}

[terms]
{secure}
quorum = 0.5               # the share of parties that must answer a question
absent_after = 30.0        # seconds for which a party may be out of reach before a question goes on without it
#timeout = 3600.0          # seconds that a party has for an answer
on_failure = "skip"        # or "stop"
"""
