"""The officer's page: what left one party, in plain words, for whoever answers for its documents; a page to sign."""

from __future__ import annotations

import math
import re
from typing import Any

from tertulia import __version__
from tertulia.federation.party.host import PartyHost
from tertulia.federation.party.reports import REPORTS
from tertulia.methods.common.vocabulary import WORDS
from tertulia.privacy.chain import DOCUMENTS, KEY, MARK, Row
from tertulia.privacy.releases import Release
from tertulia.runs.kept_plans import occasions, plan_and_fact_or_none
from tertulia.view.console import size
from tertulia.view.officer import level_of, number_of, page_of
from tertulia.view.pages.figures import bar, epsilon_scale
from tertulia.view.pages.html import Html, el, join, table, text
from tertulia.view.totals import epsilon

PLAIN = {  # what things are called in a ledger -> how they are called for people
    "words with document counts": "words, each with the number of documents that have it",
    "topic-word distributions": "words by topic (shares), of this party's own model",
    "topic-word counts": "words by topic (counts)",
    "expected topic-word counts": "words by topic (expected counts)",
    "document-topic histograms": "how many documents have so many words of a topic",
    "topic sizes": "how many words each topic has",
    "alpha of topics": "how common each topic is",
    "held-out log likelihood": "score of held-out documents",
    "reports of tokens": "noisy reports of single words",
    "users' tuples": "reports of users' words",
}
SEEN_BY = {
    "each": "the server",
    "sum": "the server's machine; the method sees the sum over parties",
    "mean": "the server's machine; the method sees the mean over parties",
    REPORTS: "nobody: it stays here, and is the noise in what follows",
}


def officer_sections(host: PartyHost, delta: float) -> Html:
    """All sections of the page, from the verdict to the line to sign."""
    found = page_of(host, delta)
    often = occasions(host.ledger.releases())
    numbers = [(_person(row["of"]), number_of(row["real epsilon"])) for row in found.totals]
    return join(
        el("h1", f"What left “{_short(found.party)}”"),
        verdict_box(found.verdict),
        _facts(host),
        el("h2", "What left"),
        table(["what", "how often", "size", "protection", "who can read it"],
              [_thing(row, often[row["what"]]) for row in found.things],
              stacks=True),
        el("p", el("b", "Did not leave: "), "the documents themselves, their ids, dates and labels, and the key that "
           "noise is drawn from. Whatever leaves passes one door, which writes it into the ledger first."),
        el("p", found.refused, " ", found.rare_words, " The words themselves are listed nowhere but at the party."),
        el("h2", "How well somebody can deny what was in it"),
        el("p", "The smaller the number, the less a reader of everything that left can tell whether a single word, or "
           "a whole document, was really there. Each number is for all that left, taken together."),
        epsilon_scale(f"Epsilon of what left {_short(found.party)}", numbers),
        el("p", f"These numbers hold {found.totals[0]['holds']}, at delta {delta:g}, for what is replaced by another "
           "of its kind.", class_="soft"),
        _budgets(host),
        _plan(host),
        _assumptions(found.assumptions),
        _files(host),
        _signature(),
    )  # fmt: skip


def verdict_box(said: str) -> Html:
    """A verdict, coloured; its first words say it, too."""
    head = re.match(r"[A-Z ,]+(?![a-z])", said)
    first = (head[0] if head else said).strip(" ,")
    rest = said.removeprefix(first).lstrip(".:, ")
    return el("p", el("strong", first), el("span", rest[:1].upper() + rest[1:]), class_=f"verdict {level_of(said)}")


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:60]}…"


def _person(of: str) -> str:
    return of.replace("a word", "one word").replace("a user", "a person")


def _thing(row: dict[str, Any], often: int) -> list[Html]:
    times = "once" if often == 1 else f"{often} times"
    kept = "0 B" if row["verb"] == REPORTS else size(row["bytes"])
    members = "; the words that are kept: all members" if row["what"] == WORDS.what else ""
    return [
        text(PLAIN.get(row["what"], row["what"]), 90), text(times), text(kept),
        protection(row["mechanism"], row["real epsilon"]),
        text(SEEN_BY.get(row["verb"], "the server") + members, 120),
    ]  # fmt: skip


def protection(mechanism: str, real: str) -> Html:
    """How a thing was protected, in a word or two."""
    if mechanism == "public":
        return el("span", "declared public")
    if real.startswith("infinite"):
        return el("span", "none", class_="bad")
    return el("span", f"noise, epsilon {real}", class_=f"whole {'good' if number_of(real) <= 3 else 'weak'}")


def entries_of_run(host: PartyHost) -> list[tuple[Row, Release]]:
    """The ledger's entries of this run."""
    rows = [row for row in host.ledger.entries() if not row.entry.id.startswith((DOCUMENTS, KEY, MARK))]
    found = [(row, Release.from_json(row.entry.body)) for row in rows]
    return [(row, release) for row, release in found if release.run == host.config.run]


