"""`tertulia ledger`: a party's owner looks at the party's ledger, checks it, and takes it away as text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.errors import ConfigError, FormatError
from tertulia.view import console

app = typer.Typer(help="A party's ledger: show it, verify it, export it.", no_args_is_help=True)
HomeDirectory = Annotated[Path, typer.Argument(help="A party's home, or its directory in a run.", metavar="HOME")]


@app.command()
def verify(
    home: HomeDirectory,
    model: Annotated[
        Path | None, typer.Option(help="A model that this party took part in: its digest is looked for.")
    ] = None,
    party: Annotated[str | None, typer.Option(help="The party's name in that model.")] = None,
) -> None:
    """Check that ledger and key belong together, that no entry was changed, and that none a model knows of is lost."""
    from tertulia.privacy.home import open_home

    directory = ledger_directory(home)
    ledger = open_home(directory).ledger
    ledger.verify()
    for digest in digests_in(model, party) if model is not None else ():
        ledger.verify(digest)
    console.output.print(
        f"{directory}: {len(ledger.entries())} entries, none changed, none lost", highlight=False, markup=False
    )


@app.command()
def show(
    home: HomeDirectory, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False
) -> None:
    """List what was charged, when, for whom, under which plan and rules; the noise key is not needed."""
    rows = entries_of(ledger_directory(home))
    if as_json:
        from tertulia.cli.machine import rows_of

        console.print_json({"ledger": rows_of(rows)})
    else:
        console.records(f"The ledger of {home}", rows)


@app.command()
def export(
    home: HomeDirectory,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of JSON lines to write.")],
) -> None:
    """Write every entry with its hash as JSON lines."""
    from tertulia.privacy.ledger import Ledger

    ledger = Ledger(ledger_directory(home) / "ledger.sqlite")
    ledger.export(output)
    console.say(f"{len(ledger.entries())} entries written to {output}")


def ledger_directory(home: Path) -> Path:
    """Where a ledger is: in a home, or where the party's directory of a run says."""
    from tertulia.federation.party.host import PartyConfig

    directory = PartyConfig.load(home).home_in(home) if (home / "party.json").exists() else home
    if not (directory / "ledger.sqlite").exists() and not (directory / "noise.key").exists():
        raise ConfigError(f"{directory} has no ledger: give a party's `home`, or its directory in a run")
    return directory


def entries_of(directory: Path) -> list[dict[str, Any]]:
    """A row for each release."""
    from tertulia.privacy.chain import DOCUMENTS, KEY, MARK
    from tertulia.privacy.ledger import Ledger, Release

    if not (directory / "ledger.sqlite").exists():
        raise FormatError(f"{directory} has a key, but its ledger is missing: restore it from a backup")
    rows = []
    for entry, seq, _ in Ledger(directory / "ledger.sqlite").entries():
        if not entry.id.startswith((DOCUMENTS, KEY, MARK)):
            release = Release.from_json(entry.body)
            rows.append(
                {"entry": seq, "time": entry.time, "what": release.what, "mechanism": release.name,
                 "charged": "yes" if release.charges else "no", "run": release.run, "round": release.round,
                 "recipient": entry.recipient, "plan": entry.plan, "policy": entry.policy}
            )  # fmt: skip
    return rows


def digests_in(model: Path, party: str | None) -> list[str]:
    """The digests of a party's ledger that a model keeps."""
    from tertulia.models import Topics

    found = Topics.load(model / "model" if (model / "run.json").exists() else model).provenance.get("ledgers", {})
    if party is None or party not in found:
        raise ConfigError(f"{model} knows the ledgers of {sorted(found)}: say by --party which of them this is")
    return [str(found[party])]
