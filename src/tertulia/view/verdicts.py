"""`tertulia privacy`: the verdict on what left a party, and a summary in fifteen lines of eighty columns.

It is written for the person responsible for the party's documents.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tertulia.corpus.vocabulary import Proposal, propose
from tertulia.errors import ConfigError
from tertulia.federation.party.host import PartyHost
from tertulia.federation.party.reader import PartyReader
from tertulia.federation.party.reports import REPORTS
from tertulia.methods.common.shared_words import CHOSEN, NAMES
from tertulia.methods.common.vocabulary import WORDS
from tertulia.network.party.party_directory import FILE, PartyDirectory
from tertulia.privacy.assumptions import public_thing_or_none
from tertulia.privacy.policy import RARE
from tertulia.privacy.releases import Release
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import hosts_of
from tertulia.view.console import size
from tertulia.view.tables import min_summed_at, thing_rows
from tertulia.view.totals import Rows, epsilon_and_delta, has_documents, totals_of_host

WIDTH, LINES = 80, 15
STRONG, WEAK = 3.0, 10.0  # largest epsilon at which a document can be denied, and a word to some degree
NOT_STATED = "not stated"
MEANING = (  # for readers who do not know the term
    "Epsilon limits what can be learned: by everything that left, the odds that a certain word (document, person) was "
    "there rather than another change at most by the factor e^epsilon (2.7 for epsilon 1, 20 for 3, 2,981 for 8), but "
    "for a chance of about delta."
)
MASKED = (
    "MASKED. Only sums over at least {} parties left, without noise, and words that several have: a server that "
    "follows the protocol sees no single party's numbers, but may guess from what it knows already."
)
_SHORT_MEANING = (
    "Epsilon: by what left, the odds of any guess about one of these change at most e^epsilon-fold (1: 2.7, 3: 20, "
    "8: 2,981), but for a chance of about delta."
)


class Summary(NamedTuple):
    """Summary of what left one party, which an officer reads first."""

    party: str
    verdict: str  # one sentence, or two
    totals: Rows
    things: Rows
    rare_words: str
    refused: str
    assumptions: list[str]
    recipient: str = ""  # the operator's organisation, as the plan states it

    def lines(self, run: str) -> list[str]:
        """Format the summary; of many kinds of releases the first are shown."""
        to = f"to {self.recipient}" if self.recipient else f"recipient {NOT_STATED}"
        head = [f'What left "{self.party}"   run {run[:8]}, {to}'[:WIDTH], *_wrap(self.verdict)]
        costs = [_cost_line(row) for row in self.totals]
        if any(not row["real epsilon"].startswith("infinite") for row in self.totals):
            costs += _wrap(_SHORT_MEANING)
        foot = [*_wrap(self.rare_words), *_wrap(self.refused), *_wrap(_taken_for_public(self.assumptions), 2)]
        room = LINES - len(head) - len(costs) - len(foot)
        things = [_thing_line(row) for row in self.things]
        if len(things) > room:
            more = len(things) - max(room - 1, 0)
            things = [*things[: max(room - 1, 0)], f"  and {more} more kinds of things: --all lists every release"]
        return [*head, *costs, *things, *foot]


def summaries(run: Run, delta: float) -> list[Summary]:
    """Summarise each party of a run, for the parties' owner."""
    return [summary_of(host, delta) for host in hosts_of(run)]


def hosts_in(directory: Path) -> list[PartyHost]:
    """Open the parties of a run, or the party of a directory at its newest run."""
    if not (directory / FILE).exists():
        return hosts_of(Run.open(directory))
    runs = PartyDirectory(directory).run_directories()
    if not runs:
        raise ConfigError(
            f"nothing has left {directory}: no run was approved; `tertulia approve {directory}` does that"
        )
    return [PartyReader(runs[-1])]


def summary_of(host: PartyHost, delta: float) -> Summary:
    """Summarise what left one party."""
    totals = totals_of_host(host, delta)
    things = thing_rows(host, delta)
    remarks = [a for row in [*totals, *things] for a in row["remarks"].split("; ") if a]
    assumptions = [a for a in dict.fromkeys(remarks) if public_thing_or_none(a) is not None or "at most" in a]
    vacuous = next((row["vacuous"] for row in things if row["vacuous"]), None)
    party, rare = host.config.id, _rare_words(host)
    recipient = host.door.plan.operator.get("organisation", "") if host.door.plan else ""
    if host.config.owners == "one":
        recipient = recipient or "nobody (a simulation by one owner)"
    said = verdict(totals, vacuous, masked_over(host.ledger.releases(), min_summed_at(host)))
    return Summary(party, said, totals, things, rare, _refused(host), assumptions, recipient)


def masked_over(releases: Iterable[Release], min_summed: int) -> int | None:
    """Return the fewest parties in a sum if all that left without noise was masked; None if something was not."""
    return min_summed if all(one.hidden for one in releases if one.non_private) else None


