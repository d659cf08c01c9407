"""Commands about privacy: write a policy, show what left and what it costs, and read a party's ledger."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tertulia.cli.json_values import rows_of, verdicts_of
from tertulia.cli.options import AsJson, Delta, HomePath, RunPath
from tertulia.cli.process import UNSURE
from tertulia.errors import ConfigError, FormatError
from tertulia.view import console

if TYPE_CHECKING:
    from tertulia.privacy import chain

ledger = typer.Typer(help="Show, verify or export a party's ledger.", no_args_is_help=True)


def policy(
    path: Annotated[Path, typer.Argument(help="File to write.", metavar="FILE")] = Path("policy.toml"),
    strict: Annotated[
        bool, typer.Option("--strict/--open", help="Allow nothing in the clear; or allow everything.")
    ] = True,
) -> None:
    """Write a commented policy file for a party to edit."""
    from tertulia.privacy.policy import write_example

    console.say(write_example(path, strict=strict))


def disclosures(
    directory: RunPath,
    every: Annotated[bool, typer.Option("--all", help="Print one row for each release.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what left each party: the round, the number of bytes, the mechanism."""
    from tertulia.runs.directory import Run
    from tertulia.runs.one_machine import hosts_of
    from tertulia.view.tables import disclosures_of_hosts, grouped, readers

    hosts = hosts_of(Run.open(directory))
    rows = disclosures_of_hosts(hosts)
    if as_json:
        console.print_json({"disclosures": rows_of(rows)})
    elif every:
        console.records(f"What left each party of {directory}", console.for_people(rows))
    else:
        console.records(f"What left each party of {directory} (--all lists every release)", grouped(hosts))
        for text in readers(rows):
            console.show(text)


def privacy(
    directory: Annotated[Path, typer.Argument(help="Directory of a run or of a party.", metavar="RUN")],
    delta: Delta = 1e-6,
    every: Annotated[bool, typer.Option("--all", help="Also print the cost of each kind, and every release.")] = False,
    as_json: AsJson = False,
) -> None:
    """Summarise what left each party, and its privacy cost for a word, a document and a user."""
    from tertulia.view.tables import disclosures_of_hosts, privacy_of_hosts
    from tertulia.view.totals import totals_of_host
    from tertulia.view.verdicts import hosts_in, summary_of

    hosts = hosts_in(directory)
    found = [summary_of(host, delta) for host in hosts]
    totals = [row for host in hosts for row in totals_of_host(host, delta)]
    if as_json:
        known = {"delta": delta, "totals": rows_of(totals), "privacy": rows_of(privacy_of_hosts(hosts, delta))}
        console.print_json({**known, "verdicts": verdicts_of(found)})
        return
    for page in found:
        console.output.print(
            "\n".join(page.lines(hosts[0].config.run)) + "\n", markup=False, highlight=False, soft_wrap=True
        )
    if every:
        console.print_totals(f"Cost of {directory} at delta {delta:g}", totals)
        things = console.for_people(privacy_of_hosts(hosts, delta))
        console.records("Thing by thing (what is derived adds nothing to its source)", things)
        console.records("Every release", console.for_people(disclosures_of_hosts(hosts)))


@ledger.command()
def verify(
    home: HomePath,
    model: Annotated[
        Path | None, typer.Option(help="Model that this party took part in; the ledger must hold its digest.")
    ] = None,
    party: Annotated[str | None, typer.Option(help="Name of the party in that model.")] = None,
) -> None:
    """Verify that ledger and key match, that no entry was changed, and that no entry a model refers to is missing.

    Without --model, entries missing at the end cannot be detected: then the exit code is 4.
    """
    from tertulia.privacy.snapshots import read_ledger

    directory = ledger_directory(home)
    opened = read_ledger(directory)
    opened.verify()
    for digest in digests_in(model, party) if model is not None else ():
        opened.verify(digest)
    kept = "none lost that the model knows of" if model else "whether any were cut off: cannot tell without --model"
    said = f"{directory}: {len(opened.entries())} entries, none changed; {kept}"
    console.output.print(said, highlight=False, markup=False, soft_wrap=True)
    if model is None:
        raise typer.Exit(UNSURE)


@ledger.command()
def show(
    home: HomePath,
    as_json: AsJson = False,
) -> None:
    """List the charges with their time, recipient, plan and policy. The noise key is not needed."""
    entries = entries_of(ledger_directory(home))
    rows, others = release_rows(entries), other_entries(entries)
    if as_json:
        found = [{"entries": numbers, "meaning": meaning} for meaning, numbers in others.items()]
        console.print_json({"ledger": rows_of(rows), "no_releases": found})
    else:
        console.records(f"The ledger of {home}", rows)
        for meaning, numbers in others.items():
            console.show(f"no releases: {', '.join(map(str, numbers))}: {meaning}")


