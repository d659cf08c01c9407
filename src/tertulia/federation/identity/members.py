"""The register of members (`members.json`): the state and the key of each member.

Two processes may use it, the server and an operator's command. Each change starts from the file on disk, and each
reader loads the file again after a change.
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
from tertulia._locks import brief_lock
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
    """The record of one member."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    state: State = "invited"
    fingerprint: str = ""  # of the key in use
    renewed: str = ""  # of the key of a renewed certificate; the old key is valid until this one is first used
    invitation: str = ""  # the serial number of the last invitation
    expires: datetime | None = None  # when that invitation does


_REGISTER = TypeAdapter(dict[str, Member])


class Members:
    """The register, in a folder of the server."""

    def __init__(self, directory: Path) -> None:
        self._path = private_directory(directory) / "members.json"
        self._lock = threading.Lock()
        self._seen: object = None  # inode, time and size of the file when it was read
        self._members: dict[str, Member] = {}

    # --- queries --------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The names of all members, in the federation's order."""
        return list(self._current())

    def state(self, name: str) -> State:
        """Return the state of a member."""
        return self._find(name).state

    def fingerprint(self, name: str) -> str:
        """Return the fingerprint of a member's key; empty before it has joined."""
        return self._find(name).fingerprint

    def keys(self) -> dict[str, str]:
        """Return the members that have joined, each with the fingerprint of its key."""
        return {name: member.fingerprint for name, member in self._current().items() if member.state == "joined"}

    def member_of(self, certificate: x509.Certificate) -> str:
        """Return the member whose certificate this is; raise `Stranger` if there is none.

        TLS has checked that the caller has the key, and that the authority has signed. That does not suffice: the
        member may have been revoked since.
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
        if shown == member.renewed:  # first use of the new key: the old key is valid no more
            self._change(name, lambda known: _promoted(known, shown))
        return name

    def invitee_of(self, certificate: x509.Certificate) -> str:
        """Return the member that an invitation is for; raise `Stranger` if the invitation is not valid."""
        serial = f"{certificate.serial_number:x}"
        for name, member in self._current().items():
            if keys.name_of(certificate) == INVITATION and member.invitation == serial:
                return name
        raise Stranger(NO_INVITATION)

    # --- changes --------------------------------------------------------------------------------------------------

    def add(self, names: Iterable[str]) -> None:
        """Add new members, to be invited; known members do not change."""
        wanted = [keys.member_name(name) for name in names]
        if INVITATION in wanted:
            raise ConfigError(f"a member cannot be called '{INVITATION}': that is what invitations are called")
        with self._changing() as members:
            for name in wanted:
                members.setdefault(name, Member())

    def note_invitation(self, name: str, serial: str, expires: datetime) -> None:
        """Record an invitation; it voids an older one. A member that was revoked may be invited again."""
        self._find(name)
        if self.state(name) == "joined":
            raise ConfigError(f"'{name}' has joined already: revoke its certificate before you invite it again")
        self._change(name, lambda known: Member("invited", invitation=serial, expires=expires))

    def enrol(self, name: str, invitation_serial: str, certificate: bytes | x509.Certificate) -> None:
        """Record a member's first certificate. An invitation is for one key; a repeat with that key changes nothing."""
        shown = keys.fingerprint(_read(certificate))

        def enrolled(known: Member) -> Member:
            if known.invitation != invitation_serial or known.expires is None or known.expires < keys.now():
                raise Stranger(NO_INVITATION)
            if known.state != "invited" and (known.state != "joined" or known.fingerprint != shown):
                raise Stranger(USED)
            return replace(known, state="joined", fingerprint=shown)

        self._change(name, enrolled)

    def note_certificate(self, name: str, fingerprint: str) -> None:
        """Record a key that another authority has certified, without an invitation. A revoked member stays revoked."""
        self._change(name, lambda known: known if known.state == "revoked" else Member("joined", fingerprint))

    def renew(self, name: str, certificate: bytes | x509.Certificate) -> None:
        """Record the key of a renewed certificate; its first use makes it the member's key."""
        shown = keys.fingerprint(_read(certificate))
        self._change(name, lambda known: replace(known, renewed=shown if shown != known.fingerprint else ""))

    def check_known(self, name: str) -> None:
        """Raise `ConfigError` unless there is such a member."""
        self._find(name)

    def revoke(self, name: str) -> None:
        """Refuse a member from now on."""
        self._change(name, lambda known: replace(known, state="revoked"))

    def leave(self, name: str) -> None:
        """Record that a member has left."""
        self._change(name, lambda known: replace(known, state="left"))

    # --- the file -------------------------------------------------------------------------------------------------

    def _find(self, name: str) -> Member:
        return _member(self._current(), name)

    def _current(self) -> dict[str, Member]:
        """Return the register as it is on disk; callers must not change it."""
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
        """Change the record of a member on disk, under the lock."""
        with self._changing() as members:
            members[name] = change(_member(members, name))

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Member]]:
        with brief_lock(self._path.parent):
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
