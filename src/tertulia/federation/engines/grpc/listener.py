"""The server's listening sockets, and the TLS credentials that it presents."""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from tertulia.errors import ConfigError, TertuliaError
from tertulia.federation.engines.grpc import wire
from tertulia.federation.identity.authority import Authority

_ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what an operator may write
_BACKLOG = 512  # pending connections


@dataclass(frozen=True)
class ListenOptions:
    """Where and how the service listens."""

    address: str  # host:port; port 0 takes any free port
    hosts: Sequence[str] = ()  # the names that parties dial, if they differ from the host in `address`
    keepalive: wire.Keepalive = wire.Keepalive()  # noqa: RUF009 - it is frozen
    folder: Path | None = None  # of the socket between proxy and gRPC; temporary unless given


def listen(address: wire.Address) -> list[socket.socket]:
    """Listen on all addresses of a host; raise `ConfigError` with the reason if that fails."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise cannot_listen(address, f"there is no host called '{address.host}'") from None
    places = [(int(family), str(place[0])) for family, _, _, _, place in found]
    if address.host in _ANYWHERE and socket.has_dualstack_ipv6():
        places = [(int(socket.AF_INET6), "::")]
    listeners: list[socket.socket] = []
    trouble: list[OSError] = []
    for family, host in places:
        port = listeners[0].getsockname()[1] if listeners else address.port  # port 0 becomes the same port everywhere
        both = host == "::" and socket.has_dualstack_ipv6()
        try:
            listeners.append(socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=both))
        except OSError as error:
            trouble.append(error)
    taken = [error for error in trouble if error.errno == errno.EADDRINUSE]
    if taken or not listeners:  # on a machine without IPv6, some addresses of localhost fail
        for listener in listeners:
            listener.close()
        raise cannot_listen(address, os.strerror((taken or trouble)[0].errno or errno.EADDRNOTAVAIL))
    return listeners


def cannot_listen(address: wire.Address, reason: str) -> ConfigError:
    """Build the error of a server that cannot listen."""
    return ConfigError(
        f"cannot listen on {address.target}: {reason}; choose another address or port in federation.toml, or end what "
        "listens there"
    )


def server_credentials(authority: Authority, hosts: Sequence[str]) -> Any:
    """Return credentials that renew the server's certificate while it runs, and require one of every client."""
    given = [authority.server_identity(hosts)]

    def configuration() -> Any:
        return grpc.ssl_server_certificate_configuration(given, root_certificates=authority.certificate_pem)

    def renewed_or_none() -> Any:
        """Return a renewed configuration, if there is one; gRPC calls this at every handshake."""
        try:
            newest = authority.server_identity(hosts)
        except (TertuliaError, OSError) as error:  # the old certificate still serves
            logging.getLogger("tertulia.server").error("the server's certificate cannot be renewed: %s", error)
            return None
        if newest == given[0]:
            return None
        given[0] = newest
        return configuration()

    return grpc.dynamic_ssl_server_credentials(configuration(), renewed_or_none, require_client_authentication=True)
