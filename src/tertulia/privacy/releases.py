"""The record of one release: what left a party, when, under which mechanism."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NotRequired, Self, TypedDict, Unpack

from tertulia._arrays import Array
from tertulia._kinds import check_fields
from tertulia.errors import FormatError, Unreleased
from tertulia.privacy.adjacency import Bounds
from tertulia.privacy.assumptions import AT_ONE_PARTY
from tertulia.privacy.mechanisms import Adjacency, Claim, Derived, EventData, Mechanism, Unit
from tertulia.privacy.reported_documents import Charged, limits_or_none

_UNWRITTEN = (
    "limits",
    "documents_of_user",
    "unnamed_users",
    "charged",
    "masked",
    "agreed",
    "user_at",
)  # or only where they say something


class Occasion(TypedDict):
    """The question that a release answers, and its party; `id` is its name in the ledger."""

    id: str
    party: str
    round: int
    step: str
    verb: str
    message_hash: str
    run: NotRequired[str]
    masked: NotRequired[bool]
    agreed: NotRequired[bool]
    user_at: NotRequired[int | None]


@dataclass(frozen=True)
class Release:
    """One line of the ledger. `event` is a dp-accounting event as data, None only for post-processing."""

    id: str
    name: str
    what: str
    party: str
    round: int
    step: str
    verb: str
    message_hash: str
    parents: tuple[str, ...]  # "raw:<party>", or the ids of earlier releases
    event: EventData | None
    unit: Unit
    adjacency: Adjacency
    sensitivity: float
    params: dict[str, Any]
    claimed: Claim | None
    assumptions: tuple[str, ...]
    metric: bool
    local: bool
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    run: str = ""
    masked: bool = False  # only its sum with those of other parties reaches the server
    agreed: bool = False  # it names words on which several members have agreed
    limits: Bounds | None = None  # in force when it was charged; before that, what its mechanism sees to by itself
    documents_of_user: int | None = 1  # one user's, where each document is charged as a user; None: nobody counted
    unnamed_users: bool = False  # some documents did not say whose they are
    user_at: int | None = None  # at how many members one user may have documents, by the plan; None: not recorded
    charged: Charged | None = field(default=None, compare=False, repr=False)  # by the ledger; None: not yet

    @classmethod
    def of(cls, mechanism: Mechanism, x: Array, **occasion: Unpack[Occasion]) -> Self:
        """Describe the release of `x` by a mechanism."""
        m = mechanism
        return cls(
            name=m.name, what=m.what, parents=_parents(m, occasion["party"]), event=m.charge(), unit=m.unit,
            adjacency=m.adjacency, sensitivity=float(m.sensitivity), params=m.params(), claimed=m.claimed,
            assumptions=m.assumptions, metric=m.metric, local=m.local, shape=tuple(x.shape), dtype=str(x.dtype),
            nbytes=int(x.nbytes), limits=None if (n := m.documents_per_user) is None else Bounds(None, n), **occasion,
        ).with_users()  # fmt: skip

    def with_users(self) -> Self:
        """Return the release with the assumption on users as its plan makes it; one without noise needs none."""
        rest = tuple(one for one in self.assumptions if one != AT_ONE_PARTY)
        if not self.charges or self.non_private:
            plain = self.user_at is None and len(rest) == len(self.assumptions)
            return self if plain else replace(self, user_at=None, assumptions=rest)
        return replace(self, assumptions=(*rest, AT_ONE_PARTY) if self.user_at == 1 else rest)

    def version(self, number: int) -> Self:
        """Return the release of a later version: an edited document is reported again, and charged again."""
        return replace(self, id=version_id(self.id, number))

    def says_the_same(self, other: Release) -> bool:
        """Return whether two records are of one release, under any limits, and whatever is assumed of users."""
        one, two = (
            replace(r, limits=None, documents_of_user=None, unnamed_users=False, user_at=None).with_users()
            for r in (self, other)
        )
        return one == two

    @property
    def charges(self) -> bool:
        """Whether it costs privacy: what is public or derived from releases does not."""
        return self.event is not None and self.event["type"] != "NoOpDpEvent"

    @property
    def hidden(self) -> bool:
        """Whether the server learns nothing of this party alone by it, but for words that several members have."""
        return self.masked or self.agreed or self.verb == "relay"

    @property
    def non_private(self) -> bool:
        """Whether it leaves unprotected."""
        return self.event is not None and self.event["type"] == "NonPrivateDpEvent"

    def to_json(self) -> str:
        """Write one line of JSON, the same for equal releases."""
        known = {name: value for name, value in vars(self).items() if name not in _UNWRITTEN}
        fields: dict[str, Any] = known | {  # nothing below is changed, so nothing need be copied
            "unit": self.unit.value,
            "adjacency": self.adjacency.value,
            "sensitivity": str(self.sensitivity),  # JSON knows no infinity
        }
        if self.claimed is not None:
            fields["claimed"] = asdict(self.claimed) | {"epsilon": str(self.claimed.epsilon)}
        if self.limits is not None:
            fields["limits"] = [self.limits.tokens_per_document, self.limits.documents_per_user]
        if self.unit is Unit.USER and self.local and self.documents_of_user is not None:
            fields["documents_of_user"] = self.documents_of_user
        for name in ("unnamed_users", "masked", "agreed"):
            if getattr(self, name):
                fields[name] = True
        if self.user_at is not None:
            fields["user_at"] = self.user_at
        return json.dumps(fields, sort_keys=True, allow_nan=False, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Rebuild what `to_json` wrote; raise `FormatError` on anything else."""
        try:
            found = cls._from_json(line)
            check_fields(cls, vars(found))
            if found.event is not None:
                str.encode(found.event["type"])
            return found
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise FormatError(f"a ledger's row is damaged ({error}): restore the ledger from a backup") from error

    @classmethod
    def _from_json(cls, line: str) -> Self:
        fields = json.loads(line)
        fields.pop("views", None)  # in rows that began in ledgers of format 1
        tuples = {name: tuple(fields[name]) for name in ("parents", "assumptions", "shape")}
        by_user = fields["unit"] == Unit.USER.value and fields["local"]
        claim = fields["claimed"] and Claim(**fields["claimed"])
        return cls(**fields | tuples | {
            "unit": Unit(fields["unit"]),
            "adjacency": Adjacency(fields["adjacency"]),
            "sensitivity": float(fields["sensitivity"]),
            "limits": limits_or_none(fields.get("limits")),
            "documents_of_user": fields.get("documents_of_user", None if by_user else 1),
            "claimed": claim and replace(claim, epsilon=float(claim.epsilon)),
        })  # fmt: skip


def version_id(charge: str, number: int) -> str:
    """Return the id of the charge for the n-th version of documents."""
    return charge if number == 1 else f"{charge}/version {number}"


def _parents(mechanism: Mechanism, party: str) -> tuple[str, ...]:
    """Return where the array comes from; the parents of post-processing must all be releases."""
    if not isinstance(mechanism, Derived):
        return (f"raw:{party}",)
    ids = [parent if isinstance(parent, str) else getattr(parent, "release_id", None) for parent in mechanism.parents]
    if not ids or not all(ids):
        raise Unreleased(
            f"'{mechanism.what}' is said to be derived from releases, but {len(ids) - sum(map(bool, ids))} of its "
            f"{len(ids)} parents are none: release the parents first, or use a mechanism that charges"
        )
    return tuple(str(i) for i in ids)