def verdict(totals: Rows, vacuous: str | None = None, masked: int | None = None) -> str:
    """Say in one or two sentences what a reader of everything that left can learn.

    `masked` is the fewest parties in a sum, if nothing but masked sums left without noise.

    >>> verdict([{"unit": "token", "real epsilon": "infinite (non-private)", "delta": 1e-6, "words": 1}])
    'NOT PROTECTED. A reader of what left can learn words of single documents.'
    """
    word = number_of(next(row["real epsilon"] for row in totals if row["unit"] == "token"))
    documents = [row for row in totals if row["unit"] == "document"]
    document = max((number_of(row["real epsilon"]) for row in documents), default=math.inf)
    delta = totals[0]["delta"]
    of_word, of_document = (epsilon_and_delta(f"{number:.4g}", delta) for number in (word, document))
    longest = f" of {documents[-1]['words']} words" if documents else ""
    if word == math.inf and masked is not None:
        return MASKED.format(masked)
    if word == math.inf:
        return "NOT PROTECTED. A reader of what left can learn words of single documents."
    if word == 0:
        return "NOTHING LEFT that depends on a word, under the assumptions below."
    if vacuous is not None:
        return f"PROTECTED IN NAME ONLY: {vacuous}."
    if document <= STRONG:
        return f"PROTECTED. A whole document{longest} can be denied ({of_document})."
    if document <= WEAK:
        return f"PROTECTED, WEAKLY. A whole document{longest} can be denied to some degree ({of_document})."
    cannot = f"A whole document{longest} cannot ({of_document})." if documents else ""
    if word <= WEAK:
        return f"PROTECTED, WEAKLY. A single word can be denied ({of_word}). {cannot}".rstrip()
    return f"HARDLY PROTECTED. Not even a single word can be denied well ({of_word})."


def level_of(said: str) -> str:
    """Return the level of a verdict, by which pages colour it: "good", "weak" or "bad".

    >>> level_of("PROTECTED, WEAKLY. A single word can be denied (epsilon 8).")
    'weak'
    """
    if said.startswith(("PROTECTED.", "NOTHING LEFT")):
        return "good"
    return "weak" if said.startswith("PROTECTED, WEAKLY") or is_masked(said) else "bad"


def is_masked(said: str) -> bool:
    """Tell whether a verdict says that only masked sums left without noise."""
    return said.startswith("MASKED")


def number_of(epsilon: str) -> float:
    """Parse an epsilon of a table."""
    return math.inf if epsilon.startswith("infinite") else float(epsilon)


def _rare_words(host: PartyHost) -> str:
    """Count the rare words that were sent to the server, without listing them."""
    things = {release.what for release in host.ledger.releases()}
    if WORDS.what not in things:
        few = things & {NAMES.what, CHOSEN}
        sent_words = "only words that several members have, or chosen under noise" if few else "no words were sent"
        return f"Rare words that left: none ({sent_words})."
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
    """Return the words that a party has sent to the server, with their document counts."""
    return propose(host.parts["train"], host.policy.word_minimum(host.config.owners))


def rare_words_sent(host: PartyHost) -> list[tuple[str, int]]:
    """List the rare words that left, the rarest first; for the party itself only."""
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
    public = [thing for a in assumptions if (thing := public_thing_or_none(a)) is not None]
    bounds = [a for a in assumptions if public_thing_or_none(a) is None]
    said = [
        f"Taken for public: {'; '.join(public) or 'nothing'}.",
        *([f"Assumed: {'; '.join(bounds)}."] if bounds else []),
    ]
    return " ".join(said)


def _cost_line(row: dict[str, Any]) -> str:
    name = row["of"].replace("a word", "one word").replace("an average", "average").replace("the longest", "longest")
    return f"  {name:<38} {epsilon_and_delta(row['real epsilon'], row['delta'])}"[:WIDTH]


def _thing_line(row: dict[str, Any]) -> str:
    unbound = row["real epsilon"].startswith("infinite")
    clear = "masked: totals only" if row["masked"] else "members only" if row["verb"] == "relay" else "in clear"
    cost = clear if unbound else epsilon_and_delta(row["real epsilon"], row["delta"])
    line = f"  {row['what'][:32]:<32} {often(row['releases']):<9} {sent(row):<10} "
    return (line + ("public" if row["mechanism"] == "public" else cost))[:WIDTH]


def often(times: int) -> str:
    """Format the number of answers in which something left.

    >>> often(1), often(8)
    ('once', '8 times')
    """
    return "once" if times == 1 else f"{times} times"


def sent(row: dict[str, Any]) -> str:
    """Format the number of bytes that were sent."""
    if row["verb"] == REPORTS:
        return "stays here"
    return f"up to {size(row['before packing'])}" if row["bytes"] is None else size(row["bytes"])


def _wrap(text: str, most: int = 3) -> list[str]:
    return textwrap.wrap(text, WIDTH, max_lines=most, placeholder=" ... (--all)")
