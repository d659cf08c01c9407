"""What left a party, on fifteen lines of eighty columns, for whoever answers for its documents: `tertulia privacy`."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tertulia.corpus.vocabulary import Proposal, propose
from tertulia.errors import ConfigError
from tertulia.federation.party.host import PartyHost
from tertulia.federation.party.reports import REPORTS
from tertulia.methods.common.vocabulary import WORDS
from tertulia.privacy.policy import RARE
from tertulia.runs.layout import Run
from tertulia.runs.membership import FILE, PartyDirectory
from tertulia.runs.rehearsal import hosts_of
from tertulia.view.console import size
from tertulia.view.tables import thing_rows
from tertulia.view.totals import Rows, has_documents, totals_of_host

WIDTH, LINES = 80, 15
STRONG, WEAK = 3.0, 10.0  # up to these a document, or a word, can be denied well, or to some degree
_PUBLIC = (" is public", " are public")


class Page(NamedTuple):
    """What an officer reads first of one party."""

    party: str
    verdict: str  # one sentence, or two
    totals: Rows
    things: Rows
    rare_words: str
    refused: str
    assumptions: list[str]

    def lines(self, run: str) -> list[str]:
        """The page as text; of many things the first are shown."""
        head = [f'What left "{self.party}"   run {run[:8]}'[:WIDTH], *_wrap(self.verdict)]
        costs = [_cost_line(row) for row in self.totals]
        foot = [*_wrap(self.rare_words), *_wrap(self.refused), *_wrap(_taken_for_public(self.assumptions), 2)]
        room = LINES - len(head) - len(costs) - len(foot)
        things = [_thing_line(row) for row in self.things]
        if len(things) > room:
            more = len(things) - max(room - 1, 0)
            things = [*things[: max(room - 1, 0)], f"  and {more} more kinds of things: --all lists every release"]
        return [*head, *costs, *things, *foot]


def pages(run: Run, delta: float) -> list[Page]:
    """A page for each party of a run, for the parties' owner."""
    return [page_of(host, delta) for host in hosts_of(run)]


def hosts_in(directory: Path) -> list[PartyHost]:
    """The parties of a run, or the one whose directory this is, as of its newest run."""
    if not (directory / FILE).exists():
        return hosts_of(Run.open(directory))
    runs = PartyDirectory(directory).run_directories()
    if not runs:
        raise ConfigError(
            f"nothing has left {directory}: no run was approved; `tertulia approve {directory}` does that"
        )
    return [PartyHost(runs[-1])]


def page_of(host: PartyHost, delta: float) -> Page:
    """The page of one party."""
    totals = [{**row, "delta": delta} for row in totals_of_host(host, delta)]
    things = thing_rows(host, delta)
    remarks = [a for row in [*totals, *things] for a in row["remarks"].split("; ") if a]
    assumptions = [a for a in dict.fromkeys(remarks) if a.endswith(_PUBLIC) or "at most" in a]
    vacuous = next((row["vacuous"] for row in things if row["vacuous"]), None)
    party, rare = host.config.id, _rare_words(host)
    return Page(party, verdict(totals, vacuous), totals, things, rare, _refused(host), assumptions)


def verdict(totals: Rows, vacuous: str | None = None) -> str:
    """Say in a sentence or two what a reader of all that left can learn.

    >>> verdict([{"unit": "token", "real epsilon": "infinite (non-private)", "words": 1}])
    'NOT PROTECTED. A reader of what left can learn words of single documents.'
    """
    word = number_of(next(row["real epsilon"] for row in totals if row["unit"] == "token"))
    documents = [row for row in totals if row["unit"] == "document"]
    document = max((number_of(row["real epsilon"]) for row in documents), default=math.inf)
    longest = f" of {documents[-1]['words']} words" if documents else ""
    if word == math.inf:
        return "NOT PROTECTED. A reader of what left can learn words of single documents."
    if word == 0:
        return "NOTHING LEFT that depends on a word, under the assumptions below."
    if vacuous is not None:
        return f"PROTECTED IN NAME ONLY: {vacuous}."
    if document <= STRONG:
        return f"PROTECTED. A whole document{longest} can be denied (epsilon {document:.3g})."
    cannot = f"A whole document{longest} cannot (epsilon {document:.4g})." if documents else ""
    if word <= WEAK:
        return f"PROTECTED, WEAKLY. A single word can be denied (epsilon {word:.3g}). {cannot}".rstrip()
    return f"HARDLY PROTECTED. Not even a single word can be denied well (epsilon {word:.4g})."


