"""A party's commands, in its own house: it joins, looks, approves, attends, fetches; it may leave and forget."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tertulia.cli.federation import Metrics, next_steps, say_where
from tertulia.cli.live import Live, showing
from tertulia.errors import ConfigError
from tertulia.view import console

if TYPE_CHECKING:
    from tertulia.runs.approving import Consideration

Party = Annotated[Path, typer.Argument(help="A party's directory.", metavar="PARTY")]


def join(
    invitation: Annotated[Path, typer.Argument(help="The file that the operator sent.", metavar="INVITATION")],
    directory: Annotated[Path | None, typer.Option(help="Where to put the party; without, its name.")] = None,
    documents: Annotated[Path | None, typer.Option(help="Where its documents are.")] = None,
    text: Annotated[str, typer.Option("--text", help="The column that holds the text.")] = "text",
) -> None:
    """Join a federation: make a key, which never travels, get its certificate, and write party.toml and policy.toml."""
    from tertulia.federation.engines.grpc import calls
    from tertulia.federation.identity.invitations import Invitation
    from tertulia.federation.identity.keys import spoken
    from tertulia.federation.identity.own import Identity
    from tertulia.runs.membership import PartyDirectory, empty_directory, settle

    os.umask(0o077)
    given = Invitation.load(invitation)
    place = empty_directory(directory or Path(given.member))
    if not (place / "identity" / "certificate.pem").exists():  # else this was tried before, and broken off
        calls.enrol(given, place / "identity")
    if (own := Identity(place / "identity").name) != given.member:
        raise ConfigError(f"{place} holds the identity of '{own}', and the invitation is for '{given.member}'")
    settle(place, given, documents, text)
    party = PartyDirectory(place)
    console.line(f"'{given.member}' is a member of '{given.federation}' now; everything of it is in {place}")
    console.line(f"its key:  {spoken(party.identity.fingerprint)}")
    console.line(f"{place}/policy.toml says what may leave: nothing in clear, so far; {place}/party.toml the rest")
    edit = [] if documents else [f"edit {place}/party.toml: say under [documents] where they are"]
    next_steps(*edit, f"tertulia check {place}", f"tertulia approve {place}", f"tertulia attend {place}")


def check_party(directory: Path) -> Mapping[str, Any]:
    """What would be read and leave under what is proposed now."""
    from tertulia.view.dry_run import dry_run

    seen = _consider(directory)
    if missing := seen.proposal.missing:
        console.say(f"{', '.join(missing)} can still join: the plan is complete, and can be approved, when all have")
    report = dry_run(seen.settings)
    console.say(f"next: tertulia approve {directory}")
    return report


def approve(
    directory: Party,
    yes: Annotated[bool, typer.Option("--yes", help="Write the lines, and approve, without being asked.")] = False,
) -> None:
    """Look at the proposed run, write the lines of the policy that it needs if you accept them, and approve it."""
    from tertulia.federation.engines.grpc import calls
    from tertulia.view.dry_run import dry_run

    os.umask(0o077)
    seen = _consider(directory)
    plan = seen.proposal.own_plan  # complete, and the one that the server means
    console.print_dry_run(dry_run(seen.settings))
    seen.check()
    lines = seen.lines_needed()
    accepted = _accepted(directory, lines, yes)
    console.records("Keys of all members: compare them by telephone, with each one", seen.keys())
    console.line(f"run {seen.proposal.run}, plan {plan.hash}")
    if not yes and not typer.confirm("Are these the members' keys, and do you approve of this run?"):
        raise ConfigError("not approved: nothing was written, and nothing will leave")
    _write(seen, accepted)
    place = seen.lay_out()
    console.line(f"approved: its documents are in {place}/corpus, and answers will be beside them")
    if (kit := seen.party.kit) is not None:  # that it has approved shows when it answers
        next_steps(f"{kit.directory}/startup/start.sh      # unless it runs already", f"tertulia status {directory}")
        return
    calls.approve(seen.party.identity, seen.party.file.server, seen.approval())
    next_steps(
        f"tertulia attend {directory}      # unless it runs already",
        "tertulia start      # by the operator",
        f"tertulia fetch {directory}      # the shared model, once the run is finished",
    )


def _accepted(directory: Path, lines: dict[str, Any], yes: bool) -> dict[str, Any]:
    """The lines that the policy needs, if all are accepted: with fewer the run would fail in the middle."""
    from tertulia.privacy.policy_lines import line_of

    if lines:
        console.line(f"{directory}/policy.toml refuses some of this. The plan needs:")
    for key, value in lines.items():
        console.line(f"  {line_of(key, value)}")
        if not yes and not typer.confirm("  write this line?"):
            raise ConfigError(f"not approved: without {line_of(key, value)} the plan cannot be kept")
    return lines


def _write(seen: Consideration, lines: dict[str, Any]) -> None:
    """Write the accepted lines, and see that the policy now allows the whole plan."""
    from tertulia.privacy.policy import write_example
    from tertulia.privacy.policy_lines import write_lines

    if not lines:
        return
    path = seen.party.policy_path
    if not path.exists():
        write_example(path, strict=True)
    write_lines(path, lines)
    if left := seen.lines_needed():
        raise ConfigError(f"{path} still refuses some of the plan: see {', '.join(left)}")


def attend(directory: Party, metrics: Metrics = None, live: Live = None) -> None:
    """Stay connected to the server, and answer what approved runs ask."""
    from tertulia._locks import holding
    from tertulia.federation.engines.grpc.attendance import Attendance
    from tertulia.runs.attending import Attendant
    from tertulia.runs.budgets import left_of
    from tertulia.runs.membership import PartyDirectory
    from tertulia.runs.seeing import Watch, on_port

    os.umask(0o077)
    party, stop = PartyDirectory(directory), threading.Event()
    file = party.file
    watch = Watch("party", file.name, lambda: left_of(party.policy, party.home))
    attendant = Attendant(party, watch)

    def observe(kind: str, facts: Mapping[str, Any]) -> None:
        console.say(" ".join([kind, *(str(value) for value in facts.values())]))
        if kind in ("connected", "disconnected"):
            attendant.note(connected=kind == "connected")

    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    held, page = holding(party.runs, again=f"tertulia attend {directory}"), showing(directory, live)
    with held, on_port(watch, metrics) as port, page:
        say_where(port)
        console.say(f"'{file.name}' attends '{file.federation}' at {file.server}; Ctrl-C ends it, and nothing is lost")
        try:
            Attendance(party.identity, file.server, attendant.answer, observe).run(stop)
        except KeyboardInterrupt:
            console.say(f"interrupted: `tertulia attend {directory}` goes on where it was")
            raise typer.Exit(130) from None
        finally:
            attendant.note(connected=False)


def fetch(
    directory: Party,
    run: Annotated[str | None, typer.Argument(help="The run; without, the newest finished one.", metavar="RUN")] = None,
) -> None:
    """Fetch the shared model of a finished run that this party has approved."""
    from tertulia.runs.fetching import fetch_run
    from tertulia.runs.membership import PartyDirectory

    os.umask(0o077)
    place = fetch_run(PartyDirectory(directory), run)
    console.line(f"the shared model of run {place.parent.name} is in {place}")
    next_steps(f"tertulia topics {place.parent}", f"tertulia transform {place} FILE...")


def leave(directory: Party) -> None:
    """Leave the federation: its certificate opens nothing any more. Ledger, policy and documents stay here."""
    from tertulia.federation.engines.grpc import calls
    from tertulia.runs.membership import PartyDirectory

    party = PartyDirectory(directory)
    calls.leave(party.identity, party.file.server)
    console.line(f"'{party.file.name}' has left '{party.file.federation}'; a run under way goes on without it")
    runs = party.run_directories()
    next_steps(*[f"tertulia forget {directory} {run.name}" for run in runs], f"tertulia privacy {directory}")


def forget(
    directory: Party, run: Annotated[str, typer.Argument(help="The run, as `tertulia status` names it.", metavar="RUN")]
) -> None:
    """Remove a run's documents and answers at this party; the ledger of what left stays."""
    from tertulia.runs.membership import PartyDirectory

    gone = PartyDirectory(directory).forget(run)
    what = f"{', '.join(gone)} removed" if gone else "nothing was left to remove"
    console.line(f"run {run}: {what}; it is answered no more, and what left stays in the ledger")
    next_steps(f"tertulia privacy {directory}")


def _consider(directory: Path) -> Consideration:
    """The proposal as this party sees it."""
    from tertulia.federation.engines.grpc import calls
    from tertulia.runs.approving import Consideration
    from tertulia.runs.membership import PartyDirectory

    party = PartyDirectory(directory)
    if party.kit is not None:
        return Consideration.of(party, party.sent_proposal())
    server = party.file.server
    seen = Consideration.of(party, calls.fetch_proposal(party.identity, server))
    if not seen.proposal.start:
        return seen
    seen = seen.with_start(calls.fetch_model(party.identity, server, seen.proposal.start["run"]))
    assert seen.start is not None
    console.line(
        f"goes on from run {seen.proposal.start['run']}: {seen.start.n_topics} topics over "
        f"{len(seen.start.vocabulary):,} words, model {seen.proposal.start['hash'][:16]}; members have it already, so "
        "beginning with it lets nothing more out"
    )
    return seen
