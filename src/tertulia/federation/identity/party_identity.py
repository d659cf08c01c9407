"""A party's own identity: its key, which never leaves this folder, its certificate, and the authority that it trusts.

A crash between two writes leaves a valid identity: the certificate decides which of two keys is in use.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from tertulia.errors import ConfigError, FormatError
from tertulia.federation.identity import keys

_REMEDY = "join the federation with `tertulia join`, or restore it from a backup"


class Identity:
    """A party's identity; each property reads the folder again, as another process may renew the certificate."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._key, self._certificate = directory / "key.pem", directory / "certificate.pem"
        self._next = directory / "key.next.pem"  # of a pending renewal

    @classmethod
    def create(cls, directory: Path, member: str, ca_pem: bytes) -> bytes:
        """Make a key, or take one that has no certificate yet, and return a request for its certificate."""
        identity = cls(directory)
        if identity._certificate.exists():
            raise ConfigError(f"{directory} holds an identity already, that of '{identity.name}': choose another")
        keys.write_private(directory / "ca.pem", ca_pem)
        return keys.csr(identity._made(identity._key), keys.member_name(member))

    def accept(self, certificate_pem: bytes) -> None:
        """Store a certificate; it must be signed by the authority, for a key of this folder."""
        certificate = keys.read_certificate(certificate_pem)
        authority = keys.read_certificate(self.ca_pem, self.directory / "ca.pem")
        try:
            certificate.verify_directly_issued_by(authority)
        except (InvalidSignature, ValueError, TypeError):
            raise FormatError("the server sent a certificate that the federation's authority has not signed") from None
        if self._key_of(certificate) is None:
            raise FormatError("the server sent a certificate for another key than that of this party")
        if self._certificate.exists() and keys.name_of(certificate) != self.name:
            raise FormatError("the server sent a certificate for another name than that of this party")
        keys.write_private(self._certificate, certificate_pem)
        self._settle(certificate)

    @property
    def certificate_pem(self) -> bytes:
        """The party's certificate."""
        return keys.read_private(self._certificate, _REMEDY)

    @property
    def key_pem(self) -> bytes:
        """The certificate's key."""
        return self.credentials[0]

    @property
    def credentials(self) -> tuple[bytes, bytes]:
        """Key and certificate; they belong together even while another process renews them."""
        certificate_pem = self.certificate_pem
        certificate = keys.read_certificate(certificate_pem, self._certificate)
        key = self._key_of(certificate)
        if key is None:
            raise FormatError(f"{self._key} is not the key of {self._certificate}: restore both from a backup")
        return keys.pem(key), certificate_pem

    @property
    def ca_pem(self) -> bytes:
        """The authority that pins the server's identity."""
        return keys.read_private(self.directory / "ca.pem", _REMEDY)

    @property
    def name(self) -> str:
        """The name that the certificate is for."""
        return keys.name_of(self._shown())

    @property
    def fingerprint(self) -> str:
        """The fingerprint of this party's key."""
        return keys.fingerprint(self._shown())

    @property
    def expires(self) -> datetime:
        """When the certificate expires."""
        return self._shown().not_valid_after_utc

    @property
    def renewal_due(self) -> bool:
        """Whether less than a third of the certificate's lifetime is left."""
        shown = self._shown()
        return shown.not_valid_after_utc - keys.now() < (shown.not_valid_after_utc - shown.not_valid_before_utc) / 3

    def renewal(self) -> tuple[bytes, bytes]:
        """Return a request for the next certificate, with a new key, and its signature by the key in use."""
        self._settle(self._shown())
        request = keys.csr(self._made(self._next), self.name)
        return request, keys.sign_renewal(keys.read_key(self.key_pem), request)

    def _shown(self) -> x509.Certificate:
        return keys.read_certificate(self.certificate_pem, self._certificate)

    def _made(self, path: Path) -> keys.Key:
        """Read the key in a file; make the file if it is missing."""
        if not path.exists():
            keys.write_private(path, keys.pem(keys.new_key()))
        return keys.read_key(path.read_bytes(), path)

    def _key_of(self, certificate: x509.Certificate) -> keys.Key | None:
        """Return the key of this folder that a certificate is for."""
        wanted = keys.fingerprint(certificate)
        for path in (self._key, self._next, self._key):  # another process may rename the second to the first meanwhile
            try:
                key = keys.read_key(path.read_bytes(), path)
            except FileNotFoundError:
                continue
            if keys.fingerprint(key.public_key()) == wanted:
                return key
        return None

    def _settle(self, certificate: x509.Certificate) -> None:
        """Make the next key the key in use, if the certificate on disk is for it."""
        if self._next.exists():
            key = keys.read_key(self._next.read_bytes(), self._next)
            if keys.fingerprint(key.public_key()) == keys.fingerprint(certificate):
                self._next.replace(self._key)