def facts_list(rows: list[tuple[str, Html | str]]) -> Html:
    """Names and what they are, side by side."""
    return el("dl", [join(el("dt", name), el("dd", value)) for name, value in rows], class_="facts")


def _facts(host: PartyHost) -> Html:
    entries, plan = entries_of_run(host), host.door.plan
    times = sorted(row.entry.time for row, _ in entries if row.entry.time)
    to = sorted({row.entry.recipient for row, _ in entries if row.entry.recipient})
    settings = plan.settings if plan else {}
    topics = f" with {settings['topics']} topics" if "topics" in settings else ""
    mode = {"clear": "without noise", "paper": "with the paper's noise", "sound": "with noise whose guarantee holds"}
    noise = f", {mode[settings['mode']]}" if settings.get("mode") in mode else ""
    parties = join([text(name, 40) if i == 0 else join(", ", text(name, 40)) for i, name in enumerate(plan.roster[:50])]
                   ) if plan else text(host.config.id)  # fmt: skip
    return facts_list([
        ("purpose", f"to train one topic model{topics} together by the method “{plan.method}”{noise}"
         if plan else "a run that this party has forgotten, or agreed to without a plan"),
        ("parties", parties),
        ("dates", f"{_day(times[0])} to {_day(times[-1])} (UTC)" if times else "nothing left yet"),
        ("to", text(", ".join(to), 200) if to else "nobody yet"),
        ("run", el("code", text(host.config.run))),
        ("plan", el("code", plan.hash) if plan else "none"),
        ("version", f"Tertulia {__version__}"),
    ])  # fmt: skip


def _day(time: str) -> str:
    return time[:16].replace("T", " ")


def _budgets(host: PartyHost) -> Html:
    rows = []
    for budget in host.policy.budget:
        spent = host.ledger.cost(budget.unit, budget.adjacency, budget.delta, bounds=host.policy.bounds).epsilon
        left = max(0.0, budget.epsilon - spent)
        unit = {"token": "a word", "document": "a document", "user": "a person"}.get(budget.unit.value, "the party")
        rows.append([
            text(unit), epsilon(spent), f"{left:.4g}", f"{budget.epsilon:g}",
            bar(1.0 if math.isinf(spent) else spent / budget.epsilon, "bad" if left == 0 else "f1"),
        ])  # fmt: skip
    if not rows:
        said = el("p", "This party has set no budget: nothing but its other rules would stop a further run.")
    else:
        said = table(["for", "spent", "left", "budget", "share spent"], rows, numeric="-rrr-")
    return join(el("h2", "Budget"), said)


def _plan(host: PartyHost) -> Html:
    compared = plan_and_fact_or_none(host)
    if compared is None:
        return join(el("h2", "Plan and fact"), el("p", "No plan was kept for this run, so there is none to compare."))
    wrong = [one for one in compared if one.took_place > one.announced]
    fewer = [one for one in compared if one.took_place < one.announced]
    total, happened = sum(one.announced for one in compared), sum(one.took_place for one in compared)
    if wrong:
        said, look = "More left than was announced: ask the operator why, and keep this page.", "bad"
    elif fewer:
        said, look = f"Nothing left that was not announced; {happened} of {total} announced releases took place.", None
    else:
        said, look = f"Plan and ledger agree: {total} announced, {happened} took place.", None
    rows = [[text(PLAIN.get(c.what, c.what), 90), str(c.announced), str(c.took_place)] for c in compared]
    return join(
        el("h2", "Plan and fact"),
        el("p", said, class_=look),
        table(["what", "announced", "took place"], rows, numeric="-rr"),
    )


def _assumptions(assumptions: list[str]) -> Html:
    found = [el("li", text(one, 300)) for one in assumptions] or [el("li", "none")]
    return join(el("h2", "Taken for granted"), el("ul", found))


def _files(host: PartyHost) -> Html:
    home = host.config.home_in(host.directory)
    host.ledger.verify()
    house = host.directory.parents[1]
    if (house / "party.toml").exists():
        stays = " removes documents and answers; the ledger of what left stays."
        gone = join(el("code", f"tertulia forget {house} {host.config.run}"), stays)
    elif host.config.home is not None:
        gone = text("delete the run's directory; the ledger of what left is at the party's home, and stays", 200)
    else:
        gone = text(
            "delete the run's directory; the ledger goes with it, unless `tertulia ledger export` keeps it", 200
        )
    return join(
        el("h2", "Where things lie, and how they are deleted"),
        facts_list([
            ("documents, answers", el("code", text(host.directory, 300))),
            ("ledger, noise key", el("code", text(home, 300))),
            ("to delete", gone),
            ("at the server", "what left lies there until the operator deletes the run; nobody can call it back"),
            ("ledger", join("chain unbroken; last entry and its hash: ", el("code", host.ledger.digest()))),
        ]),
    )  # fmt: skip


def _signature() -> Html:
    return el("div", el("div", "name"), el("div", "place, date"), el("div", "signature"), class_="sign")
