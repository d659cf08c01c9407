"""Commands of a federation inside NVIDIA FLARE: init and join by startup kits, export a job, supervise it."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from tertulia.cli.options import (
    OPERATOR,
    PARTY,
    Documents,
    FederationPath,
    Statements,
    Text,
    Yes,
    ask_statements,
    next_steps,
)
from tertulia.view import console

app = typer.Typer(
    help="Run a federation inside NVIDIA FLARE (docs/nvflare.md).",
    no_args_is_help=True,
)
Kit = Annotated[Path, typer.Argument(help="Startup kit, as `nvflare provision` creates it.", metavar="KIT")]


@app.command()
def init(
    directory: FederationPath,
    kit: Annotated[Path, typer.Option(help="Startup kit of the server.")],
    sites: Annotated[
        Path | None, typer.Option(help="Folder with the kits of the sites (the folder of the server's kit).")
    ] = None,
    stated: Statements = None,
    yes: Yes = False,
) -> None:
    """Create a federation for the kit of a FLARE server; its members are the sites provisioned with it."""
    from tertulia.network.flare.setup import found

    os.umask(0o077)
    federation = found(directory, kit, sites or kit.parent, ask_statements(OPERATOR, stated, yes=yes))
    console.line(f"{directory}/federation.toml says what {', '.join(federation.roster)} train, and on which terms")
    console.line(f"{kit}/local says where that is; restart the server if it runs: {kit}/startup/start.sh")
    next_steps(f"edit {directory}/federation.toml as you like", f"tertulia nvflare export {directory} --to JOB")


@app.command()
def join(
    kit: Kit,
    directory: Annotated[Path | None, typer.Option(help="Directory of the party (the name of the site).")] = None,
    documents: Documents = None,
    text: Text = "text",
    stated: Statements = None,
    yes: Yes = False,
    keep_authorization: Annotated[
        bool, typer.Option("--keep-authorization", help="Keep the kit's authorization, even if it is too permissive.")
    ] = False,
) -> None:
    """Create a party for the kit of a FLARE site: party.toml and policy.toml. Run it where the site runs."""
    from tertulia.federation.identity.keys import readable
    from tertulia.network.flare.setup import join as join_by_kit

    os.umask(0o077)
    statements = ask_statements(PARTY, stated, yes=yes)
    party = join_by_kit(kit, directory, documents, text, stated=statements, keep_authorization=keep_authorization)
    place = party.directory
    console.line(f"'{party.file.name}' is a party of '{party.file.federation}'; everything of it is in {place}")
    console.line(f"its key:  {readable(party.shown.fingerprint)}")
    console.line(f"{kit}/local says where it is; jobs may name our classes there, and the site's log stays at the site")
    if keep_authorization:
        console.line(f"{kit}/local/authorization.json was left as it is: `tertulia doctor {place}` says what it grants")
    else:
        console.line(f"{kit}/local/authorization.json lets no job bring code, and nobody read files: restart the site")
    edit = [] if documents else [f"edit {place}/party.toml: say under [documents] where they are"]
    put = f"put the operator's proposal.json into {place}"
    next_steps(*edit, put, f"tertulia check {place}", f"tertulia approve {place}")


@app.command()
def export(
    directory: FederationPath,
    to: Annotated[Path, typer.Option(help="Folder of the job to write.")],
) -> None:
    """Write the job of the run that federation.toml describes, and the proposal for parties to approve."""
    from tertulia.federation.engines.nvflare.jobs import write_job
    from tertulia.network.flare.supervisor import files_of
    from tertulia.network.server.federation_directory import FederationDirectory
    from tertulia.network.server.run_registry import RunRegistry

    federation = FederationDirectory(directory)
    proposal = RunRegistry(federation).current()
    write_job(to, files_of(federation, proposal))
    console.line(f"{to}: the job of run {proposal.run}, with {', '.join(proposal.roster)}; no code, and no path")
    console.line(f"Send each member {directory}/proposal.json, for its party's directory; it is no secret")
    next_steps(
        "tertulia approve NAME      # at each member",
        f"tertulia nvflare supervise {directory} --job {to} --admin ADMIN_KIT",
    )


@app.command()
def supervise(
    directory: FederationPath,
    job: Annotated[Path, typer.Option(help="Folder of the job.")],
    admin: Annotated[Path, typer.Option(help="Startup kit of an administrator.")],
    tries: Annotated[
        int, typer.Option(min=1, help="Number of jobs in a row without a new round before giving up.")
    ] = 10,
) -> None:
    """Submit the job and watch it; submit it again after a lost site or server, until the run is finished."""
    from tertulia.federation.engines.nvflare.sessions import Administrator
    from tertulia.network.flare.supervisor import Supervisor
    from tertulia.network.server.federation_directory import FederationDirectory

    os.umask(0o077)
    try:
        with closing(Administrator(admin)) as administrator:
            run = Supervisor(FederationDirectory(directory), administrator, console.say).supervise(job, tries)
    except KeyboardInterrupt:
        console.say("interrupted: the job goes on by itself; the same command watches over it again")
        raise typer.Exit(130) from None
    console.line(f"run {run.id} is finished, and its model is with every site that was there")
    next_steps(f"tertulia topics {run.directory}", "tertulia topics NAME/runs/" + run.id + "      # at each member")
