"""How a party calls the server: a channel with its certificate, and what a call's end means, in one sentence."""

from __future__ import annotations

import re
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
_NO_SERVER = "no server answers at {where}: see that `tertulia serve` runs there, and that the address is right"
_LINKS = {  # by what gRPC says of a link that did not come about, or broke
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
    """The server does not let this party in, and to try again would not help."""


class NoModel(ConnectionTrouble):
    """The server has no model of this run for this party, so far."""


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
    hello = ((wire.HELLO, OURS.to_bytes()),)
    return (*hello, (wire.CERTIFICATE, certificate_pem)) if address.plain else hello


def trouble(error: Any, address: wire.Address) -> ConnectionTrouble:
    """One sentence for how a call ended, with the remedy; `Refused` if to try again would not help."""
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
    if code == grpc.StatusCode.FAILED_PRECONDITION:  # the desk's word
        return NoModel(details) if details in wire.NO_MODEL else ConnectionTrouble(_shown(details))
    if code in (grpc.StatusCode.ABORTED, grpc.StatusCode.OK, grpc.StatusCode.CANCELLED):
        return ConnectionTrouble(_ENDS.get(details, "the server ended this connection"))
    return ConnectionTrouble(_CODES.get(code.name, _NONSENSE).format(where=where))


def _shown(sentence: str) -> str:
    """A server's sentence, without what could play tricks on a terminal."""
    return _CONTROL.sub(" ", sentence)[:_LONGEST] or "the server refuses this"


def expired_or_none(certificate_pem: bytes) -> Refused | None:
    """A certificate that has expired is not even shown: the server's end of the handshake could not say why."""
    if keys.read_certificate(certificate_pem).not_valid_after_utc >= keys.now():
        return None
    return Refused(f"{members.EXPIRED}; {_REMEDIES[members.EXPIRED]}")
