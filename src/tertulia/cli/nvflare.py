"""The commands of a federation that NVIDIA FLARE carries: made from kits, exported as a job, supervised to its end."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from tertulia.cli.federation import FederationDirectory, next_steps
from tertulia.view import console

app = typer.Typer(
    help="A federation inside NVIDIA FLARE: docs/nvflare.md leads from `nvflare provision` to a finished run.",
    no_args_is_help=True,
)
Kit = Annotated[Path, typer.Argument(help="A startup kit, as `nvflare provision` makes them.", metavar="KIT")]


@app.command()
def init(
    directory: FederationDirectory,
    kit: Annotated[Path, typer.Option(help="The server's startup kit.")],
    sites: Annotated[
        Path | None, typer.Option(help="The folder with the sites' kits; without, beside the kit.")
    ] = None,
) -> None:
    """Make a federation for a FLARE server's kit; its members are the sites that were provisioned with it."""
    from tertulia.runs.flare.setup import found

    os.umask(0o077)
    federation = found(directory, kit, sites or kit.parent)
    console.line(f"{directory}/federation.toml says what {', '.join(federation.roster)} train, and on which terms")
    console.line(f"{kit}/local says where that is; restart the server if it runs: {kit}/startup/start.sh")
    next_steps(f"edit {directory}/federation.toml as you like", f"tertulia nvflare export {directory} --to JOB")


@app.command()
def join(
    kit: Kit,
    directory: Annotated[Path | None, typer.Option(help="Where to put the party; without, the site's name.")] = None,
    documents: Annotated[Path | None, typer.Option(help="Where its documents are.")] = None,
    text: Annotated[str, typer.Option("--text", help="The column that holds the text.")] = "text",
) -> None:
    """Make a party for a FLARE site's kit: party.toml and policy.toml. Run it where the site runs."""
    from tertulia.federation.identity.keys import spoken
    from tertulia.runs.flare.setup import join as join_by_kit

    os.umask(0o077)
    party = join_by_kit(kit, directory, documents, text)
    place = party.directory
    console.line(f"'{party.file.name}' is a party of '{party.file.federation}'; everything of it is in {place}")
    console.line(f"its key:  {spoken(party.shown.fingerprint)}")
    console.line(f"{kit}/local says where it is; jobs may name our classes there, and the site's log stays at the site")
    edit = [] if documents else [f"edit {place}/party.toml: say under [documents] where they are"]
    put = f"put the operator's proposal.json into {place}"
    next_steps(*edit, put, f"tertulia check {place}", f"tertulia approve {place}")


@app.command()
def export(
    directory: FederationDirectory,
    to: Annotated[Path, typer.Option(help="Where to write the job's folder.")],
) -> None:
    """Write the job of the run that federation.toml asks for, and its proposal, which parties approve."""
    from tertulia.federation.engines.nvflare.jobs import write_job
    from tertulia.runs.desk import Desk
    from tertulia.runs.federations import Federation
    from tertulia.runs.flare.supervising import files_of

    federation = Federation(directory)
    proposal = Desk(federation).current()
    write_job(to, files_of(federation, proposal))
    console.line(f"{to}: the job of run {proposal.run}, with {', '.join(proposal.roster)}; no code, and no path")
    console.line(f"Send each member {directory}/proposal.json, for its party's directory; it is no secret")
    next_steps(
        "tertulia approve NAME      # at each member",
        f"tertulia nvflare supervise {directory} --job {to} --admin ADMIN_KIT",
    )


@app.command()
def supervise(
    directory: FederationDirectory,
    job: Annotated[Path, typer.Option(help="The job's folder.")],
    admin: Annotated[Path, typer.Option(help="An administrator's startup kit.")],
    tries: Annotated[int, typer.Option(min=1, help="Jobs in a row without a new round, before it gives up.")] = 10,
) -> None:
    """Submit the job, watch it, and submit it again after a lost site or server, until the run is finished."""
    from tertulia.federation.engines.nvflare.sessions import Administrator
    from tertulia.runs.federations import Federation
    from tertulia.runs.flare.supervising import Supervisor

    os.umask(0o077)
    try:
        with closing(Administrator(admin)) as administrator:
            run = Supervisor(Federation(directory), administrator, console.say).supervise(job, tries)
    except KeyboardInterrupt:
        console.say("interrupted: the job goes on by itself; the same command watches over it again")
        raise typer.Exit(130) from None
    console.line(f"run {run.id} is finished, and its model is with every site that was there")
    next_steps(f"tertulia topics {run.directory}", "tertulia topics NAME/runs/" + run.id + "      # at each member")
