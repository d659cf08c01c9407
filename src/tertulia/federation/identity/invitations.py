"""Invitations: a file with which one party can join, once, within a few days.

It holds the certificate of the federation's authority, which pins the server's identity, and a key with a certificate
that permits only to request the party's own certificate.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia._kinds import check_fields
from tertulia.errors import FormatError, InputError
from tertulia.federation.identity import keys

INVITATION = "invitation"  # the name in its certificate
_MARK, _FORMAT = "tertulia-invitation", 1
_MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class Invitation:
    """The file that an invited party receives."""

    federation: str
    member: str
    address: str  # host:port of the server
    ca_pem: bytes
    key_pem: bytes
    certificate_pem: bytes
    expires: datetime

    @property
    def serial(self) -> str:
        """The serial number by which the server knows the invitation."""
        return f"{keys.read_certificate(self.certificate_pem).serial_number:x}"

    def save(self, path: Path) -> None:
        """Write the file, readable by its owner only: anybody who can read it can join."""
        facts = {name: v.decode() if isinstance(v, bytes) else v for name, v in asdict(self).items()}
        facts["expires"] = self.expires.isoformat()
        atomic_write(path, json.dumps({_MARK: _FORMAT, **facts}, indent=1).encode())

    @classmethod
    def load(cls, path: Path) -> Invitation:
        """Read an invitation that is still valid."""
        facts = _read(path)
        try:
            pems = {name: facts.pop(name).encode() for name in ("ca_pem", "key_pem", "certificate_pem")}
            expires = datetime.fromisoformat(facts.pop("expires"))
            invitation = cls(**facts, **pems, expires=expires)
            check_fields(cls, vars(invitation))
            keys.member_name(invitation.member)
            keys.read_key(invitation.key_pem)
            for pem in (invitation.ca_pem, invitation.certificate_pem):
                keys.read_certificate(pem)
            late = expires < keys.now()
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise FormatError(f"{path} is a damaged invitation: ask the operator to send it again") from error
        if late:
            raise InputError(f"the invitation {path} expired on {expires:%Y-%m-%d}: ask the operator for a new one")
        return invitation


def _read(path: Path) -> dict[str, Any]:
    """Read the fields of an invitation's file."""
    try:
        with path.open("rb") as file:
            facts: dict[str, Any] = json.loads(file.read(_MOST_BYTES))
        version = facts.pop(_MARK)
    except OSError as error:
        raise InputError(f"cannot read the invitation {path} ({error.strerror})") from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise FormatError(f"{path} is not an invitation: use the file that the operator has sent") from error
    if version != _FORMAT:
        raise FormatError(
            f"{path} is an invitation of format {version!r}, this version reads {_FORMAT}: both sides need one version "
            "of tertulia"
        )
    return facts
