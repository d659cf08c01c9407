"""Where the server listens, and with which certificate."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from tertulia.errors import TertuliaError
from tertulia.federation.engines.grpc import wire
from tertulia.federation.identity.authority import Authority


@dataclass(frozen=True)
class Listening:
    """Where and how the gate listens."""

    address: str  # host:port; port 0 is any that is free
    hosts: Sequence[str] = ()  # by which parties call it, if not by the host that it listens on
    keepalive: wire.Keepalive = wire.Keepalive()  # noqa: RUF009 - it is frozen


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
