"""Sections of the report on a run: data, training, topics, comparison with alone and pooled, traffic, settings.

They show only what was released: topics and weights, total scores, bytes. What a party read and dropped is shown only
if one owner has all parties.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np

from tertulia._toml import toml_value
from tertulia.corpus import Corpus, Vocabulary
from tertulia.federation.party.host import PartyHost
from tertulia.metrics.history import KNOWS_LESS, Communication, Participation, describe_missed, describe_participation
from tertulia.models import Topics
from tertulia.models.compare import similarities
from tertulia.models.display import shares_of
from tertulia.view.console import counted, size
from tertulia.view.pages.figures import Bar, Series, bar, bars, heat, lines, topic_map
from tertulia.view.pages.html import Html, details, el, join, table, text
from tertulia.view.plane import hellinger, to_plane

_CARDS, _LISTED = 40, 400  # numbers of topics shown with bars, and as a line
_WORDS = 10
_MOST_MAPPED = 200
_CELLS, _COLUMNS, _CHARTS, _ROWS = 750, 30, 12, 200  # limits of tables and charts by party, so that a page stays small
_PACKAGES = ("tertulia", "numpy", "numba", "scipy", "polars", "dp-accounting")
_LOOKS = {"federated": "f1", "pooled": "f3", "alone": "f2"}
History = Sequence[Mapping[str, Any]]


class Section(NamedTuple):
    """A section of the page, with its heading."""

    title: str
    body: Html


def data_section(hosts: Sequence[PartyHost]) -> Section | None:
    """Build the section on what parties read and dropped, for an owner of all parties."""
    rows = []
    for host in hosts[:_ROWS]:
        stored = host.directory / "corpus"
        if host.config.owners != "one" or not (stored / "corpus.json").exists():
            continue
        corpus = Corpus.load(stored)
        report = corpus.report
        reasons = "; ".join(f"{n} {why}" for why, n in {**report.dropped, **report.noted}.items()) or "nothing"
        rows.append([
            text(host.config.id, 40), f"{report.rows or corpus.n_documents:,}", f"{corpus.n_documents:,}",
            f"{sum(report.dropped.values()):,}", f"{corpus.n_tokens:,}", f"{len(corpus.vocabulary):,}",
            text(reasons, 200),
        ])  # fmt: skip
    if not rows:
        return None
    head = ["party", "rows read", "documents", "dropped", "words in them", "different words", "noted"]
    return Section("What was read", table(head, rows, numeric="-rrrrr-", stacks=True))


def convergence_section(history: History, known: Mapping[str, Participation]) -> Section | None:
    """Build the chart of the score by round."""
    scored = [(float(f["round"]), float(f["perplexity"])) for f in history if "perplexity" in f]
    scored = [point for point in scored if math.isfinite(point[1])]
    if not scored:
        return None
    missed = describe_missed(known)
    note = f"A round's score is of the parties that took part in it: {missed}." if missed else ""
    name, whose = ("the parties of each round", "their") if missed else ("all parties together", "all parties'")
    return Section("Perplexity by round", join(
        lines("Perplexity of held-out documents by round", [Series(name, scored)], x="round",
              y=f"Perplexity of {whose} held-out documents: among how many equally likely words the model "
                "chooses. Lower is better."),
        el("p", text(note, 400), class_="soft") if note else None,
    ))  # fmt: skip


def participation_section(known: Mapping[str, Participation]) -> Section | None:
    """Build the table of rounds that each party took part in, if some were missed; most missed first."""
    if all(one.is_complete for one in known.values()):
        return None
    order = sorted(known, key=lambda party: known[party].count)[:_ROWS]
    looks = {party: "weak" if known[party].missed_many else None for party in order}
    rows = [
        [text(party, 40), el("span", str(known[party]), class_=looks[party]), f"{known[party].count:,}"]
        for party in order
    ]
    more = f" The first {_ROWS} of {len(known)} parties are listed." if len(known) > _ROWS else ""
    return Section("Who took part", join(
        el("p", "A party takes part in a round if it answers every request of that round. A policy that refuses to "
           f"score the model does not count as a missed round.{more}"),
        table(["party", "took part in", "rounds"], rows, numeric="--r"),
    ))  # fmt: skip


def missed_box(known: Mapping[str, Participation]) -> Html | None:
    """Build a warning if a party missed more than a tenth of the rounds."""
    many = {party: one for party, one in known.items() if one.missed_many}
    if not many:
        return None
    said = text(f"{describe_missed(many)}: {KNOWS_LESS}.", 400)
    return el("p", el("strong", "MISSED ROUNDS"), el("span", said), class_="verdict weak")


def topics_section(model: Topics) -> Section:
    """Build the cards of topics with their words, the heaviest first."""
    weights = model.weights
    shown = [topic for topic in model if topic.number not in model.hidden]
    order = sorted(shown, key=lambda topic: -(topic.weight or 0.0))
    cards = [_card(topic.number, topic.name, topic.weight, topic.words) for topic in order[:_CARDS]]
    rest = [
        [str(topic.number), text(" ".join(word[:30] for word, _ in topic.words[:8]), 160),
         "" if topic.weight is None else f"{topic.weight:.1%}"]
        for topic in order[_CARDS:_LISTED]
    ]  # fmt: skip
    more = f" The {_CARDS} heaviest are shown with bars." if rest else ""
    unit = "" if weights is None else f" The share of a topic is its share of {shares_of(model)}."
    return Section(f"{len(shown)} topics over {len(model.vocabulary):,} words", join(
        el("p", f"Bars show the probability of a word in its topic, relative to the topic's first word.{unit}{more}"),
        el("div", cards, class_="cards"),
        details(f"{len(rest)} lighter topics", table(["topic", "words", "share"], rest, numeric="r-r"))
        if rest
        else None,
    ))  # fmt: skip


def _card(number: int, name: str, weight: float | None, words: Sequence[tuple[str, float]]) -> Html:
    share = "" if weight is None else f" · {weight:.1%}"
    first = words[0][1] or 1.0 if words else 1.0
    rows = [
        el("tr", el("td", text(word, 28)), el("td", bar(p / first), class_="grows"))
        for word, p in words[:_WORDS]
        if p > 0
    ]
    title = join(f"{number}", f" {name[:60]}" if name else None, el("span", share, class_="soft"))
    return el("section", el("h3", title), el("table", el("tbody", rows), class_="bars"), class_="card")


def map_section(model: Topics) -> Section | None:
    """Build the map of topics."""
    heavy = np.ones(model.n_topics) if model.weights is None else np.asarray(model.weights, dtype=np.float64)
    topics = [k for k in range(model.n_topics) if k not in model.hidden]
    topics = sorted(topics, key=lambda k: -heavy[k])[:_MOST_MAPPED]
    if len(topics) < 3:
        return None
    places = [(float(x), float(y)) for x, y in to_plane(hellinger(model.topic_word[topics]))]
    names = [f"{k}: {model.names[k] or ' '.join(word[:24] for word, _ in model[k].words[:4])}" for k in topics]
    sizes = [float(heavy[k]) for k in topics]
    return Section("A map of topics", topic_map("A map of topics", places, sizes, names))


def parties_section(model: Topics, released: Mapping[str, Any], words: tuple[str, ...]) -> Section | None:
    """Build the heat map of topics by party, from the models that parties have released."""
    if not released:
        return None
    every = {party: rows for party, rows in released.items() if len(rows)}
    own = {party: Topics(rows, Vocabulary(words)) for party, rows in list(every.items())[:_COLUMNS]}
    if not own:
        return None
    held = np.stack([similarities(model, one, 50).max(axis=1) for one in own.values()], axis=1)
    order = sorted(range(model.n_topics), key=lambda k: -held[k].mean())[: max(10, _CELLS // len(own))]
    rows = [(f"{k}: {' '.join(word[:24] for word, _ in model[k].words[:4])}", held[k].tolist()) for k in order]
    caption = (
        "Similarity of a party's nearest topic: 1 for the same words. Only models that parties have released to the "
        "server are compared."
    )
    if len(every) > len(own):
        caption += f" The first {len(own)} of {len(every)} parties are shown."
    drawn = heat("Which parties hold which topics", list(own), rows[:25], caption)
    more = (
        details(f"{len(rows) - 25} more topics", heat("Further topics", list(own), rows[25:], None))
        if rows[25:]
        else None
    )
    return Section("Topics by party", join(drawn, more))


def scenarios_section(rows: Sequence[Mapping[str, Any]]) -> Section | None:
    """Build the comparison of alone, federated and pooled, on all documents and on each party's own."""
    sound = [row for row in rows if isinstance(row.get("perplexity"), int | float)]
    if not sound:
        return None
    parties = list(dict.fromkeys(p for row in sound for p in row.get("parties", {})))[:_ROWS]
    charts = [
        bars("On the held-out documents of all parties", [
            Bar(str(row["scenario"]), float(row["perplexity"]), f"{row['perplexity']:,.0f}", _look(row))
            for row in sound
        ])
    ]  # fmt: skip
    for party in parties[:_CHARTS]:
        known = [row for row in sound if party in row.get("parties", {})]
        charts.append(
            bars(f"On the held-out documents of {party[:60]}", [
                Bar(str(row["scenario"]), float(row["parties"][party]), f"{row['parties'][party]:,.0f}", _look(row))
                for row in known
            ])
        )  # fmt: skip
    body = [
        [text(row["scenario"]), text(row.get("method", "")), str(row.get("topics", "")), f"{row['perplexity']:,.1f}",
         *(f"{row['parties'][p]:,.1f}" if p in row.get("parties", {}) else "" for p in parties)]
        for row in sound
    ]  # fmt: skip
    head = ["scenario", "method", "topics", "all parties", *(text(p, 24) for p in parties)]
    return Section("What the federation is worth", join(
        el("p", "Perplexity: lower is better. Alone: each party trains a model on its own documents. Federated: the "
           "shared model. Pooled: a model of all documents in one place, for comparison only."),
        charts[0],
        details("on each party's own documents", el("div", *charts[1:], class_="beside"), is_open=len(parties) <= 6)
        if parties else None,
        details("the same as a table", table(head, body, numeric="--r" + "r" * (1 + len(parties)))),
    ))  # fmt: skip


