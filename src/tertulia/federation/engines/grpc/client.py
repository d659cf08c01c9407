"""A party's client: how it dials the server, its single calls (join, approve, fetch, leave), and their errors."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc

from tertulia.errors import ConnectionTrouble, FormatError
from tertulia.federation.engines.grpc import wire
from tertulia.federation.identity import keys, members
from tertulia.federation.identity.invitations import Invitation
from tertulia.federation.identity.party_identity import Identity

_REMEDIES = {
    members.UNKNOWN: "ask the operator whether this party is still a member",
    members.EXPIRED: "ask the operator to revoke it and to send a new invitation, then `tertulia join` again",
    members.REVOKED: "ask the operator why; with a new invitation `tertulia join` lets this party in again",
    members.LEFT: "to come back, ask the operator for a new invitation and `tertulia join` again",
    members.ANOTHER_KEY: "use the directory that joined last, or ask the operator to revoke that key and to invite "
    "this party again",
    members.NOT_JOINED: "join with the newest invitation, `tertulia join`",
    members.USED: "ask the operator for a new one; if you have not used it, somebody else has: tell the operator",
    members.NO_INVITATION: "ask the operator for a new one",
}
_ENDS = {
    wire.NONSENSE: "the server could not read what this party sent, and has ended the connection",
    wire.NEWER_STREAM: "another connection of this party has taken over: see that `tertulia attend` runs only once",
    wire.CLOSING: "the server is closing",
}
_NO_SERVER = "no server answers at {where}: see that `tertulia serve` runs there, and that the address is right"
_LINKS = {  # by a fragment of gRPC's text about a link that failed or broke
    "Hostname Verification": "the certificate of the server at {where} is not for '{host}': use the name that the "
    "operator gave, or ask the operator to add this one to federation.toml",
    "certificate has expired": "the certificate of the server at {where} has expired: check this machine's clock, or "
    "ask the operator",
    "not yet valid": "the certificate of the server at {where} is not valid yet: check this machine's clock",
    "CERTIFICATE_VERIFY_FAILED": "the server at {where} is not the one that invited this party: nothing was sent; "
    "check the address, and ask the operator",
    "WRONG_VERSION_NUMBER": "what answers at {where} does not speak TLS: check the address, and the proxy if there "
    "is one",
    "lookup": "there is no host called '{host}': check the address, and this machine's name server",
    "Socket closed": "the server at {where} has closed the link: see that this party's certificate is of that "
    "federation and valid by the server's clock, and whether the server is being restarted",
    "atchdog": "the link to {where} is dead: nothing has come back for too long",
    "ping timeout": "the link to {where} is dead: nothing has come back for too long",
}
_CODES = {
    "DEADLINE_EXCEEDED": "the server at {where} does not answer in time: try again later",
    "INTERNAL": "the server at {where} could not do this: ask the operator, its log has the reason",
    "UNIMPLEMENTED": "what answers at {where} is no tertulia server, or one of another version: check the address",
}
_NONSENSE = "the server at {where} cannot be understood: ask the operator"
OURS = wire.Hello()
_CONTROL = re.compile(r"[^\x20-\x7e\xa0-\U0010ffff]")
_LONGEST = 500  # characters of a server's sentence that are shown


class Refused(ConnectionTrouble):
    """The server refuses this party, and a retry would not help."""


class NoModel(ConnectionTrouble):
    """The server has no model of this run for this party, at least not yet."""


def open_channel(
    address: wire.Address, ca_pem: bytes, credentials: tuple[bytes, bytes], keepalive: wire.Keepalive
) -> Any:
    """Dial the server; nothing is sent before both sides have proved their identities."""
    options = wire.options(keepalive)
    if address.is_loopback:  # HTTP proxies are for other machines
        options.append(("grpc.enable_http_proxy", 0))
    if address.plain:
        return grpc.insecure_channel(address.target, options)
    key, certificate = credentials
    return grpc.secure_channel(address.target, grpc.ssl_channel_credentials(ca_pem, key, certificate), options)


def call_metadata(address: wire.Address, certificate_pem: bytes) -> tuple[tuple[str, bytes], ...]:
    """Return the metadata of every call: our version and, where there is no TLS, our certificate."""
    hello = ((wire.HELLO, OURS.to_bytes()),)
    return (*hello, (wire.CERTIFICATE, certificate_pem)) if address.plain else hello


def connection_error(error: Any, address: wire.Address) -> ConnectionTrouble:
    """Describe in one sentence how a call ended, with the remedy; `Refused` if a retry would not help."""
    code, details = error.code(), error.details() or ""
    if details == wire.OTHER_PROTOCOL:
        server = wire.Hello.read(error.trailing_metadata())
        return Refused(wire.difference_or_none(server, OURS) or "the server refuses this version of tertulia")
    if code == grpc.StatusCode.PERMISSION_DENIED:
        if details in _REMEDIES:
            return Refused(f"the server does not let this party in: {details}; {_REMEDIES[details]}")
        return Refused("the server does not let this party in: ask the operator why")
    where, host = address.target, address.host
    if code == grpc.StatusCode.UNAVAILABLE:
        sentence = next((text for fragment, text in _LINKS.items() if fragment in details), _NO_SERVER)
        return ConnectionTrouble(sentence.format(where=where, host=host))
    if code == grpc.StatusCode.FAILED_PRECONDITION:  # a text of the server's backend
        return NoModel(details) if details in wire.NO_MODEL else ConnectionTrouble(_shown(details))
    if code in (grpc.StatusCode.ABORTED, grpc.StatusCode.OK, grpc.StatusCode.CANCELLED):
        return ConnectionTrouble(_ENDS.get(details, "the server ended this connection"))
    return ConnectionTrouble(_CODES.get(code.name, _NONSENSE).format(where=where))


def _shown(sentence: str) -> str:
    """Remove control characters from a server's sentence before a terminal shows it."""
    return _CONTROL.sub(" ", sentence)[:_LONGEST] or "the server refuses this"


