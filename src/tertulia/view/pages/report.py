"""`tertulia report`: one file that says what was learned, what left, and whether it was worth it.

It reads a run's directory, a party's, a federation's at its server, or that of `tertulia scenarios`. Each shows what is
there to be seen: at the server nothing of a party's own, at a party nothing of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tertulia import __version__
from tertulia._disk import atomic_write
from tertulia._plain import plain
from tertulia.errors import ConfigError
from tertulia.federation.party.host import PartyHost
from tertulia.models import Topics
from tertulia.runs import federations, membership, scenarios
from tertulia.runs.driver import settings_of
from tertulia.runs.layout import Run
from tertulia.runs.provenance import public_settings
from tertulia.runs.rehearsal import hosts_of
from tertulia.runs.so_far import SoFar, released_models, so_far_or_none
from tertulia.view.console import size
from tertulia.view.officer import level_of, page_of, rare_words_sent
from tertulia.view.pages import project
from tertulia.view.pages.html import Html, details, el, join, page, table, text
from tertulia.view.pages.officer import facts_list, officer_sections, verdict_box
from tertulia.view.pages.project import Section

_MOST = 50  # parties that are named one by one
_LEVELS = ("bad", "weak", "good")


class Subject(NamedTuple):
    """What is there to be seen of a run."""

    directory: Path
    run: Run | None
    hosts: Sequence[PartyHost]  # those whose directories are here
    model: Topics | None
    so_far: SoFar | None
    scenarios: Sequence[dict[str, Any]]


def subject_in(directory: Path) -> Subject:
    """Find out what a directory is."""
    if (directory / membership.FILE).exists():
        return _party_subject(directory)
    if (directory / federations.FILE).exists():
        return _run_subject(_newest_run(directory), [])
    rows, inner = scenarios.kept_rows(directory), directory / "federated"
    return _run_subject(inner if not (directory / "run.json").exists() and inner.exists() else directory, rows)


def _run_subject(directory: Path, rows: Sequence[dict[str, Any]]) -> Subject:
    run = Run.open(directory)
    here = all((run.party_directory(party) / "party.json").exists() for party in run.parties)
    return Subject(directory, run, hosts_of(run) if here else [], _model_or_none(directory), so_far_or_none(run), rows)


def _party_subject(directory: Path) -> Subject:
    runs = membership.PartyDirectory(directory).run_directories()
    if not runs:
        raise ConfigError(
            f"nothing has left {directory}: no run was approved; `tertulia approve {directory}` does that"
        )
    return Subject(runs[-1], None, [PartyHost(runs[-1])], _model_or_none(runs[-1]), None, [])


def _newest_run(directory: Path) -> Path:
    from tertulia.runs.desk import Desk

    federation = federations.Federation(directory)
    newest = Desk(federation).newest()
    if newest is None:
        raise ConfigError(f"{directory} has no run yet: `tertulia start {directory}` begins one")
    return federation.runs / newest


def _model_or_none(directory: Path) -> Topics | None:
    return Topics.load(directory / "model") if (directory / "model" / "model.json").exists() else None


def report(directory: Path | str, party: str | None = None, delta: float = 1e-6) -> str:
    """The whole page; with a party, that party's alone, to be signed."""
    subject = subject_in(Path(directory))
    if party is not None or subject.run is None:
        host = _host(subject, party)
        learned = None if subject.run is not None else _learned(subject)
        title = f"What left {host.config.id[:60]}, run {host.config.run[:8]}"
        return _page(title, officer_sections(host, delta), learned)
    run = subject.run
    title = f"{run.config.get('method', {}).get('name', 'run')}, {len(run.parties)} parties, run {run.id[:8]}"
    return _page(title, _project(subject, run, delta))


def _host(subject: Subject, party: str | None) -> PartyHost:
    found = {host.config.id: host for host in subject.hosts}
    if not found:
        raise ConfigError(
            f"{subject.directory} has no party in it: in a federation of houses each makes its own report, "
            "`tertulia report PARTY`"
        )
    if party is not None and party not in found:
        raise ConfigError(f"{subject.directory} has no party '{party[:100]}': its parties are {sorted(found)}")
    return found[party] if party is not None else next(iter(found.values()))


def _page(title: str, *sections: Html | None) -> str:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    foot = el(
        "footer", f"Made by Tertulia {__version__} on {made}. This file holds everything it shows, and loads nothing."
    )
    return page(title, el("main", *sections, id="content"), foot)


