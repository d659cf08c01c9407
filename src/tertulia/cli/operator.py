"""Commands of a federation's operator: invite, serve, start, status, revoke."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.cli.options import (
    AsJson,
    Days,
    FederationPath,
    Live,
    Member,
    Metrics,
    Sure,
    confirm,
    live_status,
    next_steps,
    say_metrics_address,
)
from tertulia.view import console


def create_federation(
    directory: Path, members: str, address: str | None, days: float, stated: Mapping[str, str]
) -> None:
    """Create a federation: its certificate authority, federation.toml, and an invitation for each member."""
    from tertulia.federation.plan import MIN_SUMMED
    from tertulia.network.server.federation_directory import PORT, TOO_FEW, create

    names = [name.strip() for name in members.split(",")]
    invitations = create(directory, names, address or f"localhost:{PORT}", days, stated)
    console.line(f"{directory}/federation.toml says what is trained and on which terms: edit it as you like")
    if len(names) < MIN_SUMMED:
        console.line(f"The server will read each party's numbers, for {TOO_FEW}")
    console.line(f"Send each member its invitation, by a way that only it can read; good once, for {days:g} days:")
    for path in invitations:
        console.line(f"  {path}")
    if address is None:
        console.line("Parties on other machines need `address` in federation.toml, and new invitations after that")
    joins = [f"tertulia join {path.name}      # at the member" for path in invitations[:1]]
    next_steps(f"tertulia serve {directory}", *joins)


def invite(
    directory: FederationPath,
    member: Member,
    days: Days = 7.0,
) -> None:
    """Write an invitation for a new member, or replace one that expired or was lost."""
    from tertulia._disk import atomic_write
    from tertulia._toml import with_value
    from tertulia.federation.identity.keys import member_name
    from tertulia.network.server.federation_directory import FILE, FederationDirectory

    federation, path = FederationDirectory(directory), directory / FILE
    known = federation.file.members
    if member_name(member) not in known:
        atomic_write(path, with_value(path.read_text(encoding="utf-8"), "members", (*known, member)).encode())
        console.line(f"{path}: '{member}' is a member now; the plan is complete when it has joined")
    invitation = federation.invite(member, days)
    console.line(f"{invitation}: send it by a way that only '{member}' can read; it is good once, for {days:g} days")
    next_steps(f"tertulia join {invitation.name}      # at the member")


def serve(directory: FederationPath, metrics: Metrics = None, live: Live = None) -> None:
    """Accept connections of parties and drive the started run. An unfinished run resumes by itself."""
    from tertulia.network.server.federation_directory import FederationDirectory
    from tertulia.network.server.service import FederationServer
    from tertulia.operations.health import on_port

    os.umask(0o077)
    server = FederationServer(FederationDirectory(directory), console.say)
    signal.signal(signal.SIGTERM, server.stop)
    try:
        with on_port(server.monitor, metrics) as port, live_status(directory, live):
            say_metrics_address(port)
            server.serve()
    except KeyboardInterrupt:
        console.say(f"interrupted: `tertulia serve {directory}` goes on from the last round")
        raise typer.Exit(130) from None


def start(
    directory: FederationPath,
    last: Annotated[
        str | None, typer.Option("--from", metavar="LAST", help="Continue a finished run: its id, or `last`.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="Why this run takes place; members read it before they approve.", metavar="TEXT")
    ] = None,
    abandon: Annotated[bool, typer.Option("--abandon", help="Abandon the unfinished run instead.")] = False,
) -> None:
    """Start the run that the members have approved, or resume a stopped one."""
    from tertulia._locks import is_held
    from tertulia.network.server.federation_directory import FederationDirectory
    from tertulia.network.server.run_registry import RunRegistry

    registry = RunRegistry(FederationDirectory(directory))
    if abandon:
        console.line(f"run {registry.abandon()} is given up; federation.toml counts again, and members approve again")
        next_steps("tertulia approve NAME      # at each member", f"tertulia start {directory}")
        return
    registry.federation.check_engine("grpc")
    changed = []
    if last is not None and (known := registry.go_on_from(last)) is not None:
        changed.append(f"the next run goes on from run {known}, as federation.toml says now")
    if reason is not None and registry.give_reason(reason):
        changed.append("the reason is in federation.toml and in the proposal")
    if changed:
        console.line(f"{'; '.join(changed)}; members approve it first")
        next_steps("tertulia approve NAME      # at each member", f"tertulia start {directory}")
        return
    run = registry.start()
    approved = registry.approved_run(run)
    console.line(f"run {run.id} has begun, with {', '.join(approved)}; its plan is pinned")
    if waiting := [party for party in run.parties if party not in approved]:
        console.line(f"no approval yet from {', '.join(waiting)}: a member takes part once `tertulia approve` gives it")
    waits = [] if is_held(directory) else [f"tertulia serve {directory}"]
    next_steps(*waits, f"tertulia status {directory} --watch")


def revoke(
    directory: FederationPath,
    member: Member,
    yes: Sure = False,
) -> None:
    """Revoke the access of a member at once, for good. A run under way continues without it."""
    from tertulia.network.server.federation_directory import FederationDirectory

    members = FederationDirectory(directory).members
    members.check_known(member)
    confirm(f"Revoke the certificate of '{member}' for good?", "not revoked: nothing has changed", yes=yes)
    members.revoke(member)
    console.line(f"'{member}' has no access any more; the next run is without it")
    next_steps(f"tertulia invite {directory} {member}      # if it may come back, with a new key")


def status(
    directory: Annotated[Path, typer.Argument(help="Directory of a run, a federation or a party.")],
    watch: Annotated[bool, typer.Option("--watch", help="Update the display until the run ends.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show which members are connected, which have approved, and the progress of the run."""
    from tertulia.view.watch import is_run, monitor
    from tertulia.view.watch.terminal import view, watch_until_end

    look = monitor(directory)
    if watch and directory.is_dir():
        with suppress(KeyboardInterrupt):  # Ctrl-C ends the display only
            watch_until_end(look, as_json)
    elif is_run(directory):
        console.print_json(look()) if as_json else console.output.print(view(look()))
    elif as_json:
        console.print_json(_status(directory))
    else:
        _print_status(directory, _status(directory))


