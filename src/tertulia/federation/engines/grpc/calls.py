"""What a party asks the server once: to join, to see what is proposed, to approve it, the model, to renew, to leave."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import grpc

from tertulia.errors import FormatError
from tertulia.federation.engines.grpc import dial, wire
from tertulia.federation.identity.invitations import Invitation
from tertulia.federation.identity.own import Identity

_PATIENCE = 30.0  # seconds for an answer
_LONG = 3600.0  # and for a model, over a thin line; that a link is dead is noticed before


def enrol(invitation: Invitation, directory: Path) -> Identity:
    """Make a party's identity in a directory: the key at home, the certificate from the server.

    When the answer is lost on the way, the same invitation serves again with the same key.
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
    """Get a new certificate for a new key, which the old key vouches for."""
    request, signature = identity.renewal()
    facts = {"csr": request.decode(), "signature": signature.hex()}
    identity.accept(_call_as(identity, "Renew", address, json.dumps(facts).encode()))


def fetch_proposal(identity: Identity, address: str) -> bytes:
    """The run that parties are asked to approve."""
    return _call_as(identity, "Proposal", address, b"")


def approve(identity: Identity, address: str, approval: bytes) -> bytes:
    """Send this party's approval; return what the server says to it."""
    return _call_as(identity, "Approve", address, approval)


def fetch_model(identity: Identity, address: str, run: str) -> bytes:
    """The files of a finished run's model, encoded; raise `dial.NoModel` if there is none for this party, so far."""
    where, credentials = wire.Address.parse(address), identity.credentials
    if (expired := dial.expired_or_none(credentials[1])) is not None:
        raise expired
    assembler = wire.Assembler(wire.MODEL)
    with dial.channel(where, identity.ca_pem, credentials, wire.Keepalive()) as channel:
        call = channel.unary_stream(wire.path("Model"))(
            run.encode(), timeout=_LONG, metadata=dial.metadata(where, credentials[1])
        )
        try:
            for chunk in call:
                if (received := assembler.take(chunk, 0)) is not None:
                    return received[1]
        except grpc.RpcError as error:
            raise dial.trouble(error, where) from None
        finally:
            call.cancel()
    raise FormatError("the server sent only a part of the model: try again")


def server_time(identity: Identity, address: str) -> datetime:
    """The server's clock."""
    try:
        return datetime.fromisoformat(_call_as(identity, "Time", address, b"").decode()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise FormatError("the server's clock cannot be read") from None


def leave(identity: Identity, address: str) -> None:
    """Leave the federation: this certificate opens nothing any more."""
    _call_as(identity, "Leave", address, b"")


def _call_as(identity: Identity, call: str, address: str, request: bytes) -> bytes:
    return _call(call, address, identity.ca_pem, identity.credentials, request)


def _call(call: str, address: str, ca_pem: bytes, credentials: tuple[bytes, bytes], request: bytes) -> bytes:
    where = wire.Address.parse(address)
    if (expired := dial.expired_or_none(credentials[1])) is not None:
        raise expired
    with dial.channel(where, ca_pem, credentials, wire.Keepalive()) as channel:
        try:
            answer: bytes = channel.unary_unary(wire.path(call))(
                request, timeout=_PATIENCE, metadata=dial.metadata(where, credentials[1])
            )
        except grpc.RpcError as error:
            raise dial.trouble(error, where) from None
    return answer
