"""`tertulia doctor`: what keeps a server or a party from working, one line for each thing that was looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.view import console

if TYPE_CHECKING:
    from tertulia.runs.examination import Finding


def doctor(
    directory: Annotated[Path, typer.Argument(help="A federation's directory, or a party's.", metavar="DIRECTORY")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Look at everything that a server or a party needs: name, port, proxy, TLS, clock, disk, memory, kernels, data."""
    from tertulia.runs import membership
    from tertulia.runs.examination import BAD, examine

    is_party = (directory / membership.FILE).exists()
    found = examine(_party_checks(directory) if is_party else _server_checks(directory))
    rows = [finding._asdict() for finding in found]
    if as_json:
        console.print_json({"findings": rows})
    else:
        console.records(f"What {directory} needs", rows)
    if any(finding.state == BAD for finding in found):
        raise typer.Exit(1)


def _party_checks(directory: Path) -> list[Callable[[], Finding]]:
    from tertulia.federation.engines.grpc import calls
    from tertulia.runs import examination as look
    from tertulia.runs.federations import split_address
    from tertulia.runs.membership import PartyDirectory

    party = PartyDirectory(directory)
    file, identity = party.file, party.identity
    host, port = split_address(file.server)
    key, certificate = identity.credentials
    return [
        lambda: look.check_name(host),
        lambda: look.check_proxy(host),
        lambda: look.check_port(host, port),
        lambda: look.check_tls(host, port, identity.ca_pem, certificate, key),
        lambda: look.check_expiry("the party's", identity.expires),
        lambda: look.check_clock(lambda: calls.server_time(identity, file.server)),
        lambda: look.check_disk(directory),
        look.check_memory,
        look.check_kernels,
        lambda: look.check_policy(party.policy_path),
        lambda: look.check_documents(file.documents.source()),
    ]


def _server_checks(directory: Path) -> list[Callable[[], Finding]]:
    from tertulia.federation.identity.keys import read_certificate
    from tertulia.runs import examination as look
    from tertulia.runs.federations import Federation, split_address

    federation = Federation(directory)
    file = federation.file
    host = split_address(file.address)[0]
    _, certificate = federation.authority.server_identity([host])
    return [
        lambda: look.check_name(host),
        lambda: look.check_listen(*split_address(file.listens_on)),
        lambda: look.check_expiry("the server's", read_certificate(certificate).not_valid_after_utc),
        lambda: look.check_disk(directory),
        look.check_memory,
        look.check_kernels,
    ]
