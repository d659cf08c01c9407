"""Outputs about releases, planned and past."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tertulia.cli.outputs.base import NO_BOUND, Output

MASKED = "whether only its total over several parties reaches the server"


class Total(Output):
    """Total cost for one unit."""

    party: str
    of: str = Field(description="in words")
    unit: str = Field(description="token, document or user")
    adjacency: str = Field(description="`substitute`: one is replaced by another; `add-remove`: it is there or not")
    words: int | None = Field(description="of that document; null for a user, or if epsilon does not depend on them")
    members: int = Field(description="at how many parties it has documents: 1, or for a user all that may have some")
    claimed_epsilon: float | None = Field(description="the largest claim for this unit; null: none")
    claimed_in: str | None = Field(description="source of the claim")
    claimed_delta: float | None
    real_epsilon: float | None = Field(description=f"against the server; {NO_BOUND}")
    single_reply_epsilon: float | None = Field(
        description=f"against a reader of this party's single replies: larger where parties share noise; {NO_BOUND}"
    )
    audited_lower_bound: float | None = Field(
        description="of epsilon, by `tertulia audit` of these settings; null: not audited, or infinite"
    )
    level: str = Field(description="of the real epsilon: `good` up to 3, `weak` up to 10, else `bad`")
    delta: float = Field(description="at which epsilon holds")
    remarks: list[str]
    holds: str = Field(description="in this run, or in all runs with this home")


class Thing(Output):
    """One kind of release."""

    party: str
    what: str
    mechanism: str
    masked: bool = Field(description=MASKED)
    unit: str
    adjacency: str
    releases: int = Field(description="number of answers in which it left, in this run")
    arrays: int = Field(description="number of arrays; 0 if it stays at the party")
    bytes: int | None = Field(description="sent, after packing; null: not recorded")
    bytes_before_packing: int
    claimed_epsilon: float | None
    claimed_in: str | None = Field(description="source of the claim")
    claimed_delta: float | None
    real_epsilon: float | None = Field(description=NO_BOUND)
    delta: float = Field(description="at which the real epsilon holds")
    remarks: list[str]


class Verdict(Output):
    """Verdict on one party."""

    party: str
    verdict: str
    rare_words: str
    refused: str
    withdrawn: str = Field(description="documents that are never used again; empty if there are none")


class Privacy(Output):
    """What left the parties, and its cost."""

    delta: float
    totals: list[Total]
    privacy: list[Thing]
    verdicts: list[Verdict]


class Read(Output):
    """Documents that a party would read."""

    party: str
    documents: int
    tokens: int
    words: int
    words_of_one_document: int = Field(description="words that would leave although only one document has them")
    summary: str


class BudgetLine(Output):
    """A budget over all runs with the same home."""

    party: str
    of: str = Field(description="unit and adjacency")
    delta: float
    spent_so_far: float | None = Field(description=NO_BOUND)
    this_run: float | None
    after_it: float | None
    budget: float | None = Field(description="null: none was set")
    left: float | None
    reports: list[str]


class Planned(Output):
    """One kind of planned release."""

    party: str
    what: str
    times: int | None = Field(description="number of answers in which it would leave; null: not limited")
    seen: str = Field(description="who can read it")
    masked: bool = Field(description=MASKED)
    mechanism: str
    claimed_epsilon: float | None
    claimed_in: str | None
    claimed_delta: float | None
    real_epsilon: float | None = Field(description=NO_BOUND)
    delta: float = Field(description="at which the real epsilon holds")
    policy: str = Field(description="the file, or `default`")
    verdict: str = Field(description="`allowed`, or the rule that forbids it: then the exit code is 3")


class Recipient(Output):
    """Statements of the operator, which parties approve with the plan."""

    organisation: str
    purpose: str
    legal_basis: str
    retention: str
    reason: str = Field(description="of this run, in the words of the operator")


class Check(Output):
    """Report of a dry run."""

    read: list[Read]
    terms: dict[str, Any] = Field(description="tokenisation, split of documents, and terms")
    recipient: Recipient
    train: dict[str, Any] = Field(description="the settings, as docs/reference.md names them")
    totals: list[Total]
    budgets: list[BudgetLine]
    disclosed: list[Planned]
    remarks: list[str] = Field(description="what masked sums would still tell of single parties")


class Disclosure(Output):
    """One release."""

    party: str
    round: int
    what: str
    shape: list[int] | None = Field(description="of the array; null if nothing left")
    bytes: int | None = Field(description="of the array, sent, after packing; null: not recorded")
    bytes_before_packing: int
    seen: str = Field(description="who can read it")
    masked: bool = Field(description=MASKED)
    mechanism: str
    step: str


class Disclosures(Output):
    """All releases."""

    disclosures: list[Disclosure]


class LedgerLine(Output):
    """An entry of a ledger."""

    entry: int
    time: str | float
    what: str
    mechanism: str
    charged: bool
    run: str
    round: int
    recipient: str
    plan: str
    policy: str


class AuditFinding(Output):
    """A promise, and the lower bound that an attack on canaries shows."""

    part: str = Field(description="`mechanism`, `structure`, `masks`, `tokens` or `documents`")
    party: str = Field(description="at which canaries were planted; empty: no party's documents were used")
    what: str
    unit: str
    adjacency: str
    claimed_epsilon: float | None = Field(description=NO_BOUND)
    lower_bound: float | None = Field(description="of the real epsilon; null: infinite")
    could_have_shown: float | None = Field(description="by a perfect attacker on as many canaries; null: any epsilon")
    delta: float
    canaries: int = Field(description="or draws")
    verdict: str = Field(description="`VIOLATED`: then the exit code is 1")
    note: str


class Audit(Output):
    """Result of an audit."""

    configuration: str = Field(description="hash of the settings that promises depend on")
    confidence: float = Field(description="with which all lower bounds hold together")
    violated: bool
    findings: list[AuditFinding]
    untested: list[str]


class OtherEntries(Output):
    """Entries of one kind that are no releases."""

    entries: list[int] = Field(description="their numbers, which are missing in `ledger`")
    meaning: str


class LedgerOutput(Output):
    """All charges of a ledger, and what its other entries are."""

    ledger: list[LedgerLine]
    no_releases: list[OtherEntries]
