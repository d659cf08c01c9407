"""Commands for this installation: find faults, upgrade files of earlier versions, complete commands in a shell."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tertulia.cli.json_values import rows_of
from tertulia.cli.options import AsJson
from tertulia.view import console

if TYPE_CHECKING:
    from tertulia.network.party.party_directory import PartyDirectory
    from tertulia.operations.doctor import Finding
    from tertulia.operations.upgrades.formats import Item

from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script


def doctor(
    directory: Annotated[Path, typer.Argument(help="Directory of a federation or of a party.", metavar="DIRECTORY")],
    as_json: AsJson = False,
) -> None:
    """Check what a server or a party needs: name, port, proxy, TLS, clock, disk, memory, kernels, data."""
    from tertulia.network.party import party_directory as membership
    from tertulia.operations.doctor import BAD, examine

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
    from tertulia.federation.engines.grpc import client
    from tertulia.network.party.party_directory import PartyDirectory
    from tertulia.network.server.federation_directory import split_address
    from tertulia.operations import doctor as look

    party = PartyDirectory(directory)
    if party.kit is not None:
        return _site_checks(party)
    file, identity = party.file, party.identity
    host, port = split_address(file.server)
    key, certificate = identity.credentials
    connection = cache(lambda: look.check_port(host, port))
    tls = lambda: look.check_tls(host, port, identity.ca_pem, certificate, key)  # noqa: E731
    clock = lambda: look.check_clock(lambda: client.server_time(identity, file.server))  # noqa: E731
    return [
        lambda: look.check_name(host),
        lambda: look.check_proxy(host),
        connection,
        lambda: look.check_beyond(connection(), "TLS", tls),
        lambda: look.check_expiry("the party's", identity.expires),
        lambda: look.check_beyond(connection(), "clock", clock),
        lambda: look.check_disk(directory),
        look.check_memory,
        look.check_kernels,
        lambda: look.check_policy(party.policy_path),
        lambda: look.check_documents(file.documents.source()),
    ]


def _site_checks(party: PartyDirectory) -> list[Callable[[], Finding]]:
    """Check the kit, this machine and the party's own files; FLARE carries the connection."""
    from tertulia.federation.engines.nvflare.authorization import loose_rights
    from tertulia.operations import doctor as look

    kit = party.kit
    assert kit is not None
    return [
        lambda: look.check_expiry("the site's", kit.expires),
        lambda: look.check_authorization(kit.directory / "local" / "authorization.json", loose_rights(kit)),
        lambda: look.check_disk(party.directory),
        look.check_memory,
        look.check_kernels,
        lambda: look.check_policy(party.policy_path),
        lambda: look.check_documents(party.file.documents.source()),
    ]


def _server_checks(directory: Path) -> list[Callable[[], Finding]]:
    from tertulia.federation.identity.keys import read_certificate
    from tertulia.network.server.federation_directory import FederationDirectory, split_address
    from tertulia.operations import doctor as look

    federation = FederationDirectory(directory)
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


def upgrade(
    path: Annotated[
        Path,
        typer.Argument(help="A home, run, model, party or federation; a file; or a folder that holds several of them."),
    ],
    dry: Annotated[bool, typer.Option("--dry-run", help="Report what would change; change nothing.")] = False,
    back: Annotated[bool, typer.Option("--undo", help="Restore the state before the last upgrade.")] = False,
    as_json: AsJson = False,
) -> None:
    """Convert files of an earlier version. A backup stays beside them; ledgers and keys are never changed."""
    from tertulia.operations.upgrades import upgrade as upgrades
    from tertulia.operations.upgrades.formats import TODAYS, recognise

    if back:
        backup = upgrades.undo(path)
        console.say(f"{path} is as it was before the upgrade; {backup.directory} is gone")
        return
    items = recognise(path)
    made = None if dry else upgrades.upgrade(path, items)
    rows = [_row(item) for item in items]
    if as_json:
        console.print_json({"upgrade": rows_of(rows), "backup": str(made.directory) if made else None})
    else:
        shown = [_row(item) for item in items if item.becomes != TODAYS]
        if shown:
            console.records(f"{'What would change' if dry else 'What changes'} in {path}", shown)
        console.say(f"{len(items) - len(shown)} more are of today's format" if shown else "all is of today's format")
    if made is not None:
        console.say(f"the files as they were are in {made.directory}: remove it when all is well")
        console.say(f"`tertulia upgrade {path} --undo` restores them, unless they were edited meanwhile")
    if any(item.wrong for item in items):
        raise typer.Exit(1)


def _row(item: Item) -> dict[str, str]:
    change = "yes" if item.changes else "no"
    return {"what": item.kind, "where": str(item.path), "format": item.found, "change": change, "becomes": item.becomes}


completion_init()  # the shell runs `tertulia` itself to complete, with an environment variable set


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(help="Shell to print the script for.", metavar="bash|zsh|fish")
    ],
) -> None:
    """Print a completion script, such as for `tertulia completion bash >> ~/.bashrc`."""
    typer.echo(get_completion_script(prog_name="tertulia", complete_var="_TERTULIA_COMPLETE", shell=shell))