def expired_or_none(certificate_pem: bytes) -> Refused | None:
    """Return an error if the certificate has expired: a failed handshake would not say why."""
    if keys.read_certificate(certificate_pem).not_valid_after_utc >= keys.now():
        return None
    return Refused(f"{members.EXPIRED}; {_REMEDIES[members.EXPIRED]}")


_PATIENCE = 30.0  # seconds for an answer
_LONG = 3600.0  # seconds for a model, over a slow line; keepalive notices a dead link earlier


def enrol(invitation: Invitation, directory: Path) -> Identity:
    """Create a party's identity in a directory: make the key here, and have the server sign the certificate.

    If the answer is lost, the same invitation works again with the same key.
    """
    request = Identity.create(directory, invitation.member, invitation.ca_pem)
    shown = (invitation.key_pem, invitation.certificate_pem)
    signed = _call(
        "Enrol", invitation.address, invitation.ca_pem, shown, json.dumps({"csr": request.decode()}).encode()
    )
    identity = Identity(directory)
    identity.accept(signed)
    if identity.name != invitation.member:
        raise FormatError("the server sent a certificate for another name than that of this party")
    return identity


def renew(identity: Identity, address: str) -> None:
    """Get a certificate for a new key; the old key signs the request."""
    request, signature = identity.renewal()
    facts = {"csr": request.decode(), "signature": signature.hex()}
    identity.accept(_call_as(identity, "Renew", address, json.dumps(facts).encode()))


def fetch_proposal(identity: Identity, address: str) -> bytes:
    """Fetch the run that parties are asked to approve."""
    return _call_as(identity, "Proposal", address, b"")


def approve(identity: Identity, address: str, approval: bytes) -> bytes:
    """Send this party's approval; return the server's answer."""
    return _call_as(identity, "Approve", address, approval)


def fetch_model(identity: Identity, address: str, run: str) -> bytes:
    """Fetch the encoded files of a finished run's model; raise `NoModel` if there is none for this party yet."""
    where, credentials = wire.Address.parse(address), identity.credentials
    if (expired := expired_or_none(credentials[1])) is not None:
        raise expired
    assembler = wire.Assembler(wire.MODEL)
    with open_channel(where, identity.ca_pem, credentials, wire.Keepalive()) as channel:
        call = channel.unary_stream(wire.path("Model"))(
            run.encode(), timeout=_LONG, metadata=call_metadata(where, credentials[1])
        )
        try:
            for chunk in call:
                if (received := assembler.take(chunk, 0)) is not None:
                    return received[1]
        except grpc.RpcError as error:
            raise connection_error(error, where) from None
        finally:
            call.cancel()
    raise FormatError("the server sent only a part of the model: try again")


def server_time(identity: Identity, address: str) -> datetime:
    """Ask for the server's time."""
    try:
        return datetime.fromisoformat(_call_as(identity, "Time", address, b"").decode()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise FormatError("the server's clock cannot be read") from None


def leave(identity: Identity, address: str) -> None:
    """Leave the federation; the server no longer accepts this certificate."""
    _call_as(identity, "Leave", address, b"")


def _call_as(identity: Identity, call: str, address: str, request: bytes) -> bytes:
    return _call(call, address, identity.ca_pem, identity.credentials, request)


def _call(call: str, address: str, ca_pem: bytes, credentials: tuple[bytes, bytes], request: bytes) -> bytes:
    where = wire.Address.parse(address)
    if (expired := expired_or_none(credentials[1])) is not None:
        raise expired
    with open_channel(where, ca_pem, credentials, wire.Keepalive()) as channel:
        try:
            answer: bytes = channel.unary_unary(wire.path(call))(
                request, timeout=_PATIENCE, metadata=call_metadata(where, credentials[1])
            )
        except grpc.RpcError as error:
            raise connection_error(error, where) from None
    return answer
