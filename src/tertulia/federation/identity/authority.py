"""The federation's own certificate authority: it signs the certificates of the server, of invitations and of members.

A server's certificate is valid for servers only, a member's for clients only, so that neither can pose as the other.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from tertulia.errors import ConfigError, FormatError
from tertulia.federation.identity import keys
from tertulia.federation.identity.invitations import INVITATION, Invitation

_AUTHORITY = timedelta(days=20 * 365)  # lifetime of the authority's certificate
_SERVER, _LEFT = timedelta(days=365), timedelta(days=30)  # lifetime of the server's, and when it is renewed
_REMEDY = "restore it from a backup, or make a new federation with `tertulia init`"


class Authority:
    """The authority of one federation, stored in a folder of the server."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._key = keys.read_key(keys.read_private(directory / "ca.key.pem", _REMEDY), directory / "ca.key.pem")
        self.certificate_pem = keys.read_private(directory / "ca.pem", _REMEDY)
        self._certificate = keys.read_certificate(self.certificate_pem, directory / "ca.pem")
        if keys.fingerprint(self._certificate) != keys.fingerprint(self._key.public_key()):
            raise FormatError(f"{directory}: ca.pem is not the certificate of ca.key.pem: {_REMEDY}")

    @classmethod
    def create(cls, directory: Path, federation: str) -> Authority:
        """Create the authority of a new federation."""
        if (directory / "ca.pem").exists():
            raise ConfigError(f"{directory} holds an authority already: its members would lose theirs; choose another")
        key = keys.new_key()
        name = keys.subject(f"authority of {federation}"[: keys.MOST_LETTERS])
        start = keys.now() - keys.SKEW
        certificate = (
            x509.CertificateBuilder(
                name, name, key.public_key(), x509.random_serial_number(), start, start + _AUTHORITY
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        keys.write_private(directory / "ca.key.pem", keys.pem(key))
        keys.write_private(directory / "ca.pem", _pem(certificate))
        return cls(directory)

    @classmethod
    def open(cls, directory: Path) -> Authority:
        """Open the authority of a federation."""
        return cls(directory)

    def server_identity(self, hosts: Sequence[str]) -> tuple[bytes, bytes]:
        """Return the server's key and certificate; replace them a month before they expire, or when hosts change."""
        path = self.directory / "server.pem"  # both in one file, so that they always belong together
        alternatives = [_alternative(host) for host in hosts]
        if path.exists():
            key, certificate = keys.read_key(path.read_bytes(), path), keys.read_certificate(path.read_bytes(), path)
            if certificate.not_valid_after_utc - keys.now() > _LEFT and self._serves(certificate, alternatives):
                return keys.pem(key), _pem(certificate)
        key = keys.new_key()
        certificate = self._issue(key.public_key(), "server", _SERVER, alternatives)
        keys.write_private(path, keys.pem(key) + _pem(certificate))
        return keys.pem(key), _pem(certificate)

    def _serves(self, certificate: x509.Certificate, alternatives: list[x509.GeneralName]) -> bool:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return list(names) == alternatives and certificate.issuer == self._certificate.subject

    def invite(self, member: str, address: str, federation: str, days: float = 7.0) -> Invitation:
        """Make an invitation for one member; it permits one request for a certificate, and nothing else."""
        keys.member_name(member)
        key = keys.new_key()
        certificate = self._issue(key.public_key(), INVITATION, timedelta(days=days))
        return Invitation(
            federation, member, address, self.certificate_pem, keys.pem(key), _pem(certificate),
            certificate.not_valid_after_utc,
        )  # fmt: skip

    def sign(self, csr_pem: bytes, member: str, days: float = 365.0) -> bytes:
        """Sign a member's certificate, for the key that signed the request."""
        request = keys.read_request(csr_pem)
        if keys.name_of(request) != keys.member_name(member):
            raise FormatError("this request for a certificate is for another name")
        public = request.public_key()
        assert isinstance(public, ec.EllipticCurvePublicKey)
        return _pem(self._issue(public, member, timedelta(days=days)))

    def _issue(
        self,
        public: ec.EllipticCurvePublicKey,
        name: str,
        valid: timedelta,
        hosts: list[x509.GeneralName] | None = None,
    ) -> x509.Certificate:
        """Sign a certificate: a server's if hosts are given, else a client's."""
        start = keys.now()
        begins, ends = min(start, start + valid) - keys.SKEW, start + valid
        purpose = ExtendedKeyUsageOID.CLIENT_AUTH if hosts is None else ExtendedKeyUsageOID.SERVER_AUTH
        issuer, serial = self._certificate.subject, x509.random_serial_number()
        issuers_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            x509.CertificateBuilder(issuer, keys.subject(name), public, serial, begins, ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
            .add_extension(issuers_key, critical=False)
        )
        if hosts is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _alternative(host: str) -> x509.GeneralName:
    """Convert a host, an address or a name, to the form that certificates use."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host.encode("idna").decode())
    except UnicodeError:
        raise ConfigError(f"'{host[:100]}' is no host: write a name such as topics.example.org, or a number") from None


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
