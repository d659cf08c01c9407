"""What commands print about what left, or would leave."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tertulia.cli.outputs.base import NO_BOUND, Output


class Total(Output):
    """What everything together costs one unit."""

    party: str
    of: str = Field(description="in words")
    unit: str = Field(description="token, document or user")
    words: int | None = Field(description="of that document; null for a user")
    real_epsilon: float | None = Field(description=NO_BOUND)
    remarks: list[str]
    holds: str = Field(description="in this run, or in all runs with this home")


class Thing(Output):
    """One kind of thing that left, or would leave."""

    party: str
    what: str
    mechanism: str
    unit: str
    adjacency: str
    releases: int = Field(description="how many times")
    claimed_epsilon: float | None
    claimed_in: str | None = Field(description="where the claim is made")
    real_epsilon: float | None = Field(description=NO_BOUND)
    remarks: list[str]


class Verdict(Output):
    """What an officer reads first."""

    party: str
    verdict: str
    rare_words: str
    refused: str


class Privacy(Output):
    """What left, and what it costs."""

    delta: float
    totals: list[Total]
    privacy: list[Thing]
    verdicts: list[Verdict]


class Read(Output):
    """What would be read at a party."""

    party: str
    documents: int
    tokens: int
    words: int
    words_of_one_document: int = Field(description="that would leave though only one document has them")
    summary: str


class BudgetLine(Output):
    """A budget, in all runs from the same home."""

    party: str
    of: str = Field(description="unit and adjacency")
    spent_so_far: float | None = Field(description=NO_BOUND)
    this_run: float | None
    after_it: float | None
    budget: float | None = Field(description="null: none was set")
    left: float | None
    reports: list[str]


class Planned(Output):
    """One kind of thing that would leave."""

    party: str
    what: str
    times: int | None = Field(description="null: as often as it takes")
    seen: str = Field(description="by whom")
    mechanism: str
    claimed_epsilon: float | None
    claimed_in: str | None
    real_epsilon: float | None = Field(description=NO_BOUND)
    policy: str = Field(description="the file, or `default`")
    verdict: str = Field(description="`allowed`, or the rule that forbids it: then the exit code is 3")


class Check(Output):
    """What a run would do."""

    read: list[Read]
    train: dict[str, Any] = Field(description="the settings, as docs/reference.md names them")
    totals: list[Total]
    budgets: list[BudgetLine]
    disclosed: list[Planned]


class Disclosure(Output):
    """One release."""

    party: str
    round: int
    what: str
    shape: list[int] | None = Field(description="of the array; null for what did not leave")
    bytes: int
    seen: str
    mechanism: str
    step: str


class Disclosures(Output):
    """Every release."""

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


class LedgerOutput(Output):
    """What was charged."""

    ledger: list[LedgerLine]
