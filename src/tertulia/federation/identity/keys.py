"""Private keys, requests for certificates, fingerprints, and files that only their owner can read."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

from tertulia._disk import atomic_write, file_name, private_directory
from tertulia.errors import ConfigError, FormatError

Key = ec.EllipticCurvePrivateKey
MOST_LETTERS = 64  # of a name: the limit of certificates
MOST_PEM = 1 << 14  # bytes of a key, a certificate or a request
SKEW = timedelta(days=1)  # clocks may differ between organisations: certificates are valid from a day earlier
_CURVE = ec.SECP256R1()
_HASH = hashes.SHA256()
_PSS = padding.PSS(padding.MGF1(_HASH), padding.PSS.MAX_LENGTH)
_RENEWAL = b"tertulia renewal\0"  # domain separation: no other signature is valid for a renewal


def new_key() -> Key:
    """Generate a private key."""
    return ec.generate_private_key(_CURVE)


def member_name(name: str) -> str:
    """Return a valid name of a member; raise `ConfigError` for any other."""
    try:
        if len(file_name(name)) <= MOST_LETTERS:
            return name
    except FormatError:
        pass
    raise ConfigError(
        f"a member cannot be called {name[:100]!r}: use letters, digits, '_', '-' and '.', at most {MOST_LETTERS}"
    )


def subject(name: str) -> x509.Name:
    """Convert a name to a certificate's subject."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def name_of(certificate: x509.Certificate | x509.CertificateSigningRequest) -> str:
    """Return the name that a certificate or a request is for."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if len(names) == 1 else ""


def csr(key: Key, name: str) -> bytes:
    """Make a request for a certificate, signed by its own key."""
    made = x509.CertificateSigningRequestBuilder().subject_name(subject(name)).sign(key, _HASH)
    return made.public_bytes(serialization.Encoding.PEM)


def fingerprint(of: x509.Certificate | x509.CertificateSigningRequest | ec.EllipticCurvePublicKey) -> str:
    """Return the hash of a public key, which identifies the key in any certificate."""
    public = of if isinstance(of, ec.EllipticCurvePublicKey) else of.public_key()
    return hashlib.sha256(
        public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    ).hexdigest()


def readable(fingerprint: str) -> str:
    """Write a fingerprint in groups of four, to be read out on the telephone.

    >>> readable("0123456789ab")
    '0123 4567 89ab'
    """
    return " ".join(fingerprint[i : i + 4] for i in range(0, len(fingerprint), 4))


def sign_renewal(old: Key, request: bytes) -> bytes:
    """Sign a new key's request with the old key."""
    return old.sign(_RENEWAL + request, ec.ECDSA(_HASH))


def check_renewal(certificate: x509.Certificate, request: bytes, signature: bytes) -> None:
    """Raise `FormatError` unless a request for a renewal is signed by the key of the old certificate."""
    public = certificate.public_key()
    try:
        if not isinstance(public, ec.EllipticCurvePublicKey):
            raise InvalidSignature
        public.verify(signature, _RENEWAL + request, ec.ECDSA(_HASH))
    except InvalidSignature:
        raise FormatError("this request for a renewal is not signed by the old key") from None


def sign(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, data: bytes) -> bytes:
    """Sign with a roster key: one of ours, or an RSA key of a FLARE kit."""
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, _PSS, _HASH)
    return key.sign(data, ec.ECDSA(_HASH))


def verify(public_der: bytes, signature: bytes, data: bytes) -> None:
    """Raise `InvalidSignature` unless the holder of a public key has signed the data."""
    public = serialization.load_der_public_key(public_der[:MOST_PEM])
    if isinstance(public, ec.EllipticCurvePublicKey):
        public.verify(signature, data, ec.ECDSA(_HASH))
    elif isinstance(public, rsa.RSAPublicKey):
        public.verify(signature, data, _PSS, _HASH)
    else:
        raise InvalidSignature


def public_der(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    """Encode the public half of a key."""
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def fingerprint_of(public_der: bytes) -> str:
    """Return the fingerprint of an encoded public key."""
    return hashlib.sha256(public_der).hexdigest()


def pem(key: Key) -> bytes:
    """Encode a key for a file."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def read_key(data: bytes, where: object = "this key") -> Key:
    """Decode a key; an error names `where` it came from."""
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != _CURVE.name:
        raise FormatError(f"{where} is damaged, it holds no key of ours: restore it from a backup")
    return key


def read_certificate(data: bytes, where: object = "this certificate") -> x509.Certificate:
    """Decode a certificate, which must have a key of our kind; an error names `where` it came from."""
    try:
        certificate = x509.load_pem_x509_certificate(data[:MOST_PEM])
        public = certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        public = None
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise FormatError(f"{where} is damaged, it holds no certificate of ours: restore it from a backup")
    return certificate


def read_request(data: bytes) -> x509.CertificateSigningRequest:
    """Decode a request for a certificate; it must be signed by its own key."""
    try:
        request = x509.load_pem_x509_csr(data[:MOST_PEM])
        public = request.public_key()
        ours = isinstance(public, ec.EllipticCurvePublicKey) and public.curve.name == _CURVE.name
        if ours and request.is_signature_valid:
            return request
    except (ValueError, UnsupportedAlgorithm):
        pass
    raise FormatError("this is no request for a certificate, or its signature is wrong")


def now() -> datetime:
    """Return the time by which certificates are judged."""
    return datetime.now(UTC)


def write_private(path: Path, data: bytes) -> None:
    """Write a file atomically, in a folder that only its owner can enter."""
    private_directory(path.parent)
    atomic_write(path, data)


def read_private(path: Path, remedy: str) -> bytes:
    """Read such a file; the error for a missing one names the remedy."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{path} is missing: {remedy}") from None
    except OSError as error:
        raise FormatError(f"cannot read {path} ({error.strerror}): see who may read it") from error
