"""Commands of a party, run where its documents are: join, approve, attend, fetch, leave, forget, withdraw."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tertulia.cli.model import load_model, say_who_took_part
from tertulia.cli.options import (
    PARTY,
    Documents,
    Live,
    Metrics,
    PartyPath,
    Statements,
    Sure,
    Text,
    Yes,
    ask_statements,
    confirm,
    live_status,
    next_steps,
    say_metrics_address,
)
from tertulia.errors import ConfigError
from tertulia.view import console

if TYPE_CHECKING:
    from tertulia.network.party.approval import Review


def join(
    invitation: Annotated[Path, typer.Argument(help="File that the operator has sent.", metavar="INVITATION")],
    directory: Annotated[Path | None, typer.Option(help="Directory of the party (its name).")] = None,
    documents: Documents = None,
    text: Text = "text",
    stated: Statements = None,
    yes: Yes = False,
) -> None:
    """Join a federation: create a private key, request its certificate, write party.toml and policy.toml."""
    from tertulia.federation.engines.grpc import client
    from tertulia.federation.identity.invitations import Invitation
    from tertulia.federation.identity.keys import readable
    from tertulia.federation.identity.party_identity import Identity
    from tertulia.network.party.party_directory import PartyDirectory, empty_directory, settle

    os.umask(0o077)
    given = Invitation.load(invitation)
    statements = ask_statements(PARTY, stated, yes=yes)  # before the invitation is used: it is good once
    place = empty_directory(directory or Path(given.member))
    if not (place / "identity" / "certificate.pem").exists():  # else an earlier attempt has enrolled
        client.enrol(given, place / "identity")
    if (own := Identity(place / "identity").name) != given.member:
        raise ConfigError(f"{place} holds the identity of '{own}', and the invitation is for '{given.member}'")
    settle(place, given, documents, text, statements)
    party = PartyDirectory(place)
    console.line(f"'{given.member}' is a member of '{given.federation}' now; everything of it is in {place}")
    console.line(f"its key:  {readable(party.identity.fingerprint)}")
    console.line(f"{place}/policy.toml says what may leave: nothing in clear, so far; {place}/party.toml the rest")
    edit = [] if documents else [f"edit {place}/party.toml: say under [documents] where they are"]
    next_steps(*edit, f"tertulia check {place}", f"tertulia approve {place}", f"tertulia attend {place}")


def check_party(directory: Path) -> Mapping[str, Any]:
    """Report what the current proposal would read and disclose."""
    from tertulia.view.dry_run import dry_run

    seen = _consider(directory)
    if missing := seen.proposal.missing:
        console.say(f"{', '.join(missing)} can still join: the plan is complete, and can be approved, when all have")
    report = dry_run(seen.settings, {seen.name: seen.corpus}, seen.proposal.roster)
    console.say(f"next: tertulia approve {directory}")
    return report


def approve(
    directory: PartyPath,
    yes: Annotated[bool, typer.Option("--yes", help="Write the lines and approve without asking.")] = False,
    person: Annotated[
        str | None, typer.Option("--as", help="Who approves, where the policy asks for several people.", metavar="NAME")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="With --as: the file of that person's key.", metavar="FILE")] = None,
) -> None:
    """Show the proposed run, write the policy lines that it needs if you accept them, and approve it."""
    from tertulia.federation.engines.grpc import client
    from tertulia.view.dry_run import dry_run

    os.umask(0o077)
    seen = _consider(directory)
    plan = seen.proposal.own_plan  # checked: complete, and the plan of the server
    _check_person(seen, person, key)
    console.print_dry_run(dry_run(seen.settings, {seen.name: seen.corpus}, seen.proposal.roster))
    seen.check()
    lines = seen.lines_needed()
    accepted = _accepted(directory, lines, yes)
    console.records("Keys of all members: compare them by telephone, with each one", seen.keys())
    console.line(f"run {seen.proposal.run}, plan {plan.hash}")
    if not yes and not typer.confirm("Are these the members' keys, and do you approve of this run?"):
        raise ConfigError("not approved: nothing was written, and nothing will leave")
    _write(seen, accepted)
    if person is not None and key is not None and not _signs(seen, person, key):
        return
    place = seen.lay_out()
    console.line(f"approved: its documents are in {place}/corpus, and answers will be beside them")
    if (kit := seen.party.kit) is not None:  # its answers show that it has approved
        next_steps(f"{kit.directory}/startup/start.sh      # unless it runs already", f"tertulia status {directory}")
        return
    client.approve(seen.party.identity, seen.party.file.server, seen.approval())
    next_steps(
        f"tertulia attend {directory}      # unless it runs already",
        f"tertulia start {seen.party.file.federation}      # by the operator",
        f"tertulia fetch {directory}      # the shared model, once the run is finished",
    )


def _check_person(seen: Review, person: str | None, key: Path | None) -> None:
    """Raise `ConfigError` unless a person and a key are given exactly where the policy asks for several people."""
    needed = seen.approvers.needed
    if (person is None) != (key is None):
        raise ConfigError("--as and --key belong together: give the person's name and the file of their key")
    if needed and person is None:
        raise ConfigError(
            f"this party's policy asks for {needed} people: each types `tertulia approve {seen.party.directory} "
            "--as NAME --key FILE`"
        )
    if person is not None and not needed:
        raise ConfigError("this party's policy asks for one person: leave --as and --key out, or set approvers = 2")


def _signs(seen: Review, person: str, key: Path) -> bool:
    """Record a person's approval; tell whether it was the last one needed."""
    seen.approvers.sign(person, key)
    signed = seen.approvers.signed()
    console.line(f"approved in the ledger of {seen.party.home} by {', '.join(one.name for one in signed)}")
    if missing := max(0, seen.approvers.needed - len(signed)):
        more = console.counted(missing, "more person", "more people")
        console.line(f"{more} must approve before anything is laid out")
        next_steps(f"tertulia approve {seen.party.directory} --as NAME --key FILE")
    return not missing


