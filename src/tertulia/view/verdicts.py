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
from tertulia.network.party.party_directory import FILE, PartyDirectory
from tertulia.privacy.assumptions import AT_ONE_PARTY, public_thing_or_none
from tertulia.privacy.mechanisms.things import Words, words_in_or_none
from tertulia.privacy.policy import RARE
from tertulia.privacy.reach import AS_HERE
from tertulia.privacy.releases import Release
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import hosts_of
from tertulia.view.console import size
from tertulia.view.tables import min_summed_at, thing_rows
from tertulia.view.totals import (
    PRESENCE,
    STRONG,
    WEAK,
    Rows,
    epsilon_and_delta,
    has_documents,
    is_shared,
    level_of_epsilon,
    totals_of_host,
)

WIDTH, LINES = 80, 15
_BRIEFEST = 3
NOT_STATED = "not stated"
MEANING = (  # for readers who do not know the term
    "Epsilon limits what can be learned: by everything that left, the odds that a certain word (document, person) was "
    "there rather than another (or rather than not) change at most by the factor e^epsilon (2.7 for epsilon 1, 20 for "
    "3, 2,981 for 8), but for a chance of about delta."
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
    withdrawn: str = ""  # documents that are never used again; empty if there are none

    def lines(self, run: str) -> list[str]:
        """Format the summary. Costs go first: where they need the room, explanations and things are left out."""
        to = f"to {self.recipient}" if self.recipient else f"recipient {NOT_STATED}"
        title = f'What left "{self.party}"   run {run[:8]}, {to}'[:WIDTH]
        for brevity in range(_BRIEFEST + 1):
            head, foot = [title, *self._head(brevity)], self._foot(brevity)
            room = LINES - len(head) - len(foot)
            if room > 0:
                break
        things = [_thing_line(row) for row in self.things]
        if len(things) > room:
            more = len(things) - max(room - 1, 0)
            things = [*things[: max(room - 1, 0)], f"  and {more} more kinds of things: --all lists every release"]
        return [*head, *things, *foot]

    def _head(self, brevity: int) -> list[str]:
        """Format verdict and costs; with `brevity` 1 without the meaning of epsilon, with 2 shorter."""
        bounded = any(not row["real epsilon"].startswith("infinite") for row in self.totals)
        costs = [_cost_line(row) for row in _without_repeats(self.totals)]
        meaning = _wrap(_SHORT_MEANING) if bounded and brevity < 1 else []
        return [*_wrap(self.verdict), *costs, *meaning, *_wrap(singly_or_empty(self.totals, brief=brevity > 1))]

    def _foot(self, brevity: int) -> list[str]:
        """Format what is counted and assumed; with the largest `brevity` assumptions have one line."""
        taken = _wrap(_taken_for_public(self.assumptions), 1 if brevity == _BRIEFEST else 2)
        return [*_wrap(self.rare_words), *_wrap(self.refused), *_wrap(self.withdrawn), *taken]


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
    assumptions = [a for a in dict.fromkeys(remarks) if public_thing_or_none(a) is not None or _is_bound(a)]
    vacuous = next((row["vacuous"] for row in things if row["vacuous"]), None)
    party, rare = host.config.id, _rare_words(host)
    recipient = host.door.plan.operator.get("organisation", "") if host.door.plan else ""
    if host.config.owners == "one":
        recipient = recipient or "nobody (a simulation by one owner)"
    said = verdict(totals, vacuous, masked_over(host.ledger.releases(), min_summed_at(host)))
    withdrawn = str(host.ledger.withdrawals())
    return Summary(party, said, totals, things, rare, _refused(host), assumptions, recipient, withdrawn)


def _is_bound(assumption: str) -> bool:
    """Tell whether an assumption limits what one document or user can have."""
    return "at most" in assumption or assumption in (AT_ONE_PARTY, AS_HERE)


def masked_over(releases: Iterable[Release], min_summed: int) -> int | None:
    """Return the fewest parties in a sum if all that left without noise was masked; None if something was not."""
    return min_summed if all(one.hidden for one in releases if one.non_private) else None


def verdict(totals: Rows, vacuous: str | None = None, masked: int | None = None) -> str:
    """Say in one or two sentences what a reader of everything that left can learn.

    `masked` is the fewest parties in a sum, if nothing but masked sums left without noise.

    Where the cost of a document (or a user) that is there or not is finite, it decides: that is the usual statement.

    >>> verdict([{"unit": "token", "real epsilon": "infinite (non-private)", "delta": 1e-6, "words": 1}])
    'NOT PROTECTED. A reader of what left can learn words of single documents.'
    """
    word = _largest(row for row in totals if row["unit"] == "token")
    documents = [row for row in totals if row["unit"] == "document" and row["adjacency"] != PRESENCE]
    document, delta = _largest(documents), totals[0]["delta"]
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
    if (said := _presence_or_none(totals)) is not None:
        return said
    if document <= STRONG:
        return f"PROTECTED. A whole document{longest} can be denied ({of_document})."
    if document <= WEAK:
        return f"PROTECTED, WEAKLY. A whole document{longest} can be denied to some degree ({of_document})."
    cannot = f"A whole document{longest} cannot ({of_document})." if documents else ""
    if word <= WEAK:
        return f"PROTECTED, WEAKLY. A single word can be denied ({of_word}). {cannot}".rstrip()
    return f"HARDLY PROTECTED. Not even a single word can be denied well ({of_word})."


def _largest(rows: Iterable[dict[str, Any]]) -> float:
    return max((number_of(row["real epsilon"]) for row in rows), default=math.inf)


def _presence_or_none(totals: Rows) -> str | None:
    """Give the verdict on documents, or users, that are there or not; None if these have no epsilon that protects.

    It speaks of the unit with the smallest epsilon, and names the others. Where one user may have documents at several
    parties, the epsilon of all members decides for users.
    """
    rows = sorted((row for row in totals if row["adjacency"] == PRESENCE), key=_epsilon_and_size)
    wide = any(row["members"] > 1 for row in rows)
    decisive = [row for row in rows if not wide or row["unit"] != "user" or row["members"] > 1]
    if not decisive or number_of(decisive[0]["real epsilon"]) > WEAK:
        return None
    first = decisive[0]
    alike = [row for row in totals if (row["unit"], row["members"]) == (first["unit"], first["members"])]
    replaced = [f"replaced by another: {row['real epsilon']}" for row in alike if row["adjacency"] != PRESENCE]
    others = [f"{_at(row, wide)}: {row['real epsilon']}" for row in rows if row is not first]
    numbers = "; ".join([epsilon_and_delta(first["real epsilon"], first["delta"]), *replaced[-1:], *others])
    strong = level_of_epsilon(number_of(first["real epsilon"])) == "good"
    how = "PROTECTED. {} can be denied ({})." if strong else "PROTECTED, WEAKLY. {} can be denied to some degree ({})."
    everywhere = f", at all {first['members']} parties," if first["members"] > 1 else ""
    return how.format(f"Whether a {first['unit']} is there or not{everywhere}", numbers)


def _at(row: dict[str, Any], wide: bool) -> str:
    """Name the unit of a row and, if some rows are for all members, the place of a user's documents."""
    if not wide or row["unit"] != "user":
        return f"a {row['unit']}"
    return f"a user at all {row['members']} parties" if row["members"] > 1 else "a user at this party"


def _epsilon_and_size(row: dict[str, Any]) -> tuple[float, bool]:
    """Order rows by epsilon; of equal ones users come first."""
    return number_of(row["real epsilon"]), row["unit"] != "user"


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
    listed = _words_listed(host)
    if "own" not in listed:
        agreed = "agreed" in listed
        sent_words = "only words that several members have, or chosen under noise" if agreed else "no words were sent"
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


def _words_listed(host: PartyHost) -> set[Words | None]:
    """Return which words the things list that left: the party's own, or agreed ones."""
    return {words_in_or_none(release.what) for release in host.ledger.releases()}


def _words_sent(host: PartyHost) -> Proposal:
    """Return the words that a party has sent to the server, with their document counts."""
    return propose(host.parts["train"], host.policy.word_minimum(host.config.owners))


def rare_words_sent(host: PartyHost) -> list[tuple[str, int]]:
    """List the rare words that left, the rarest first; for the party itself only."""
    if not has_documents(host) or "own" not in _words_listed(host):
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


def singly_or_empty(totals: Rows, *, brief: bool = False) -> str:
    """Say what holds against a reader of single replies, if parties share their noise under masks; else nothing."""
    shared = [row for row in totals if is_shared(row)]
    if not shared:
        return ""
    best = min(shared, key=lambda row: number_of(row["single reply epsilon"]))
    name = best["of"] + ("," if "," in best["of"] else "")
    first = "Secure sums: this holds against readers of totals, for parties share the noise. "
    return ("" if brief else first) + (
        f"Against a reader of this party's single replies {name} has "
        f"{epsilon_and_delta(best['single reply epsilon'], best['delta'])}."
    )


def _without_repeats(totals: Rows) -> Rows:
    """Leave out an average document and a replaced user where another row says enough.

    That is the longest document with the same epsilon, or a document (a user) that is there or not.
    """
    present = {row["unit"] for row in totals if row["adjacency"] == PRESENCE}
    sizes = [row for row in totals if row["unit"] == "document" and row["words"] is not None]
    alike = len({row["real epsilon"] for row in sizes}) == 1
    left_out = sizes[:-1] if alike or "document" in present else []
    if "user" in present:
        left_out += [row for row in totals if row["unit"] == "user" and row["adjacency"] != PRESENCE]
    return [row for row in totals if row not in left_out]


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
