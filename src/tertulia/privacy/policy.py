"""A party's own `policy.toml`: rules for what may leave. The party reads and enforces it, never the server."""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError, model_validator

from tertulia._toml import toml_value
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.privacy.adjacency import Bounds
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.releases import Release

if TYPE_CHECKING:
    from tertulia.privacy.ledger import Ledger

_Names = tuple[StrictStr, ...]
_Count = Annotated[int, Field(gt=0)]
REPLIES = ("each", "sum", "mean")  # the verbs under which a party's own reply reaches the server's machine
_FORMER_KEYS = {  # of policies at the time when ledgers held no limits
    "allow_clear", "declared_public", "allow_single", "allow_metrics", "score_epsilon", "max_bytes_per_round",
    "max_bytes_per_run", "max_bytes_per_day", "max_tokens_per_document", "max_documents_per_user",
    "min_documents_per_cell", "max_topics", "max_words", "max_cells", "max_rounds", "max_sweeps", "max_question_bytes",
    "log_details", "min_documents_per_word", "budget",
}  # fmt: skip
_ROUNDING = 1e-9  # relative, of sums of logarithms in float64
RARE = 5  # a word of fewer documents than that says something about single documents


class Budget(BaseModel):
    """The most privacy loss that a party accepts, for one unit and adjacency, over all runs that share its `home`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    unit: Unit = Field(description='"token", "document", "user" or "party"')
    adjacency: Adjacency = Field(Adjacency.ADD_REMOVE, description='"substitute", "add-remove" or "null-replace"')
    epsilon: float = Field(gt=0, allow_inf_nan=False, description="a positive number")
    delta: float = Field(1e-6, ge=0, lt=1, description="a number from 0 to below 1, smaller than 1 / documents")

    @property
    def rule(self) -> str:
        """The name that a refusal gives."""
        return f"budget.{self.unit.value}.{self.adjacency.value}"

    def allows(self, epsilon: float) -> bool:
        """Return whether this epsilon may be spent; rounding errors of accountants are no excess.

        >>> Budget(unit="token", epsilon=0.5).allows(0.5000000000000022)
        True
        """
        return epsilon <= self.epsilon * (1 + _ROUNDING)


class Record(BaseModel):
    """The party's statements about itself, for the officer's page; none of them leaves."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    organisation: StrictStr = Field("", description="a text")
    controller: StrictStr = Field("", description="a text")
    legal_basis: StrictStr = Field("", description="a text")
    retention: StrictStr = Field("", description="a text")


