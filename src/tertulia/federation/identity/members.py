"""The register of members (`members.json`): who is invited, who has joined, and with which key.

Two processes may work on it, the server and an operator's command: each change is made on what the disk holds, and
whoever asks reads again what has changed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from cryptography import x509
from pydantic import ConfigDict, TypeAdapter, ValidationError

from tertulia._disk import atomic_write, private_directory
from tertulia._locks import taking_turns
from tertulia.errors import ConfigError, FormatError, Stranger
from tertulia.federation.identity import keys
from tertulia.federation.identity.invitations import INVITATION

State = Literal["invited", "joined", "left", "revoked"]

UNKNOWN = "this certificate is of no member of this federation"
EXPIRED = "this certificate has expired"
REVOKED = "this member's certificate was revoked"
LEFT = "this member has left the federation"
ANOTHER_KEY = "this member has another key now"
NOT_JOINED = "this member has not joined yet"
USED = "this invitation was used already"
NO_INVITATION = "this invitation is not known here, or has expired"
REASONS = frozenset({UNKNOWN, EXPIRED, REVOKED, LEFT, ANOTHER_KEY, NOT_JOINED, USED, NO_INVITATION})


@dataclass(frozen=True)
class Member:
    """What is known of one member."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    state: State = "invited"
    fingerprint: str = ""  # of the key that it uses
    renewed: str = ""  # of the key of a renewed certificate; the old one serves until this one is used
    invitation: str = ""  # the serial number of its last one
    expires: datetime | None = None  # that invitation


_REGISTER = TypeAdapter(dict[str, Member])


class Members:
    """The register, in a folder of the server's."""

    def __init__(self, directory: Path) -> None:
        self._path = private_directory(directory) / "members.json"
        self._lock = threading.Lock()
        self._seen: object = None  # what the file looked like when it was read
        self._members: dict[str, Member] = {}

    # --- what is known --------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """All members, in the federation's order."""
        return list(self._current())

    def state(self, name: str) -> State:
        """How far a member has come."""
        return self._find(name).state

    def fingerprint(self, name: str) -> str:
        """The fingerprint of a member's key; empty before it has joined."""
        return self._find(name).fingerprint

    def keys(self) -> dict[str, str]:
        """Who has joined, each with the fingerprint of its key."""
        return {name: member.fingerprint for name, member in self._current().items() if member.state == "joined"}

    def admits(self, certificate: x509.Certificate) -> str:
        """The member whose certificate this is; raise `Stranger` if there is none. The authority's word is not enough.

        The connection has proved that the caller has the key, and that the authority has signed.
        """
        name = keys.name_of(certificate)
        member = self._current().get(name)
        if member is None:
            raise Stranger(UNKNOWN)
        if member.state != "joined":
            raise Stranger({"revoked": REVOKED, "left": LEFT}.get(member.state, NOT_JOINED))
        shown = keys.fingerprint(certificate)
        if shown not in {member.fingerprint, member.renewed}:
            raise Stranger(ANOTHER_KEY)
        if certificate.not_valid_after_utc < keys.now():
            raise Stranger(EXPIRED)
        if shown == member.renewed:  # it has arrived: from now on the old key opens nothing
            self._change(name, lambda known: _promoted(known, shown))
        return name

    def invited_by(self, certificate: x509.Certificate) -> str:
        """The member that an invitation's certificate is for; raise `Stranger` if it opens nothing any more."""
        serial = f"{certificate.serial_number:x}"
        for name, member in self._current().items():
            if keys.name_of(certificate) == INVITATION and member.invitation == serial:
                return name
        raise Stranger(NO_INVITATION)

    # --- what changes ---------------------------------------------------------------------------------------------

    def add(self, names: Iterable[str]) -> None:
        """Take up new members, to be invited; those that are known stay as they are."""
        wanted = [keys.member_name(name) for name in names]
        if INVITATION in wanted:
            raise ConfigError(f"a member cannot be called '{INVITATION}': that is what invitations are called")
        with self._changing() as members:
            for name in wanted:
                members.setdefault(name, Member())

    def invited(self, name: str, serial: str, expires: datetime) -> None:
        """Note an invitation; an older one of this member opens nothing any more. Who was revoked may come back."""
        self._find(name)
        if self.state(name) == "joined":
            raise ConfigError(f"'{name}' has joined already: revoke its certificate before you invite it again")
        self._change(name, lambda known: Member("invited", invitation=serial, expires=expires))

    def enrol(self, name: str, invitation_serial: str, certificate: bytes | x509.Certificate) -> None:
        """Note a member's first certificate. An invitation serves one key: a repeat with that key changes nothing."""
        shown = keys.fingerprint(_read(certificate))

        def enrolled(known: Member) -> Member:
            if known.invitation != invitation_serial or known.expires is None or known.expires < keys.now():
                raise Stranger(NO_INVITATION)
            if known.state != "invited" and (known.state != "joined" or known.fingerprint != shown):
                raise Stranger(USED)
            return replace(known, state="joined", fingerprint=shown)

        self._change(name, enrolled)

    def certified(self, name: str, fingerprint: str) -> None:
        """Note a member whose key another authority has certified: it needs no invitation. Who was revoked stays so."""
        self._change(name, lambda known: known if known.state == "revoked" else Member("joined", fingerprint))

    def renew(self, name: str, certificate: bytes | x509.Certificate) -> None:
        """Note the key of a renewed certificate; it takes over when it is first used."""
        shown = keys.fingerprint(_read(certificate))
        self._change(name, lambda known: replace(known, renewed=shown if shown != known.fingerprint else ""))

    def revoke(self, name: str) -> None:
        """Let a member in no more, from this moment."""
        self._change(name, lambda known: replace(known, state="revoked"))

    def leave(self, name: str) -> None:
        """Note that a member has left by itself."""
        self._change(name, lambda known: replace(known, state="left"))

    # --- the file -------------------------------------------------------------------------------------------------

    def _find(self, name: str) -> Member:
        return _member(self._current(), name)

    def _current(self) -> dict[str, Member]:
        """The register as it is on the disk now; nobody changes what this returns."""
        with self._lock:
            try:
                found = self._path.stat()
            except FileNotFoundError:
                return {}
            look = (found.st_ino, found.st_mtime_ns, found.st_size)
            if look != self._seen:
                self._members, self._seen = self._load(), look
            return self._members

    def _load(self) -> dict[str, Member]:
        try:
            return _REGISTER.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise FormatError(f"cannot read {self._path} ({error.strerror})") from error
        except ValidationError as error:
            raise FormatError(f"{self._path} is damaged: restore it from a backup") from error

    def _change(self, name: str, change: Callable[[Member], Member]) -> None:
        """Replace what is known of a member, on the disk, before anybody else can."""
        with self._changing() as members:
            members[name] = change(_member(members, name))

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Member]]:
        with taking_turns(self._path.parent):
            members = self._load()
            before = dict(members)
            yield members
            if members != before:
                facts = {name: asdict(member) for name, member in members.items()}
                atomic_write(self._path, json.dumps(facts, indent=1, default=str).encode())


def _promoted(known: Member, shown: str) -> Member:
    return replace(known, fingerprint=shown, renewed="") if known.renewed == shown else known


def _member(members: dict[str, Member], name: str) -> Member:
    if name not in members:
        raise ConfigError(f"'{name[:100]}' is no member: the members are {', '.join(members) or 'not named yet'}")
    return members[name]


def _read(certificate: bytes | x509.Certificate) -> x509.Certificate:
    return certificate if isinstance(certificate, x509.Certificate) else keys.read_certificate(certificate)
