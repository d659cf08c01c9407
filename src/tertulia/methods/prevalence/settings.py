"""Settings of a comparison of parties by topic prevalence."""

from __future__ import annotations

import math
from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tertulia.corpus.periods import Periods
from tertulia.federation.fields import Least, Uncapped
from tertulia.federation.types import message
from tertulia.methods.common.periods import FirstDate, LastDate, PeriodKind, periods_or_none
from tertulia.methods.common.settings import LEAST_EPSILON, PATH, Explained, Positive, Settings

_MARGIN = 1 + 1e-5  # accountants round up: asked for epsilon 1, a ledger must not say 1.000000001


@message
class TableSettings(Settings):
    """A party's table, and the noise under which it leaves. All of it reaches the party, and is checked there."""

    weigh: Literal["documents", "tokens"] = Field(
        "documents", description="what is shared out among topics: each document counts 1, or as many as it has tokens"
    )
    by: PeriodKind = None
    since: FirstDate = None
    until: LastDate = None
    min_documents_per_cell: Annotated[Positive, Uncapped("a larger one only empties cells")] = Field(
        1, description="cells that count fewer documents leave empty; a party's policy can only raise this"
    )
    epsilon: Annotated[float | None, Least(LEAST_EPSILON)] = Field(
        None, gt=0, allow_inf_nan=False, description="what the release costs a document; None: no noise"
    )
    delta: Annotated[float, Least(1e-300)] = Field(
        1e-6, gt=0, lt=1, description="the chance that epsilon fails: well below 1 / documents"
    )
    adjacency: Literal["add-remove", "substitute"] = Field(
        "add-remove", description="whether a document is there or not, or becomes another: sensitivity 1 or √2"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        periods_or_none(self.by, self.since, self.until)
        if self.epsilon is not None and self.weigh == "tokens":
            raise ValueError(
                "epsilon goes with weigh = 'documents': a long document moves counts of tokens by its whole length"
            )
        return self

    @property
    def periods(self) -> Periods | None:
        """The agreed periods."""
        return periods_or_none(self.by, self.since, self.until)

    @property
    def sensitivity(self) -> float:
        """How far one document can move the table, in the L2 norm: its shares are not negative and sum to 1."""
        return 1.0 if self.adjacency == "add-remove" else math.sqrt(2)

    @property
    def sigma(self) -> float:
        """The deviation of the noise on each cell, in documents; 0: none."""
        from tertulia.privacy.mechanisms.gaussian import sigma_for

        if self.epsilon is None:
            return 0.0
        return sigma_for(self.epsilon, self.delta, 1, self.sensitivity) * _MARGIN


class PrevalenceSettings(TableSettings, Explained):
    """How much of each topic every party, or group of parties, has."""

    model: str = Field(description="the directory of the shared model", json_schema_extra=PATH)
    groups: dict[str, tuple[str, ...]] = Field(
        {}, description="groups of parties, of which only the sums are used; empty: each party by itself"
    )

    @model_validator(mode="after")
    def _groups_are_apart(self) -> Self:
        small = [name for name, members in self.groups.items() if len(set(members)) < 2]
        if small:
            raise ValueError(f"group '{small[0]}' has fewer than two parties: their sum would be one party's own")
        members = Counter(party for group in self.groups.values() for party in group)
        if members and members.most_common(1)[0][1] > 1:
            raise ValueError(f"party '{members.most_common(1)[0][0]}' is in two groups: put it into one")
        return self