def level_of(said: str) -> str:
    """How good a verdict is, as pages colour it: "good", "weak" or "bad".

    >>> level_of("PROTECTED, WEAKLY. A single word can be denied (epsilon 8).")
    'weak'
    """
    if said.startswith(("PROTECTED.", "NOTHING LEFT")):
        return "good"
    return "weak" if said.startswith("PROTECTED, WEAKLY") else "bad"


def number_of(epsilon: str) -> float:
    """An epsilon of a table as a number."""
    return math.inf if epsilon.startswith("infinite") else float(epsilon)


def _rare_words(host: PartyHost) -> str:
    """How many words that few documents have were named to the server; the words themselves stay here."""
    if not any(release.what == WORDS.what for release in host.ledger.releases()):
        return "Rare words that left: none (no words were sent)."
    if not has_documents(host):
        return "Rare words that left: not counted, for this run's documents were forgotten."
    sent = _words_sent(host)
    few, one = (sum(count < limit for count in sent.counts) for limit in (RARE, 2))
    withheld = len(propose(host.parts["train"]).words) - len(sent.words)
    return (
        f"Rare words that left: {few} of {len(sent.words)} are in fewer than {RARE} documents, {one} in one only; "
        f"{withheld} were withheld."
    )


def _words_sent(host: PartyHost) -> Proposal:
    """The words that a party has named to the server, with the numbers of its documents that have them."""
    return propose(host.parts["train"], host.policy.word_minimum(host.config.owners))


def rare_words_sent(host: PartyHost) -> list[tuple[str, int]]:
    """The rare words that left, the rarest first: a list for the party's own eyes."""
    if not has_documents(host) or not any(release.what == WORDS.what for release in host.ledger.releases()):
        return []
    sent = _words_sent(host)
    rare = [(word, int(count)) for word, count in zip(sent.words, sent.counts, strict=True) if count < RARE]
    return sorted(rare, key=lambda pair: (pair[1], pair[0]))


def _refused(host: PartyHost) -> str:
    rules = host.refusals()
    counted = ", ".join(f"{rules.count(rule)} by {rule}" for rule in dict.fromkeys(rules))
    return f"Refused: {counted or 'nothing'}."


def _taken_for_public(assumptions: Sequence[str]) -> str:
    public = [a.removesuffix(" is public").removesuffix(" are public") for a in assumptions if a.endswith(_PUBLIC)]
    bounds = [a for a in assumptions if not a.endswith(_PUBLIC)]
    said = [
        f"Taken for public: {'; '.join(public) or 'nothing'}.",
        *([f"Assumed: {'; '.join(bounds)}."] if bounds else []),
    ]
    return " ".join(said)


def _cost_line(row: dict[str, Any]) -> str:
    name = row["of"].replace("a word", "one word").replace("an average", "average").replace("the longest", "longest")
    epsilon = "no bound" if row["real epsilon"].startswith("infinite") else f"epsilon {row['real epsilon']}"
    return f"  {name:<38} {epsilon:<20} delta {row['delta']:g}"[:WIDTH]


def _thing_line(row: dict[str, Any]) -> str:
    times = "once" if row["releases"] == 1 else f"{row['releases']} times"
    cost = "in clear" if row["real epsilon"].startswith("infinite") else f"epsilon {row['real epsilon']}"
    kept = "stays here" if row["verb"] == REPORTS else size(row["bytes"])
    line = f"  {row['what'][:34]:<34} {times:<10} {kept:<10} {'public' if row['mechanism'] == 'public' else cost}"
    return line[:WIDTH]


def _wrap(text: str, most: int = 3) -> list[str]:
    return textwrap.wrap(text, WIDTH, max_lines=most, placeholder=" ... (--all)")