def _status(directory: Path) -> dict[str, Any]:
    from tertulia.network.party import party_directory as membership

    if (directory / membership.FILE).exists():
        from tertulia.network.party.attendant import status_of_party

        return status_of_party(membership.PartyDirectory(directory))
    from tertulia.network.server.federation_directory import FederationDirectory
    from tertulia.network.server.service import status_of

    return status_of(FederationDirectory(directory))


def _print_status(directory: Path, facts: dict[str, Any]) -> None:
    if "party" in facts:
        rows = [(name, value) for name, value in facts.items() if name != "runs"]
        console.table(f"Party '{facts['party']}'", ["", ""], rows)
        console.records("Runs that were approved", _columns(facts["runs"]))
        for row in facts["runs"][-1:]:
            warn_of_missed({"participation": {facts["party"]: row.get("participation")}})
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
    warn_of_missed(run)
    if not facts["proposal"]["started"]:
        missing = f"; not complete without {', '.join(facts['proposal']['missing'])}"
        last = f", going on from run {facts['proposal']['from']}" * bool(facts["proposal"]["from"])
        console.line(f"run {facts['proposal']['run']}: proposed{last}{missing * bool(facts['proposal']['missing'])}")
    if facts["edited"]:
        console.line("federation.toml or the roster has changed since: that counts for the next run")
    next_steps(*_next(directory, facts))


def warn_of_missed(provenance: dict[str, Any] | None) -> None:
    """Warn of parties that missed more than a tenth of the rounds; take a model's provenance or a run's status."""
    from tertulia.metrics.history import missed_warning

    if warning := missed_warning(provenance or {}):
        console.say(f"warning: {warning}")


def _next(directory: Path, facts: dict[str, Any]) -> list[str]:
    """List the operator's next commands."""
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
    """List the party's next commands."""
    start = f"{facts['kit']}/startup/start.sh" if "kit" in facts else f"tertulia attend {directory}"
    found = [] if facts["attending"] else [start]
    runs = [row for row in facts["runs"] if row["state"] not in ("forgotten", "abandoned")]
    if runs and not runs[-1]["model"] and "kit" not in facts:
        once = "" if runs[-1]["state"] == "finished" else ", once the run is finished"
        found.append(f"tertulia fetch {directory}      # the shared model{once}")
    if fetched := [row["run"] for row in runs if row["model"]]:
        found.append(f"tertulia topics {directory / 'runs' / fetched[-1]}")
    return [*found, f"tertulia check {directory}"]


def _columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give all rows the same columns; `took_part` is known only once there is a model."""
    known = any("took_part" in row for row in rows)
    shown = [{name: value for name, value in row.items() if name != "participation"} for row in rows]
    return [_yes({**row, **({"took_part": row.get("took_part", "")} if known else {})}) for row in shown]


def _yes(row: dict[str, Any]) -> dict[str, Any]:
    said = {name: ("yes" if value else "no") if isinstance(value, bool) else value for name, value in row.items()}
    return {name.replace("_", " "): value for name, value in said.items()}