def _look(row: Mapping[str, Any]) -> str:
    """Return the colour class of a scenario; controls are grey."""
    words = str(row["scenario"]).replace(",", " ").split()
    return next((look for name, look in _LOOKS.items() if name in words[:2]), "f0")


def traffic_section(history: History) -> Section | None:
    """Build the tables of bytes by party and by round."""
    if not history:
        return None
    found = Communication.of(history)
    rows = [[text(party, 40), size(up), size(down)] for party, (down, up) in found.by_party.items()][:_ROWS]
    seconds = sum(float(facts.get("seconds", 0.0)) for facts in history)
    series = [
        Series(name, [(float(f["round"]), sum(pair[i] for pair in f["bytes"].values()) / 1024) for f in history], look)
        for name, i, look in (("from parties", 1, "l2"), ("to parties", 0, "l1"))
    ]
    return Section("Traffic", join(
        el("ul",
           el("li", el("b", size(found.bytes_up)), "from parties"),
           el("li", el("b", size(found.bytes_down)), "to parties"),
           el("li", el("b", str(found.rounds)), "rounds"),
           el("li", el("b", f"{seconds:,.1f} s"), "in all rounds"),
           class_="numbers"),
        table(["party", "sent", "received"], rows, numeric="-rr"),
        details("by round", lines("Kilobytes by round", series, x="round", y="kB; orange from parties, blue to them"))
        if len(history) > 1 else None,
    ))  # fmt: skip