def approver(
    name: Annotated[str, typer.Argument(help="Name of the person, as policy.toml shall have it.", metavar="NAME")],
    key: Annotated[Path, typer.Option(help="File to write the new key to; only this person keeps it.", metavar="FILE")],
) -> None:
    """Make the key of a person who approves runs, and print the lines that name the person in policy.toml."""
    from tertulia.network.party.approvers import make_key

    lines = make_key(key, name)
    console.say(f"{key} is the key of '{name}': keep it where nobody else can read it. For policy.toml:")
    typer.echo(lines, nl=False)  # to be copied: never wrapped


def _accepted(directory: Path, lines: dict[str, Any], yes: bool) -> dict[str, Any]:
    """Return the lines that the policy needs once all are accepted; with fewer, the run would fail later."""
    from tertulia.privacy.policy_lines import line_of

    if lines:
        console.line(f"{directory}/policy.toml refuses some of this. The plan needs:")
    for key, value in lines.items():
        console.line(f"  {line_of(key, value)}")
        if not yes and not typer.confirm("  write this line?"):
            raise ConfigError(f"not approved: without {line_of(key, value)} the plan cannot be kept")
    return lines


def _write(seen: Review, lines: dict[str, Any]) -> None:
    """Write the accepted lines, and check that the policy now allows the whole plan."""
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


def attend(directory: PartyPath, metrics: Metrics = None, live: Live = None) -> None:
    """Stay connected to the server and answer the requests of approved runs."""
    from tertulia._locks import directory_lock
    from tertulia.federation.engines.grpc.party_session import PartySession
    from tertulia.network.endings import FINISHED
    from tertulia.network.party.attendant import Attendant
    from tertulia.network.party.party_directory import PartyDirectory
    from tertulia.operations.health import Monitor, on_port
    from tertulia.runs.budgets import left_of

    os.umask(0o077)
    party, stop = PartyDirectory(directory), threading.Event()
    file = party.file
    monitor = Monitor("party", file.name, lambda: left_of(party.policy, party.home))
    attendant = Attendant(party, monitor)

    def observe(kind: str, facts: Mapping[str, Any]) -> None:
        console.say(" ".join([kind, *(str(value) for value in facts.values())]))
        if kind in ("connected", "disconnected"):
            attendant.note(connected=kind == "connected")

    def hear(data: bytes) -> None:
        for run, ending in attendant.hear(data).items():
            fetch = f": `tertulia fetch {directory}` gets its model" if ending.state == FINISHED else ""
            console.say(f"run {run} is {ending.state}{fetch}")

    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    held, page = directory_lock(party.runs, again=f"tertulia attend {directory}"), live_status(directory, live)
    with held, on_port(monitor, metrics) as port, page:
        say_metrics_address(port)
        console.say(f"'{file.name}' attends '{file.federation}' at {file.server}; Ctrl-C ends it, and nothing is lost")
        try:
            PartySession(party.identity, file.server, attendant.answer, observe, hear=hear).run(stop)
        except KeyboardInterrupt:
            console.say(f"interrupted: `tertulia attend {directory}` goes on where it was")
            raise typer.Exit(130) from None
        finally:
            attendant.note(connected=False)


def fetch(
    directory: PartyPath,
    run: Annotated[str | None, typer.Argument(help="Run (the newest finished one).", metavar="RUN")] = None,
) -> None:
    """Fetch the shared model of a finished run that this party has approved."""
    from tertulia.network.party.party_directory import PartyDirectory
    from tertulia.network.party.received_models import fetch_run

    os.umask(0o077)
    place = fetch_run(PartyDirectory(directory), run)
    console.line(f"the shared model of run {place.parent.name} is in {place}")
    say_who_took_part(load_model(place))
    next_steps(f"tertulia topics {place.parent}", f"tertulia transform {place} FILE...")


