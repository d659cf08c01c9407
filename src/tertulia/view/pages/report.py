"""`tertulia report`: one page on what was learned, what left the parties, and what the federation is worth.

It reads the directory of a run, a party, a federation at its server, or `tertulia scenarios`. At the server it shows
nothing that belongs to a single party, at a party nothing of other parties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tertulia import __version__
from tertulia._disk import atomic_write, write_page
from tertulia._plain import plain
from tertulia.errors import ConfigError
from tertulia.federation.party.host import PartyHost
from tertulia.federation.party.reader import PartyReader
from tertulia.metrics.history import Participation, participation, participation_in
from tertulia.models import Topics
from tertulia.network.party import party_directory as membership
from tertulia.network.server import federation_directory as federations
from tertulia.operations.progress import Progress, progress_or_none
from tertulia.runs import scenarios
from tertulia.runs.directory import Run
from tertulia.runs.driver import settings_of
from tertulia.runs.one_machine import hosts_of
from tertulia.runs.results import public_settings
from tertulia.view.console import counted, size
from tertulia.view.pages import sections as parts
from tertulia.view.pages.html import Html, details, el, join, page, table, text
from tertulia.view.pages.officer import facts_list, officer_sections, verdict_box
from tertulia.view.pages.sections import Section
from tertulia.view.verdicts import level_of, rare_words_sent, summary_of

_MOST = 50  # number of parties that are listed
_LEVELS = ("bad", "weak", "good")


class Subject(NamedTuple):
    """The subject of a report: a run, and the parts of it that are in the directory."""

    directory: Path
    run: Run | None
    hosts: Sequence[PartyHost]  # parties whose directories are here
    model: Topics | None
    so_far: Progress | None
    scenarios: Sequence[dict[str, Any]]


def subject_in(directory: Path) -> Subject:
    """Find the subject of a report in a directory."""
    if (directory / membership.FILE).exists():
        return _party_subject(directory)
    if (directory / federations.FILE).exists():
        return _run_subject(_newest_run(directory), [])
    rows, inner = scenarios.kept_rows(directory), directory / "federated"
    return _run_subject(inner if not (directory / "run.json").exists() and inner.exists() else directory, rows)


def _run_subject(directory: Path, rows: Sequence[dict[str, Any]]) -> Subject:
    run = Run.open(directory)
    here = all((run.party_directory(party) / "party.json").exists() for party in run.parties)
    return Subject(
        directory, run, hosts_of(run) if here else [], _model_or_none(directory), progress_or_none(run), rows
    )


def _party_subject(directory: Path) -> Subject:
    runs = membership.PartyDirectory(directory).run_directories()
    if not runs:
        raise ConfigError(
            f"nothing has left {directory}: no run was approved; `tertulia approve {directory}` does that"
        )
    return Subject(runs[-1], None, [PartyReader(runs[-1])], _model_or_none(runs[-1]), None, [])


def _newest_run(directory: Path) -> Path:
    from tertulia.network.server.run_registry import RunRegistry

    federation = federations.FederationDirectory(directory)
    newest = RunRegistry(federation).newest()
    if newest is None:
        raise ConfigError(f"{directory} has no run yet: `tertulia start {directory}` begins one")
    return federation.runs / newest


def _model_or_none(directory: Path) -> Topics | None:
    return Topics.load(directory / "model") if (directory / "model" / "model.json").exists() else None


def report(directory: Path | str, party: str | None = None, delta: float = 1e-6) -> str:
    """Build the page; with a party, the page of that party only, for signature."""
    subject = subject_in(Path(directory))
    if party is not None or subject.run is None:
        host = _host(subject, party)
        learned = None if subject.run is not None else _learned(subject)
        title = f"What left {host.config.id[:60]}, run {host.config.run[:8]}"
        known = participation_in(subject.model.provenance) if subject.model is not None else {}
        return _page(title, officer_sections(host, delta, known.get(host.config.id)), learned)
    run = subject.run
    method, parties = run.config.get("method", {}).get("name", "run"), counted(len(run.parties), "party", "parties")
    title = f"{method}, {parties}, run {run.id[:8]}"
    return _page(title, _project(subject, run, delta))


def _host(subject: Subject, party: str | None) -> PartyHost:
    found = {host.config.id: host for host in subject.hosts}
    if not found:
        raise ConfigError(
            f"{subject.directory} has no party in it: in a federation of organisations each makes its own report, "
            "`tertulia report PARTY`"
        )
    if party is not None and party not in found:
        raise ConfigError(f"{subject.directory} has no party '{party[:100]}': its parties are {sorted(found)}")
    return found[party] if party is not None else next(iter(found.values()))


def _page(title: str, *sections: Html | None) -> str:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    foot = el(
        "footer",
        f"Made by Tertulia {__version__} on {made}. This file contains everything it shows, and loads nothing.",
    )
    return page(title, el("main", *sections, id="content"), foot)


def _learned(subject: Subject) -> Html | None:
    """Build the topics of the shared model for the page of a party, if it has fetched the model."""
    if subject.model is None:
        return None
    return _with_headings([parts.topics_section(subject.model), parts.map_section(subject.model)])


def _project(subject: Subject, run: Run, delta: float) -> Html:
    model, so_far = subject.model, subject.so_far
    history = so_far.history if so_far else ()
    known = participation_in(model.provenance if model is not None else {}) or participation(history, run.parties)
    sections = [
        parts.scenarios_section(subject.scenarios),
        *(_of_model(model, so_far) if model is not None else ()),
        parts.participation_section(known),
        parts.convergence_section(history, known),
        parts.data_section(subject.hosts),
        parts.traffic_section(history),
        parts.settings_section(public_settings(settings_of(run)), _command(subject, run)),
    ]
    return join(
        el("h1", f"A topic model of {len(run.parties)} {'party' if len(run.parties) == 1 else 'parties'}"),
        _numbers(model, history),
        _verdicts(subject, delta),
        parts.missed_box(known),
        None if model is not None else el("p", "The run is not finished: there is no model yet."),
        _head(subject, run, known),
        _contents(sections),
        _with_headings(sections),
    )


def _of_model(model: Topics, so_far: Progress | None) -> list[Section | None]:
    found = so_far.topics if so_far else None
    by_party = parts.parties_section(model, found.by_party if found else {}, found.words if found else ())
    return [parts.topics_section(model), parts.map_section(model), by_party]


def _with_headings(sections: Sequence[Section | None]) -> Html:
    return join(*[
        el("section", el("h2", one.title, id=_anchor(i)), one.body) for i, one in enumerate(sections) if one is not None
    ])  # fmt: skip


def _contents(sections: Sequence[Section | None]) -> Html:
    links = [el("li", el("a", one.title, href=f"#{_anchor(i)}")) for i, one in enumerate(sections) if one is not None]
    return el("nav", el("ul", links), class_="contents screen", aria_label="contents")


def _anchor(number: int) -> str:
    return f"part-{number + 1}"


def _numbers(model: Topics | None, history: Sequence[Any]) -> Html:
    """Build the list of key figures."""
    sent = sum(pair[1] for facts in history for pair in facts["bytes"].values())
    score = next((facts["perplexity"] for facts in reversed(history) if "perplexity" in facts), None)
    shown = [
        *([(str(model.n_topics), "topics"), (f"{len(model.vocabulary):,}", "words")] if model is not None else []),
        *([(f"{score:,.0f}", "perplexity, held out")] if isinstance(score, float) else []),
        (str(len(history)), "rounds"),
        (size(sent), "left the parties"),
    ]
    return el("ul", [el("li", el("b", number), name) for number, name in shown], class_="numbers")


def _command(subject: Subject, run: Run) -> str:
    if run.is_federated:
        return f"tertulia start {run.directory.resolve().parents[1].name}      # in a federation, once members approve"
    if subject.scenarios and run.directory.name == "federated":
        return "tertulia scenarios run.toml      # with the settings above, and [parties] that say where documents are"
    return "tertulia run run.toml      # with the settings above, and [parties] that say where documents are"


def _head(subject: Subject, run: Run, known: Mapping[str, Participation]) -> Html:
    names = [text(name, 40) if i == 0 else join(", ", text(name, 40)) for i, name in enumerate(run.parties[:_MOST])]
    names += [text(f" and {len(run.parties) - _MOST} more")] if len(run.parties) > _MOST else []
    rows: list[tuple[str, Html | str]] = [
        ("parties", join(*names)),
        ("took part", text(parts.took_part(subject.model, known, run.parties), 400)),
        ("method", text(run.config.get("method", {}).get("name", ""))),
        ("run", el("code", text(run.id))),
    ]
    ledgers = subject.model.provenance.get("ledgers", {}) if subject.model else {}
    digests = [[text(name, 40), el("code", text(digest, 90))] for name, digest in ledgers.items()][:_MOST]
    more = details("last hashes of the parties' ledgers", table(["party", "digest"], digests)) if digests else None
    return join(facts_list(rows), more)


def _verdicts(subject: Subject, delta: float) -> Html | None:
    """Build the verdict on the least protected party, and a table of all."""
    if not subject.hosts:
        return el(
            "p",
            "What left each party is in that party's own ledger: `tertulia report PARTY`, run at the party, shows it.",
        )
    pages = [summary_of(host, delta) for host in subject.hosts]
    first = sorted(pages, key=lambda one: _LEVELS.index(level_of(one.verdict)))[:_MOST]
    said = [el("span", text(one.verdict, 200), class_=level_of(one.verdict)) for one in first]
    rows = [[text(one.party, 40), verdict, text(one.rare_words, 200)] for one, verdict in zip(first, said, strict=True)]
    hint = f"tertulia report {subject.directory} --party {pages[0].party}"
    return join(
        verdict_box(first[0].verdict),
        details("by party, the least protected first",
                table(["party", "verdict", "rare words"], rows, stacks=True),
                el("p", "The whole page of one party, for signature: ", el("code", text(hint, 200)))),
    )  # fmt: skip


def write_report(directory: Path, output: Path, party: str | None = None, delta: float = 1e-6) -> int:
    """Write the page, and return its size in bytes."""
    content = report(directory, party, delta).encode()
    try:
        write_page(output, content)
    except OSError as error:
        raise ConfigError(f"{output} cannot be written ({error.strerror}): choose another place with -o") from error
    return len(content)


def write_rare_words(directory: Path, output: Path, party: str | None) -> int:
    """Write the rare words that left one party, one line each with its document count; return their number."""
    subject = subject_in(directory)
    if party is None and len(subject.hosts) > 1:
        raise ConfigError("rare words are listed for one party: say by --party for which")
    words = rare_words_sent(_host(subject, party))
    atomic_write(output, "".join(f"{plain(word)}\t{count}\n" for word, count in words).encode())
    return len(words)