def settings_section(settings: Mapping[str, Any], command: str) -> Section:
    """Build the settings, and the command that repeats the run."""
    method = {k: v for k, v in dict(settings.get("method", {})).items() if not isinstance(v, dict) and v is not None}
    first = [[text(name), text(toml_value(value), 80)] for name, value in method.items() if name != "name"]
    return Section("Settings", join(
        el("p", "Method ", el("b", text(settings.get("method", {}).get("name", ""))), ":"),
        table(["setting", "value"], first[:12]),
        details("all settings, as a file", el("pre", el("code", as_toml(settings)))),
        el("h3", "Command to repeat the run"),
        el("pre", el("code", command)),
        el("p", _versions(), class_="soft"),
    ))  # fmt: skip


def as_toml(settings: Mapping[str, Any]) -> str:
    """Format settings as a TOML file, without long word lists."""
    lines_, tables = [], []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            inside = as_toml(value).splitlines()
            inner = [f"[{name}.{line[1:]}" if line.startswith("[") else line for line in inside]
            tables.append("\n".join([f"[{name}]", *inner]))
        elif value is not None and not (name == "words" and isinstance(value, list | tuple) and len(value) > 20):
            lines_.append(f"{name} = {toml_value(value)}")
    return "\n".join([*lines_, *tables])


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"Report made with {', '.join(found)}, on {platform.system()} {platform.machine()}."


def took_part(model: Topics | None, known: Mapping[str, Participation], parties: Sequence[str]) -> str:
    """Describe which parties took part."""
    if model is not None:
        return describe_participation(model.provenance)
    return "; ".join(part for part in (counted(len(parties), "party", "parties"), describe_missed(known)) if part)
