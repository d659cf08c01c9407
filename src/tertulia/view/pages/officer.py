"""The officer's page: what left one party, in plain words, for signature by the person responsible."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from tertulia import __version__
from tertulia.federation.party.host import PartyHost
from tertulia.federation.party.reports import REPORTS
from tertulia.methods.common.settings import Noise
from tertulia.methods.registry import load_declarations
from tertulia.metrics.history import Participation
from tertulia.privacy.chain import Row
from tertulia.privacy.charges import NO_RELEASES
from tertulia.privacy.mechanisms.things import plain_words, words_in_or_none
from tertulia.privacy.releases import Release
from tertulia.runs.budgets import remainder
from tertulia.runs.release_counts import plan_and_fact_or_none, settings_or_none
from tertulia.view.console import size
from tertulia.view.pages.figures import bar, epsilon_scale
from tertulia.view.pages.html import Html, el, join, table, text
from tertulia.view.tables import min_summed_at, who_learns
from tertulia.view.totals import (
    NOT_AUDITED,
    Rows,
    epsilon,
    epsilon_and_delta,
    is_shared,
    level_of_epsilon,
    remarks_on_places,
)
from tertulia.view.verdicts import MEANING, NOT_STATED, level_of, number_of, often, sent, summary_of

SEEN_BY = {
    "each": "the server",
    "sum": "the server's machine; the method sees the sum over parties",
    "mean": "the server's machine; the method sees the mean over parties",
    "relay": "the other members; the server passes it on, and cannot read it",
    REPORTS: "nobody: it stays here, and is the noise in what follows",
}
MASKED = "nobody: it is masked, and the server learns only the total over at least {} parties"
SHARED = (
    "With secure sums the parties share their noise, and the server, which learns totals only, faces all of it. A "
    "reader of this party's single replies would face this party's share alone: then the last column holds."
)
READER_HEAD = "real, for a reader of single replies"
AUDITED_HEAD = "at least, by an audit"
AUDITED = (
    "These settings were attacked on planted documents (tertulia audit). Its numbers are lower bounds: the real "
    "epsilon must lie above them, and a small one does not show that little is disclosed."
)
OWN = (
    "This party adds all of its noise itself. So the same numbers hold, with secure sums and without, for a reader of "
    "totals and of single replies."
)
_NOISE: dict[Noise, str] = {
    "none": "without noise",
    "paper": "with the paper's noise",
    "sound": "with noise whose guarantee holds",
    "doc": "with noise whose guarantee holds for whole documents",
}


def officer_sections(host: PartyHost, delta: float, took_part: Participation | None = None) -> Html:
    """Build all sections, from the verdict to the signature; `took_part` comes from the model of the run."""
    if host.door.plan is not None:
        load_declarations(host.door.plan.method)
    found = summary_of(host, delta)
    numbers = [(_person(row["of"]), number_of(row["real epsilon"])) for row in found.totals]
    return join(
        el("h1", f"What left “{_short(found.party)}”"),
        verdict_box(_person(found.verdict)),
        _facts(host, took_part),
        _record(host),
        el("h2", "What left"),
        table(["what", "how often", "size", "protection", "who can read it"],
              [_thing(row, min_summed_at(host)) for row in found.things],
              stacks=True),
        _who_learns(host),
        el("p", el("b", "Did not leave: "), "the documents themselves, their ids, dates and labels, and the noise "
           "key. Everything that leaves is written into the ledger first."),
        el("p", found.refused, " ", found.rare_words, " The words themselves are listed only at the party."),
        el("p", found.withdrawn) if found.withdrawn else None,
        el("h2", "How strongly words and documents are protected"),
        el("p", "The smaller the number, the less a reader of everything that left can learn whether a certain word, "
           "or a whole document, was present. Each number is for everything that left, taken together. ", MEANING),
        epsilon_scale(f"Epsilon of what left {_short(found.party)}", numbers),
        _claimed_and_real(found.totals, 1 if host.door.plan is None else len(host.door.plan.roster)),
        el("p", f"These numbers hold {found.totals[0]['holds']}, at delta {delta:g}, if one of these is replaced "
           "by another of the same kind or, where a row says so, is there or not.", class_="soft"),
        _losses(host),
        _budgets(host),
        _plan(host),
        _assumptions(list(map(_person, found.assumptions))),
        _files(host),
        _signature(),
    )  # fmt: skip


def verdict_box(said: str) -> Html:
    """Build the coloured box of a verdict; its first words have the same meaning as the colour."""
    head = re.match(r"[A-Z ,]+(?![a-z])", said)
    first = (head[0] if head else said).strip(" ,")
    rest = said.removeprefix(first).lstrip(".:, ")
    return el("p", el("strong", first), el("span", rest[:1].upper() + rest[1:]), class_=f"verdict {level_of(said)}")


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:60]}…"


def _who_learns(host: PartyHost) -> Html | None:
    """Say who learns what by masked sums, if the run has them."""
    plan = host.door.plan
    return el("p", who_learns(len(plan.roster), plan.min_summed)) if plan is not None and plan.secure else None


def _claimed_and_real(totals: Rows, members: int) -> Html:
    """Build the table of what is claimed and what holds, for readers of totals and of single replies."""
    shared = any(map(is_shared, totals))
    audited = any(row["audited lower bound"] != NOT_AUDITED for row in totals)
    lower = [(AUDITED_HEAD, "audited lower bound")] if audited else []
    names = ["for", "claimed", *(head for head, _ in lower), "real, for the server", READER_HEAD]
    rows = [
        [text(_person(row["of"])), text(_of_claim(row["claimed epsilon"]), 120),
         *(text(row[name]) for _, name in lower),
         *(_number(row[name]) for name in ("real epsilon", "single reply epsilon"))]
        for row in totals
    ]  # fmt: skip
    said = [SHARED if shared else OWN, *([AUDITED] if audited else [])]
    said += map(_person, remarks_on_places(totals, members))
    found = table(names, rows, numeric="--rrr" if audited else "--rr", stacks=True)
    return join(found, [el("p", one, class_="soft") for one in said])


def _of_claim(claim: str) -> str:
    return "nothing" if claim == "none" else f"epsilon {claim}"


def _number(real: str) -> Html:
    return el("span", "no bound" if real.startswith("infinite") else real, class_=level_of_epsilon(number_of(real)))


def _person(of: str) -> str:
    return re.sub(r"\b([Aa]|no) user\b", r"\1 person", of.replace("a word", "one word"))


def _thing(row: dict[str, Any], min_summed: int) -> list[Html]:
    packed = "" if row["verb"] == REPORTS else f" ({size(row['before packing'])} before packing)"
    members = "; the words that are kept: all members" if words_in_or_none(row["what"]) == "own" else ""
    return [
        text(plain_words(row["what"]), 90), text(often(row["releases"])), text(sent(row) + packed),
        protection(row["mechanism"], row["real epsilon"], row["delta"], hidden=_hidden(row)),
        text((MASKED.format(min_summed) if row["masked"] else SEEN_BY.get(row["verb"], "the server")) + members, 120),
    ]  # fmt: skip


def _hidden(row: dict[str, Any]) -> str:
    return "masked, without noise" if row["masked"] else "for members only" if row["verb"] == "relay" else ""


def protection(mechanism: str, real: str, delta: float, *, hidden: str = "") -> Html:
    """Describe the protection of a release in a few words; `hidden` says how it is hidden from the server."""
    if mechanism == "public":
        return el("span", "declared public")
    if real.startswith("infinite"):
        return el("span", hidden or "none", class_="weak" if hidden else "bad")
    said = f"noise, {epsilon_and_delta(real, delta)}"
    return el("span", said, class_=f"whole {level_of_epsilon(number_of(real))}")


def entries_of_run(host: PartyHost) -> list[tuple[Row, Release]]:
    """Return the entries of this run in the ledger."""
    rows = [row for row in host.ledger.entries() if not row.entry.id.startswith(NO_RELEASES)]
    found = [(row, Release.from_json(row.entry.body)) for row in rows]
    return [(row, release) for row, release in found if release.run == host.config.run]


def facts_list(rows: list[tuple[str, Html | str]]) -> Html:
    """Build a list of names and values."""
    return el("dl", [join(el("dt", name), el("dd", value)) for name, value in rows], class_="facts")


def _facts(host: PartyHost, took_part: Participation | None) -> Html:
    entries, plan = entries_of_run(host), host.door.plan
    times = sorted(row.entry.time for row, _ in entries if row.entry.time)
    to = sorted({row.entry.recipient for row, _ in entries if row.entry.recipient})
    settings = settings_or_none(plan) if plan else None
    method = None if settings is None else settings.method
    topics = f" with {method.planned_topics} topics" if method and method.planned_topics else ""
    noise = f", {_NOISE[method.noise]}" if method and method.noise else ""
    parties = join([text(name, 40) if i == 0 else join(", ", text(name, 40)) for i, name in enumerate(plan.roster[:50])]
                   ) if plan else text(host.config.id)  # fmt: skip
    return facts_list([
        ("processing", f"training of one shared topic model{topics} by the method “{plan.method}”{noise}"
         if plan else "a run that this party has forgotten, or approved without a plan"),
        ("parties", parties),
        *([("took part", _rounds(took_part))] if took_part is not None else []),
        ("dates", f"{_day(times[0])} to {_day(times[-1])} (UTC)" if times else "nothing left yet"),
        ("to", text(", ".join(to), 200) if to else "nobody yet"),
        ("run", el("code", text(host.config.run))),
        ("plan", el("code", plan.hash) if plan else "none"),
        *([("approved by", text(approved, 300))] if (approved := _approved_by(host)) else []),
        ("version", f"Tertulia {__version__}"),
    ])  # fmt: skip


def _approved_by(host: PartyHost) -> str:
    """Name the people whose approvals of this plan are in the ledger, with the day."""
    plan = host.door.plan
    found = host.ledger.approvals(host.config.run) if plan else []
    return ", ".join(f"{one.name} ({_day(one.time)})" for one in found if plan and one.plan == plan.hash)


def _rounds(took_part: Participation) -> Html:
    """Format the rounds in which the party took part; mark the text if it missed many."""
    said = f"in {took_part}" if took_part.rounds else f"in none of {took_part.of} rounds"
    return el("span", said, class_="weak" if took_part.missed_many else None)


def _record(host: PartyHost) -> Html:
    """Build the record of processing as the operator and this party state it."""
    operator, own = host.door.plan.operator if host.door.plan else {}, dict(host.policy.record)

    def said(stated: Mapping[str, str], name: str) -> Html:
        return text(stated.get(name) or NOT_STATED, 600)

    return join(
        el("h2", "Recipient, purpose and legal basis"),
        facts_list([
            ("recipient", said(operator, "organisation")),
            ("purpose", said(operator, "purpose")),
            ("reason of this run", said(operator, "reason")),
            ("legal basis of the recipient", said(operator, "legal_basis")),
            ("kept there", said(operator, "retention")),
            ("this party's organisation", said(own, "organisation")),
            ("responsible for its documents", said(own, "controller")),
            ("legal basis of this party", said(own, "legal_basis")),
            ("kept here", said(own, "retention")),
        ]),
        el("p", "The recipient's statements are part of the plan that this party approved; its own are in its policy. "
           "The software does not check them.", class_="soft"),
    )  # fmt: skip


def _day(time: str) -> str:
    return time[:16].replace("T", " ")


def _losses(host: PartyHost) -> Html | None:
    """Say which entries of the ledger were lost, as the party has accepted."""
    found = [el("p", f"Not in these numbers: {loss.text}.", class_="bad") for loss in host.ledger.losses()]
    return join(*found) if found else None


def _budgets(host: PartyHost) -> Html:
    rows = []
    for budget in host.policy.budget:
        spent = host.ledger.cost(budget.unit, budget.adjacency, budget.delta, bounds=host.policy.bounds).epsilon
        left = max(0.0, remainder(budget, spent))
        unit = {"token": "a word", "document": "a document", "user": "a person"}.get(budget.unit.value, "the party")
        rows.append([
            text(unit), epsilon(spent), f"{left:.4g}", f"{budget.epsilon:g}", f"{budget.delta:g}",
            bar(1.0 if math.isinf(spent) else spent / budget.epsilon, "bad" if left == 0 else "f1"),
        ])  # fmt: skip
    if not rows:
        said = el("p", "This party has set no budget: only its other rules limit a further run.")
    else:
        said = table(["for", "spent", "left", "budget", "delta", "share spent"], rows, numeric="-rrrr-")
    return join(el("h2", "Budget"), said)


def _plan(host: PartyHost) -> Html:
    compared = plan_and_fact_or_none(host)
    if compared is None:
        return join(
            el("h2", "Plan and ledger"), el("p", "No plan was stored for this run, so there is nothing to compare.")
        )
    wrong = [one for one in compared if one.took_place > one.announced]
    fewer = [one for one in compared if one.took_place < one.announced]
    total, happened = sum(one.announced for one in compared), sum(one.took_place for one in compared)
    if wrong:
        said, look = "More left than was announced: ask the operator why, and keep this page.", "bad"
    elif fewer:
        said, look = f"Nothing left that was not announced; {happened} of {total} announced releases took place.", None
    else:
        said, look = f"Plan and ledger agree: {total} announced, {happened} took place.", None
    rows = [[text(plain_words(c.what), 90), str(c.announced), str(c.took_place)] for c in compared]
    return join(
        el("h2", "Plan and ledger"),
        el("p", said, class_=look),
        table(["what", "announced", "took place"], rows, numeric="-rr"),
    )


def _assumptions(assumptions: list[str]) -> Html:
    found = [el("li", text(one, 300)) for one in assumptions] or [el("li", "none")]
    return join(el("h2", "Assumptions"), el("ul", found))


def _files(host: PartyHost) -> Html:
    home = host.config.home_in(host.directory)
    host.ledger.verify()
    party = host.directory.parents[1]
    if (party / "party.toml").exists():
        stays = " removes documents and answers; the ledger of what left stays."
        gone = join(el("code", f"tertulia forget {party} {host.config.run}"), stays)
    elif host.config.home is not None:
        gone = text("delete the run's directory; the ledger of what left is at the party's home, and stays", 200)
    else:
        gone = text(
            "delete the run's directory; the ledger goes with it, unless `tertulia ledger export` keeps it", 200
        )
    return join(
        el("h2", "Where the data is stored, and how to delete it"),
        facts_list([
            ("documents, answers", el("code", text(host.directory, 300))),
            ("ledger, noise key", el("code", text(home, 300))),
            ("to delete", gone),
            ("at the server", "what left is stored there until the operator deletes the run; it cannot be recalled"),
            ("ledger", join("hash chain intact; last entry and its hash: ", el("code", host.ledger.digest()))),
        ]),
    )  # fmt: skip


def _signature() -> Html:
    return el("div", el("div", "name"), el("div", "place, date"), el("div", "signature"), class_="sign")