def leave(directory: PartyPath, yes: Sure = False) -> None:
    """Leave the federation for good and answer no run any more. Ledger, policy and documents stay here."""
    from tertulia.federation.engines.grpc import client
    from tertulia.network.party.party_directory import PartyDirectory

    party = PartyDirectory(directory)
    identity = party.identity
    asked = f"Leave '{party.file.federation}' for good? Only a new invitation brings '{party.file.name}' back."
    confirm(asked, "not left: nothing has changed", yes=yes)
    refused = party.refuse_runs()  # before the server knows, and whatever it does
    console.line(f"'{party.file.name}' answers no run any more ({len(refused)} were approved)")
    client.leave(identity, party.file.server)
    console.line(f"'{party.file.name}' has left '{party.file.federation}'; a run under way goes on without it")
    runs = party.run_directories()
    next_steps(*[f"tertulia forget {directory} {run.name}" for run in runs], f"tertulia privacy {directory}")


def forget(
    directory: PartyPath,
    run: Annotated[str, typer.Argument(help="Id of the run, as `tertulia status` prints it.", metavar="RUN")],
    yes: Sure = False,
) -> None:
    """Remove the documents and answers of a run at this party. The ledger stays."""
    from tertulia.network.party.party_directory import PartyDirectory

    party = PartyDirectory(directory)
    party.run_directory(run)  # before anything is asked
    confirm(f"Remove this party's documents, answers and models of run {run}?", "nothing was removed", yes=yes)
    gone = party.forget(run)
    what = f"{', '.join(gone)} removed" if gone else "nothing was left to remove"
    console.line(f"run {run}: {what}; it is answered no more, and what left stays in the ledger")
    next_steps(f"tertulia privacy {directory}")


_CANNOT_BE_RECALLED = (
    "Cannot be called back: totals that the server has received, models trained from them, at every member, and their "
    "cost, which stays in the ledger. Without noise the next run shows by subtraction what is missing."
)


def withdraw(
    directory: PartyPath,
    users: Annotated[
        list[str] | None,
        typer.Option("--user", metavar="ID", help="User (patient) whose documents are withdrawn; can be repeated."),
    ] = None,
    documents: Annotated[
        list[str] | None, typer.Option("--document", metavar="ID", help="Document to withdraw; can be repeated.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Withdraw without asking.")] = False,
) -> None:
    """Withdraw a user or a document permanently: no later run uses it, and nothing of it is reported again."""
    from tertulia.network.party.withdrawal import OVER, UNDER_WAY, Holder
    from tertulia.privacy.withdrawals import counted

    os.umask(0o077)
    if not users and not documents:
        raise ConfigError("nothing to withdraw: give --user ID or --document ID")
    party = Holder.open(directory)
    found = [party.find("user", name) for name in dict.fromkeys(users or ())]
    found += [party.find("document", name) for name in dict.fromkeys(documents or ())]
    for one in found:
        for line in [f"{one.kind} '{one.name}' was withdrawn on {one.since}"] if one.since else one.lines:
            console.line(line)
    if new := [one for one in found if not one.since]:
        if not yes and not typer.confirm("This cannot be undone, not even for a new consent. Withdraw?"):
            raise ConfigError("not withdrawn: nothing was written")
        entry = party.record(new).partition(":")[0]
        what = counted(*(sum(one.kind == kind for one in new) for kind in ("user", "document")))
        console.line(f"withdrawn: {what}; entry {entry} of {party.home}/ledger.sqlite, which names nobody")
    console.line(_CANNOT_BE_RECALLED)
    copies = dict.fromkeys(run for one in found for run in one.runs(UNDER_WAY, OVER))
    next_steps(
        *[f"tertulia forget {directory} {run}      # the documents' copy in this run" for run in copies],
        f"tertulia start {_federation_of(directory)}      # by the operator, without --from: a model that is continued "
        "still carries them",
    )


def _reason(seen: Review) -> str:
    """Say why the operator proposes the run."""
    given = " ".join(seen.proposal.run_settings.operator.reason.split())  # on one line, as it is printed
    return f"reason of the run, by the operator: {given}" if given else "the operator gives no reason for the run"


def _federation_of(directory: Path) -> str:
    """Return the name of a party's federation; of a party of a simulation a placeholder."""
    from tertulia.network.party.party_directory import FILE, PartyDirectory

    return PartyDirectory(directory).file.federation if (directory / FILE).exists() else "FEDERATION"


def _consider(directory: Path) -> Review:
    """Fetch the proposal, and the model that it continues."""
    from tertulia.federation.engines.grpc import client
    from tertulia.network.party.approval import Review
    from tertulia.network.party.party_directory import PartyDirectory

    party = PartyDirectory(directory)
    if party.kit is not None:
        sent = Review.of(party, party.sent_proposal())
        console.say(_reason(sent))
        return sent
    server = party.file.server
    seen = Review.of(party, client.fetch_proposal(party.identity, server))
    console.say(_reason(seen))
    if not seen.proposal.start:
        return seen
    seen = seen.with_start(client.fetch_model(party.identity, server, seen.proposal.start["run"]))
    assert seen.start is not None
    compared = (
        "it is the one that this party fetched, so beginning with it lets nothing more out"
        if seen.start_fetched
        else "this party has no copy of it, and cannot tell whether it is what the members trained"
    )
    console.line(
        f"goes on from run {seen.proposal.start['run']}: {seen.start.n_topics} topics over "
        f"{len(seen.start.vocabulary):,} words, model {seen.proposal.start['hash'][:16]}; {compared}"
    )
    return seen
