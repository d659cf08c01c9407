"""The operator's commands: a federation of houses is made, served, started and looked at."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.cli.live import Live, showing
from tertulia.view import console

FederationDirectory = Annotated[Path, typer.Argument(help="A federation's directory.", metavar="FEDERATION")]
Days = Annotated[float, typer.Option(min=0.01, help="Days for which an invitation is good.")]
Metrics = Annotated[
    int | None, typer.Option(metavar="PORT", help="Show /healthz and /metrics on this port of this machine; 0: any.")
]


def next_steps(*commands: str) -> None:
    """Print what to type next."""
    for i, command in enumerate(commands):
        console.line(f"{'next: ' if i == 0 else '      '}{command}")


def say_where(port: int | None) -> None:
    """Print where the metrics are, if anywhere."""
    if port is not None:
        console.say(f"http://127.0.0.1:{port}/metrics and /healthz, for this machine alone")


def found_federation(directory: Path, members: str, address: str | None, days: float) -> None:
    """Make a federation: a small authority, federation.toml, and an invitation for each member."""
    from tertulia.runs.federations import PORT, create

    names = [name.strip() for name in members.split(",")]
    invitations = create(directory, names, address or f"localhost:{PORT}", days)
    console.line(f"{directory}/federation.toml says what is trained and on which terms: edit it as you like")
    console.line(f"Send each member its invitation, by a way that only it can read; good once, for {days:g} days:")
    for path in invitations:
        console.line(f"  {path}")
    if address is None:
        console.line("Parties on other machines need `address` in federation.toml, and new invitations after that")
    joins = [f"tertulia join {path.name}      # at the member" for path in invitations[:1]]
    next_steps(f"tertulia serve {directory}", *joins)


def invite(
    directory: FederationDirectory,
    member: Annotated[str, typer.Argument(help="The party's name.", metavar="MEMBER")],
    days: Days = 7.0,
) -> None:
    """Write a new invitation: for a new member, or in place of one that expired or was lost."""
    from tertulia._disk import atomic_write
    from tertulia._toml import with_value
    from tertulia.federation.identity.keys import member_name
    from tertulia.runs.federations import FILE, Federation

    federation, path = Federation(directory), directory / FILE
    known = federation.file.members
    if member_name(member) not in known:
        atomic_write(path, with_value(path.read_text(encoding="utf-8"), "members", (*known, member)).encode())
        console.line(f"{path}: '{member}' is a member now; the plan is complete when it has joined")
    invitation = federation.invite(member, days)
    console.line(f"{invitation}: send it by a way that only '{member}' can read; it is good once, for {days:g} days")
    next_steps(f"tertulia join {invitation.name}      # at the member")


def serve(directory: FederationDirectory, metrics: Metrics = None, live: Live = None) -> None:
    """Let parties in, and drive the run that was started; goes on with an unfinished one by itself."""
    from tertulia.runs.federations import Federation
    from tertulia.runs.seeing import on_port
    from tertulia.runs.serving import Server

    os.umask(0o077)
    server = Server(Federation(directory), console.say)
    signal.signal(signal.SIGTERM, server.stop)
    try:
        with on_port(server.watch, metrics) as port, showing(directory, live):
            say_where(port)
            server.serve()
    except KeyboardInterrupt:
        console.say(f"interrupted: `tertulia serve {directory}` goes on from the last round")
        raise typer.Exit(130) from None


def start(
    directory: FederationDirectory,
    last: Annotated[
        str | None, typer.Option("--from", metavar="LAST", help="Go on from a finished run: its id, or `last`.")
    ] = None,
    abandon: Annotated[bool, typer.Option("--abandon", help="Instead: give up the unfinished run.")] = False,
) -> None:
    """Begin the run that the members have approved, or go on with one that stopped."""
    from tertulia._locks import is_held
    from tertulia.runs.desk import Desk
    from tertulia.runs.federations import Federation

    desk = Desk(Federation(directory))
    if abandon:
        console.line(f"run {desk.abandon()} is given up; federation.toml counts again, and members approve anew")
        next_steps("tertulia approve NAME      # at each member", f"tertulia start {directory}")
        return
    desk.federation.check_engine("grpc")
    if last is not None and (known := desk.go_on_from(last)) is not None:
        console.line(f"the next run goes on from run {known}, as federation.toml says now; members approve it first")
        next_steps("tertulia approve NAME      # at each member", f"tertulia start {directory}")
        return
    run = desk.start()
    console.line(f"run {run.id} has begun, with {', '.join(run.parties)}; its plan is pinned")
    waits = [] if is_held(directory) else [f"tertulia serve {directory}"]
    next_steps(*waits, f"tertulia status {directory} --watch")


def revoke(
    directory: FederationDirectory,
    member: Annotated[str, typer.Argument(help="The party's name.", metavar="MEMBER")],
) -> None:
    """Let a member in no more, from this moment; a run under way goes on without it."""
    from tertulia.runs.federations import Federation

    Federation(directory).members.revoke(member)
    console.line(f"'{member}' is let in no more; the next run is without it")
    next_steps(f"tertulia invite {directory} {member}      # if it may come back, with a new key")


def status(
    directory: Annotated[Path, typer.Argument(help="A run's directory, a federation's, or a party's.")],
    watch: Annotated[bool, typer.Option("--watch", help="Show it as it goes, until the run ends.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Show who is there, who has approved, and how far the run is."""
    from tertulia.view.watch import is_run, watcher
    from tertulia.view.watch.terminal import view, watch_until_end

    look = watcher(directory)
    if watch and directory.is_dir():
        with suppress(KeyboardInterrupt):  # it ends the watch, and nothing else
            watch_until_end(look, as_json)
    elif is_run(directory):
        console.print_json(look()) if as_json else console.output.print(view(look()))
    elif as_json:
        console.print_json(_status(directory))
    else:
        _print_status(directory, _status(directory))


