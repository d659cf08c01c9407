"""How a party calls the server: a channel with its certificate, and what a call's end means, in one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import grpc

from tertulia.errors import ConnectionTrouble
from tertulia.federation.engines.grpc import wire
from tertulia.federation.identity import keys, members

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
_CONTROL = re.compile(r"[^\x20-\x7e\xa0-\U0010ffff]")
_LONGEST = 500  # characters of a server's sentence that are shown


class Refused(ConnectionTrouble):
    """The server does not let this party in, and to try again would not help."""


def channel(address: wire.Address, ca_pem: bytes, credentials: tuple[bytes, bytes], keepalive: wire.Keepalive) -> Any:
    """Dial the server; nothing is sent before its identity is proved, and it knows ours."""
    options = wire.options(keepalive)
    if address.is_loopback:  # a proxy is the way out of the house
        options.append(("grpc.enable_http_proxy", 0))
    if address.plain:
        return grpc.insecure_channel(address.target, options)
    key, certificate = credentials
    return grpc.secure_channel(address.target, grpc.ssl_channel_credentials(ca_pem, key, certificate), options)


def metadata(address: wire.Address, certificate_pem: bytes) -> tuple[tuple[str, bytes], ...]:
    """What goes with every call: our version and, where there is no TLS to prove it, who we are."""
    hello = ((wire.HELLO, wire.Hello().to_bytes()),)
    return (*hello, (wire.CERTIFICATE, certificate_pem)) if address.plain else hello


def trouble(error: Any, address: wire.Address) -> ConnectionTrouble:
    """One sentence for how a call ended, with the remedy; `Refused` if to try again would not help."""
    code, details = error.code(), error.details() or ""
    if details == wire.OTHER_PROTOCOL:
        server = wire.Hello.read(error.trailing_metadata())
        return Refused(wire.difference_or_none(server, wire.Hello()) or "the server refuses this version of tertulia")
    if code == grpc.StatusCode.PERMISSION_DENIED:
        if details in _REMEDIES:
            return Refused(f"the server does not let this party in: {details}; {_REMEDIES[details]}")
        return Refused("the server does not let this party in: ask the operator why")
    where = address.target
    meant: Callable[[str], bool] = lambda text: text in details  # noqa: E731
    if meant("Hostname Verification") or meant("not in peer certificate"):
        return ConnectionTrouble(
            f"the certificate of the server at {where} is not for '{address.host}': use the name that the operator "
            "gave, or ask the operator to add this one to federation.toml"
        )
    if meant("CERTIFICATE_VERIFY_FAILED") or meant("certificate verify failed"):
        return ConnectionTrouble(
            f"the server at {where} is not the one that invited this party, or its certificate has expired: nothing "
            "was sent; check the address, and ask the operator"
        )
    sentences = {
        grpc.StatusCode.UNAVAILABLE: f"no server answers at {where}: see that `tertulia serve` runs there, that the "
        "address is right, and that this party's certificate is of that federation and has not expired",
        grpc.StatusCode.DEADLINE_EXCEEDED: f"the server at {where} does not answer in time: try again later",
        grpc.StatusCode.FAILED_PRECONDITION: _shown(details),
        grpc.StatusCode.INTERNAL: "the server could not do this: ask the operator, its log has the reason",
        grpc.StatusCode.ABORTED: _ENDS.get(details, "the server ended this connection"),
        grpc.StatusCode.OK: "the server ended this connection",
        grpc.StatusCode.CANCELLED: "the connection was closed",
        grpc.StatusCode.UNIMPLEMENTED: f"what answers at {where} is no tertulia server: check the address",
    }
    return ConnectionTrouble(sentences.get(code, f"the server at {where} cannot be understood: ask the operator"))


def _shown(sentence: str) -> str:
    """A server's sentence, without what could play tricks on a terminal."""
    return _CONTROL.sub(" ", sentence)[:_LONGEST] or "the server refuses this"


def expired_or_none(certificate_pem: bytes) -> Refused | None:
    """A certificate that has expired is not even shown: the server's end of the handshake could not say why."""
    if keys.read_certificate(certificate_pem).not_valid_after_utc >= keys.now():
        return None
    return Refused(f"{members.EXPIRED}; {_REMEDIES[members.EXPIRED]}")