class Approver(BaseModel):
    """A person who approves runs for the party."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: StrictStr = Field(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$", description="a name")
    key: StrictStr = Field(
        max_length=400, pattern=r"^([0-9a-f]{2})+$", description="the public key that `tertulia approver` prints"
    )


class Policy(BaseModel):
    """The rules of one party. Without a file: clear releases are allowed, and there is no budget.

    Between several owners no file means `Policy.closed()`: nothing leaves in the clear.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow_clear: StrictBool | _Names = Field(True, description="true, false, or a list of what may leave in the clear")
    declared_public: _Names = Field(("number of documents",), description="a list of things that are no secret")
    allow_masked: StrictBool = Field(True, description="true or false")
    allow_single: StrictBool = Field(True, description="true or false")
    allow_metrics: StrictBool = Field(True, description="true or false")
    require_secure: StrictBool = Field(False, description="true or false")
    allow_canaries: StrictBool = Field(True, description="true or false")
    score_epsilon: float | None = Field(None, gt=0, allow_inf_nan=False, description="a positive number")
    max_bytes_per_round: _Count | None = Field(None, description="a whole number of bytes above 0")
    max_bytes_per_run: _Count | None = Field(None, description="a whole number of bytes above 0")
    max_bytes_per_day: _Count | None = Field(None, description="a whole number of bytes above 0")
    max_tokens_per_document: _Count | None = Field(None, description="a whole number above 0")
    max_documents_per_user: _Count | None = Field(None, description="a whole number above 0")
    min_documents_per_cell: _Count = Field(1, description="a whole number above 0")
    max_topics: _Count = Field(10_000, description="a whole number above 0")
    max_words: _Count = Field(2_000_000, description="a whole number above 0")
    max_cells: _Count = Field(500_000_000, description="a whole number above 0")
    max_rounds: _Count = Field(1_000_000, description="a whole number above 0")
    max_sweeps: _Count = Field(100_000, description="a whole number above 0")
    max_repeats: Annotated[int, Field(ge=0)] = Field(3, description="a whole number, 0 or more")
    max_question_bytes: _Count = Field(4_000_000_000, description="a whole number of bytes above 0")
    log_details: StrictBool = Field(False, description="true or false")
    min_documents_per_word: _Count | None = Field(None, description="a whole number above 0")
    approvers: Annotated[int, Field(ge=1, le=9)] = Field(1, description="a whole number from 1 to 9")
    approver: tuple[Approver, ...] = Field((), description="tables headed [[approver]]")
    budget: tuple[Budget, ...] = Field((), description="tables headed [[budget]]")
    record: Record = Field(Record(), description="a table headed [record]")

    @model_validator(mode="after")
    def _enough_approvers(self) -> Self:
        for what in ("name", "key"):
            given = [getattr(person, what) for person in self.approver]
            if twice := next((one for one in given if given.count(one) > 1), None):
                raise ValueError(f"two tables [[approver]] have the {what} {twice[:40]!r}: each person is there once")
        if self.approvers > max(len(self.approver), 1):
            raise ValueError(
                f"approvers = {self.approvers} needs as many tables [[approver]], and there are {len(self.approver)}: "
                "`tertulia approver` makes a person's key and prints the table"
            )
        return self

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a policy file; an error names the key, the value and the remedy."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the policy {path} cannot be read: {error}") from error
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, source: str = "policy.toml") -> Self:
        """Read a policy from TOML text.

        >>> Policy.parse("allow_clear = false").allow_clear
        False
        """
        try:
            return cls.model_validate(tomllib.loads(text))
        except ValidationError as error:
            raise ConfigError("; ".join(_explain(source, details) for details in error.errors())) from None
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{source} is not valid TOML: {error}") from error

    @classmethod
    def closed(cls) -> Self:
        """Return the rules between several owners until a party sets others: the strict example, without its budget."""
        return cls(allow_clear=False, allow_metrics=False)

    @property
    def rules(self) -> frozenset[str]:
        """The names that a refusal by this policy may have."""
        return frozenset(type(self).model_fields) | {budget.rule for budget in self.budget}

    @property
    def version(self) -> str:
        """A name for these very rules, for the ledger."""
        return _versions(self)[0]

    @property
    def bounds(self) -> Bounds:
        """How many smaller units make a larger one, where the party says so."""
        return Bounds(self.max_tokens_per_document, self.max_documents_per_user, frozenset({_versions(self)[1]}))

    def word_minimum(self, owners: str) -> int:
        """Return how many of the party's documents must have a word before the party names it to the server.

        Unless the policy says otherwise, words of fewer than five documents stay where parties have several owners.
        Where one owner has all parties nobody else reads the words, and small collections keep theirs.
        """
        return self.min_documents_per_word or (RARE if owners == "several" else 1)

    def check_home(self, party: str, home: str | None) -> None:
        """Raise `ConfigError` if a budget would restart with every run, because the ledger ends with the run."""
        if self.budget and home is None:
            raise ConfigError(
                f"party '{party}' has a budget but no `home`: its ledger would end with the run, and every run would "
                f'have the whole budget. Write home = "..." under [parties.{party}], or give it in `party_settings`'
            )

    def check(self, release: Release, ledger: Ledger) -> None:
        """Raise `PolicyRefusal`, with the rule's name, unless every rule allows this release."""
        self.check_rules(release, ledger)
        self.check_budgets([release] if release.charges else [], ledger)

    def check_rules(self, release: Release, ledger: Ledger) -> None:
        """Check every rule but budgets."""
        self._check_kind(release)
        self._check_score(release, ledger)
        self._check_bytes(release, ledger)

    def check_budgets(self, releases: Sequence[Release], ledger: Ledger) -> None:
        """Raise `PolicyRefusal` if a budget has no room for some releases beside what a ledger holds."""
        for budget in self.budget if releases else ():
            self._check_budget(budget, releases, ledger)

    def _check_kind(self, release: Release) -> None:
        what = f"'{release.what}'"
        if release.name == "public":
            if release.what not in self.declared_public:
                raise PolicyRefusal("declared_public", f"{what} is not declared public; add it to the list if it is")
            return
        if release.metric and not self.allow_metrics:
            raise PolicyRefusal("allow_metrics", f"{what} is a score of this party's documents, which stay here")
        if release.verb in REPLIES and not (self.allow_single or release.hidden):  # the server makes plain sums
            raise PolicyRefusal("allow_single", f"{what} of this party alone would reach the server's machine")
        if not release.non_private or self._allows_clear(release.what):
            return
        if not release.hidden:
            raise PolicyRefusal("allow_clear", f"{what} would leave unprotected; use a private mode, or allow it here")
        if not self.allow_masked:
            raise PolicyRefusal("allow_masked", f"{what} would leave masked, but without noise")

    def _check_score(self, release: Release, ledger: Ledger) -> None:
        """Allow one noisy score in a round: each further one would reveal more about the same documents."""
        if not (release.metric and release.charges) or release.non_private:
            return
        before = [r for r in ledger.releases() if r.metric and r.charges and not r.non_private]
        if any((r.run, r.round) == (release.run, release.round) and r.id != release.id for r in before):
            raise PolicyRefusal("one score in a round", f"'{release.what}' has left in round {release.round} already")

    def _allows_clear(self, what: str) -> bool:
        return self.allow_clear if isinstance(self.allow_clear, bool) else what in self.allow_clear

    def _check_bytes(self, release: Release, ledger: Ledger) -> None:
        limits: dict[str, tuple[str, Callable[[], int]]] = {
            "max_bytes_per_round": (f"round {release.round}", lambda: ledger.bytes_sent(release, in_round=True)),
            "max_bytes_per_run": ("this run", lambda: ledger.bytes_sent(release)),
            "max_bytes_per_day": ("this day", lambda: ledger.bytes_sent_today(release)),
        }
        for rule, (when, count) in limits.items():
            most = getattr(self, rule)
            if most is not None and release.verb in REPLIES and (sent := count()) + release.nbytes > most:
                why = f"'{release.what}' has {release.nbytes} bytes and {sent} left in {when} already"
                raise PolicyRefusal(rule, f"{why}; at most {most} may")

    def _check_budget(self, budget: Budget, releases: Sequence[Release], ledger: Ledger) -> None:
        release, delta = releases[0], budget.delta
        loss = ledger.cost(budget.unit, budget.adjacency, delta, bounds=self.bounds, with_releases=releases)
        if not budget.allows(loss.epsilon):
            would = f"'{release.what}' by {release.name} would bring epsilon to {loss.epsilon:.4g} at delta {delta:g}"
            why = "; ".join([f"{would}, beyond {budget.epsilon:g}", *loss.assumptions])
            raise PolicyRefusal(budget.rule, why)