def _status(directory: Path) -> dict[str, Any]:
    from tertulia.runs import membership

    if (directory / membership.FILE).exists():
        from tertulia.runs.attending import status_of_party

        return status_of_party(membership.PartyDirectory(directory))
    from tertulia.runs.federations import Federation
    from tertulia.runs.serving import status_of

    return status_of(Federation(directory))


def _print_status(directory: Path, facts: dict[str, Any]) -> None:
    if "party" in facts:
        rows = [(name, value) for name, value in facts.items() if name != "runs"]
        console.table(f"Party '{facts['party']}'", ["", ""], rows)
        console.records("Runs that were approved", facts["runs"])
        next_steps(*_next_at_party(directory, facts))
        return
    console.records(f"Federation '{facts['federation']}'", [_yes(row) for row in facts["members"]])
    if run := facts["run"]:
        console.line(f"run {run['id']}: {run['state']}{': ' * bool(run['text'])}{run['text']}")
    if run and "round" in run:
        down, up = (sum(pair[i] for pair in run["bytes"].values()) for i in (0, 1))
        absent = f", absent: {', '.join(run['absent'])}" if run["absent"] else ""
        console.line(
            f"round {run['round']}, {run['seconds']:.1f} s, {console.size(up)} up, {console.size(down)} down{absent}"
        )
    if not facts["proposal"]["started"]:
        missing = f"; not complete without {', '.join(facts['proposal']['missing'])}"
        last = f", going on from run {facts['proposal']['from']}" * bool(facts["proposal"]["from"])
        console.line(f"run {facts['proposal']['run']}: proposed{last}{missing * bool(facts['proposal']['missing'])}")
    if facts["edited"]:
        console.line("federation.toml or the roster has changed since: that counts for the next run")
    next_steps(*_next(directory, facts))


def _next(directory: Path, facts: dict[str, Any]) -> list[str]:
    """What is to be done, as things are."""
    if facts["engine"] != "grpc":
        again = f"tertulia nvflare export {directory} --to JOB"
        return [f"tertulia topics {Path(facts['model']).parent}", again] if facts["model"] else [again]
    found = [] if facts["serving"] else [f"tertulia serve {directory}"]
    members = [row for row in facts["members"] if row["state"] in ("invited", "joined")]
    if facts["model"]:
        found.append(f"tertulia topics {Path(facts['model']).parent}")
    if facts["proposal"]["started"]:
        going = (facts["run"] or {}).get("state") == "under way"
        return [*found, f"tertulia {'status' if going else 'start'} {directory}"]
    if missing := facts["proposal"]["missing"]:
        return [*found, f"tertulia join {missing[0]}.invite      # at the member"]
    if unsure := [row["member"] for row in members if not row["approved"]]:
        found.append(f"tertulia approve {unsure[0]}      # at the member")
    return [*found, f"tertulia start {directory}"]


def _next_at_party(directory: Path, facts: dict[str, Any]) -> list[str]:
    """What is to be done at a party, as things are."""
    start = f"{facts['kit']}/startup/start.sh" if "kit" in facts else f"tertulia attend {directory}"
    found = [] if facts["attending"] else [start]
    runs = [row for row in facts["runs"] if row["state"] == "approved"]
    if runs and not runs[-1]["model"] and "kit" not in facts:
        found.append(f"tertulia fetch {directory}      # the shared model, once the run is finished")
    if fetched := [row["run"] for row in runs if row["model"]]:
        found.append(f"tertulia topics {directory / 'runs' / fetched[-1]}")
    return [*found, f"tertulia check {directory}"]


def _yes(row: dict[str, Any]) -> dict[str, Any]:
    return {name: ("yes" if value else "no") if isinstance(value, bool) else value for name, value in row.items()}