def _learned(subject: Subject) -> Html | None:
    """At a party: what came back, if it was fetched."""
    if subject.model is None:
        return None
    return _with_headings([project.topics_section(subject.model), project.map_section(subject.model)])


def _project(subject: Subject, run: Run, delta: float) -> Html:
    model, so_far = subject.model, subject.so_far
    history = so_far.history if so_far else ()
    sections = [
        project.scenarios_section(subject.scenarios),
        *(_of_model(model, so_far) if model is not None else ()),
        project.convergence_section(history),
        project.data_section(subject.hosts),
        project.traffic_section(history),
        project.settings_section(public_settings(settings_of(run)), _command(subject, run)),
    ]
    return join(
        el("h1", f"A topic model of {len(run.parties)} {'party' if len(run.parties) == 1 else 'parties'}"),
        _numbers(model, history),
        _verdicts(subject, delta),
        None if model is not None else el("p", "The run is not finished: there is no model yet."),
        _head(subject, run),
        _contents(sections),
        _with_headings(sections),
    )


def _of_model(model: Topics, so_far: SoFar | None) -> list[Section | None]:
    state = so_far.state if so_far else None
    by_party = project.parties_section(model, released_models(state), getattr(state, "words", ()))
    return [project.topics_section(model), project.map_section(model), by_party]


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
    """The few numbers that people ask for first."""
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
    if run.keys:
        return f"tertulia start {run.directory.parents[1].name}      # in a federation of houses, once members approve"
    if subject.scenarios and run.directory.name == "federated":
        return "tertulia scenarios run.toml      # with the settings above, and [parties] that say where documents are"
    return "tertulia run run.toml      # with the settings above, and [parties] that say where documents are"


def _head(subject: Subject, run: Run) -> Html:
    names = [text(name, 40) if i == 0 else join(", ", text(name, 40)) for i, name in enumerate(run.parties[:_MOST])]
    names += [text(f" and {len(run.parties) - _MOST} more")] if len(run.parties) > _MOST else []
    rows: list[tuple[str, Html | str]] = [
        ("parties", join(*names)),
        ("took part", text(project.took_part(subject.model, run.parties), 200)),
        ("method", text(run.config.get("method", {}).get("name", ""))),
        ("run", el("code", text(run.id))),
    ]
    ledgers = subject.model.provenance.get("ledgers", {}) if subject.model else {}
    digests = [[text(name, 40), el("code", text(digest, 90))] for name, digest in ledgers.items()][:_MOST]
    more = details("last hashes of the parties' ledgers", table(["party", "digest"], digests)) if digests else None
    return join(facts_list(rows), more)


def _verdicts(subject: Subject, delta: float) -> Html | None:
    """What is said of protection: of the worst party in a box, of all in a table."""
    if not subject.hosts:
        return el("p", "What left each party is in that party's own ledger: `tertulia report PARTY` there shows it.")
    pages = [page_of(host, delta) for host in subject.hosts]
    first = sorted(pages, key=lambda one: _LEVELS.index(level_of(one.verdict)))[:_MOST]
    said = [el("span", text(one.verdict, 200), class_=level_of(one.verdict)) for one in first]
    rows = [[text(one.party, 40), verdict, text(one.rare_words, 200)] for one, verdict in zip(first, said, strict=True)]
    hint = f"tertulia report {subject.directory} --party {pages[0].party}"
    return join(
        verdict_box(first[0].verdict),
        details("party by party, the least protected first",
                table(["party", "verdict", "rare words"], rows, stacks=True),
                el("p", "The whole page of one party, to be signed: ", el("code", text(hint, 200)))),
    )  # fmt: skip


def write_report(directory: Path, output: Path, party: str | None = None, delta: float = 1e-6) -> int:
    """Write the page; returns its size in bytes."""
    content = report(directory, party, delta).encode()
    try:
        output.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"{output} cannot be written ({error.strerror}): choose another place with -o") from error
    return len(content)


def write_rare_words(directory: Path, output: Path, party: str | None) -> int:
    """Write the rare words that left one party, a line each with the number of its documents; returns how many."""
    subject = subject_in(directory)
    if party is None and len(subject.hosts) > 1:
        raise ConfigError("rare words are listed for one party: say by --party for which")
    words = rare_words_sent(_host(subject, party))
    atomic_write(output, "".join(f"{plain(word)}\t{count}\n" for word, count in words).encode())
    return len(words)