@ledger.command()
def export(
    home: HomePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write, in JSON Lines.")],
) -> None:
    """Write every entry with its hash as JSON Lines."""
    from tertulia.privacy.snapshots import read_ledger

    opened = read_ledger(ledger_directory(home), with_key=False)
    opened.export(output)
    console.say(f"{len(opened.entries())} entries written to {output}")


_CONSEQUENCES = (
    "What the lost entries charged is counted nowhere any more: lower the budget in policy.toml by it, as far as it is "
    "known. From now on the officer's page says that the entries were lost."
)


@ledger.command("accept-loss")
def accept_loss(
    home: HomePath,
    yes: Annotated[bool, typer.Option("--yes", help="Accept without asking.")] = False,
) -> None:
    """Record that entries of a ledger are lost, which other members know of and no backup has.

    Restore the newest backup of key and ledger first. The party then answers runs with secure sums again.
    """
    from tertulia._locks import directory_lock
    from tertulia.federation.party.host import PartyConfig
    from tertulia.privacy.head_store import HeadStore
    from tertulia.privacy.home import open_home

    os.umask(0o077)
    directory = ledger_directory(home)
    fixed_key = PartyConfig.load(home).noise_key if (home / "party.json").exists() else None
    with directory_lock(directory, wait=console.line):  # no question is being answered
        store = HeadStore(directory)
        missing = store.missing()
        if not missing:
            raise ConfigError(
                f"{directory}: no member is known to hold a later head of this ledger, so there is no loss to accept"
            )
        for line in (*(one.text for one in missing), _CONSEQUENCES):
            console.line(line)
        if not yes and not typer.confirm("This cannot be undone. Accept the loss?"):
            raise ConfigError("not accepted: nothing was written")
        with closing(open_home(directory, fixed_key=fixed_key).ledger) as opened:
            opened.accept_loss(missing)
            store.note_missing([])
            console.line(f"entry {opened.digest().partition(':')[0]} of {directory}/ledger.sqlite records the loss")


def ledger_directory(home: Path) -> Path:
    """Find the directory of a ledger: a home, or the home of a party's directory in a run."""
    from tertulia.federation.party.host import PartyConfig

    directory = PartyConfig.load(home).home_in(home) if (home / "party.json").exists() else home
    if not (directory / "ledger.sqlite").exists() and not (directory / "noise.key").exists():
        raise ConfigError(f"{directory} has no ledger: give a party's `home`, or its directory in a run")
    return directory


def entries_of(directory: Path) -> list[chain.Row]:
    """Read all entries of a ledger from a copy, so that the file stays as it is."""
    from tertulia.privacy.snapshots import read_ledger

    if not (directory / "ledger.sqlite").exists():
        raise FormatError(f"{directory} has a key, but its ledger is missing: restore it from a backup")
    return read_ledger(directory, with_key=False).entries()


def release_rows(entries: Sequence[chain.Row]) -> list[dict[str, Any]]:
    """Return the releases among a ledger's entries, one row each."""
    from tertulia.privacy.charges import NO_RELEASES
    from tertulia.privacy.ledger import Release

    rows = []
    for entry, seq, _ in entries:
        if not entry.id.startswith(NO_RELEASES):
            release = Release.from_json(entry.body)
            rows.append(
                {"entry": seq, "time": entry.time, "what": release.what, "mechanism": release.name,
                 "charged": "yes" if release.charges else "no", "run": release.run, "round": release.round,
                 "recipient": entry.recipient, "plan": entry.plan, "policy": entry.policy}
            )  # fmt: skip
    return rows


def other_entries(entries: Sequence[chain.Row]) -> dict[str, list[int]]:
    """Return the numbers of the entries that are no releases, by what these entries are."""
    from tertulia.privacy.chain import APPROVED, DOCUMENTS, KEY, LOST, MARK, WITHDRAWN

    kinds = {KEY: "the name of the noise key", MARK: "a mark: nothing is protected",
             DOCUMENTS: "which documents were reported (hashes)",
             WITHDRAWN: "a user or a document that was withdrawn (hashes)",
             LOST: "lost entries, whose cost is not counted",
             APPROVED: "approvals of plans, each by one person"}  # fmt: skip
    found: dict[str, list[int]] = {}
    for entry, seq, _ in entries:
        for start, meaning in kinds.items():
            if entry.id.startswith(start):
                found.setdefault(meaning, []).append(seq)
    return found


def digests_in(model: Path, party: str | None) -> list[str]:
    """Return the digests of a party's ledger that a model stores."""
    from tertulia.models import Topics

    found = Topics.load(model / "model" if (model / "run.json").exists() else model).provenance.get("ledgers", {})
    if party is None or party not in found:
        raise ConfigError(f"{model} knows the ledgers of {sorted(found)}: say by --party which of them this is")
    return [str(found[party])]
