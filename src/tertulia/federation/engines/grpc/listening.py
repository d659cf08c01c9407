"""Where the server listens, and with which certificate."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from tertulia.errors import ConfigError, TertuliaError
from tertulia.federation.engines.grpc import wire
from tertulia.federation.identity.authority import Authority


@dataclass(frozen=True)
class Listening:
    """Where and how the gate listens."""

    address: str  # host:port; port 0 is any that is free
    hosts: Sequence[str] = ()  # by which parties call it, if not by the host that it listens on
    keepalive: wire.Keepalive = wire.Keepalive()  # noqa: RUF009 - it is frozen


def check_free(address: wire.Address) -> None:
    """Raise `ConfigError` unless the server can listen there; gRPC would say why on the terminal, in its own words."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise cannot_listen(address, f"there is no host called '{address.host}'") from None
    trouble: list[OSError] = []
    for family, kind, protocol, _, place in found:
        try:
            with socket.socket(family, kind, protocol) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what has just ended is no hindrance
                tried.bind(place)
        except OSError as error:
            trouble.append(error)
    taken = [error for error in trouble if error.errno == errno.EADDRINUSE]
    if taken or len(trouble) >= len(found):  # a machine without IPv6 still has a localhost
        raise cannot_listen(address, str((taken or trouble)[0].strerror))


def cannot_listen(address: wire.Address, reason: str) -> ConfigError:
    """The error of a server that cannot listen."""
    return ConfigError(
        f"cannot listen on {address.target}: {reason}; choose another address or port in federation.toml, or end what "
        "listens there"
    )


def server_credentials(authority: Authority, hosts: Sequence[str]) -> Any:
    """The server's certificate, which is renewed without a stop; whoever calls must show one by the same authority."""
    given = [authority.server_identity(hosts)]

    def configuration() -> Any:
        return grpc.ssl_server_certificate_configuration(given, root_certificates=authority.certificate_pem)

    def renewed_or_none() -> Any:
        """Asked at every handshake: a certificate that was renewed serves from the next one on."""
        try:
            newest = authority.server_identity(hosts)
        except (TertuliaError, OSError) as error:  # what there was still serves
            logging.getLogger("tertulia.server").error("the server's certificate cannot be renewed: %s", error)
            return None
        if newest == given[0]:
            return None
        given[0] = newest
        return configuration()

    return grpc.dynamic_ssl_server_credentials(configuration(), renewed_or_none, require_client_authentication=True)