@lru_cache(maxsize=64)  # every release names them
def _versions(policy: Policy) -> tuple[str, str]:
    """Hash the rules, and the same as in ledger rows that hold no limits."""
    texts = policy.model_dump_json(), policy.model_dump_json(include=_FORMER_KEYS)
    now, former = (hashlib.blake2b(text.encode(), digest_size=8).hexdigest() for text in texts)
    return now, former


def example() -> str:
    """Return the commented example of a policy file, as text: the open one.

    >>> Policy.parse(example()) == Policy()
    True
    """
    return files("tertulia.privacy").joinpath("policy.example.toml").read_text(encoding="utf-8")


def strict_example() -> str:
    """Return the example with its switches turned: the rules between several owners where there is no file.

    >>> Policy.parse(strict_example()) == Policy.closed()
    True
    """
    text = example()
    for name in ("allow_clear", "allow_metrics"):
        text = text.replace(f"\n{name} = true\n#{name} = false\n", f"\n{name} = false\n#{name} = true\n")
    return text


def write_example(path: Path, *, strict: bool, record: Mapping[str, str] | None = None) -> str:
    """Write a commented policy where there is none yet, with what the party states of itself, and say so."""
    text = strict_example() if strict else example()
    if record:
        head, table, lines = text.partition("#[record]\n")
        names = [line.split()[0][1:] for line in lines.splitlines()]
        text = head + table[1:] + "".join(f"{name} = {toml_value(record.get(name, ''))}\n" for name in names)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} exists: edit it, or choose another name") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    return f"{path}: the {'strict' if strict else 'open'} policy, with comments; `tertulia check` says what it allows"


def _explain(source: str, details: Any) -> str:
    """Explain one pydantic error in our words: key, value, remedy."""
    path = [part for part in details["loc"] if isinstance(part, int) or not part.startswith(("bool", "tuple"))]
    if not path:  # of the whole
        return f"{source}: {details['msg'].removeprefix('Value error, ')}"
    key = ".".join(str(part) for part in path)
    tables: dict[Any, type[BaseModel]] = {"budget": Budget, "record": Record, "approver": Approver}
    model = tables.get(path[0], Policy) if len(path) > 1 else Policy
    name = str(path[-1] if path[-1] in model.model_fields else path[0])
    if details["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(path[-1]), model.model_fields, n=1)
        remedy = f"did you mean '{near[0]}'?" if near else f"the keys are {', '.join(model.model_fields)}"
        return f"{source}: there is no key '{key}' (= {details['input']!r}); {remedy}"
    if details["type"] == "missing":
        return f"{source}: '{key}' is missing; write {model.model_fields[name].description}"
    return f"{source}: {key} = {details['input']!r} will not do; write {model.model_fields[name].description}"
