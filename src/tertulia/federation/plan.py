"""The plan of a run: its method, settings and members, and what is asked. Parties agree to it once, by its hash.

Another plan is another run. Absent and late parties do not change the plan: the roster names all members.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

from tertulia.errors import FormatError
from tertulia.federation.secure.lists import honest_survivors

Limit = tuple[str, str, str, int | None]  # a step's name, a verb, what leaves, and how often at the most
MIN_SUMMED = 3
Places = Literal["anywhere", "one_party"]  # where one user may have documents, by `federation.users`
ANYWHERE: Places = "anywhere"
ONE_PARTY: Places = "one_party"
WIDER, WIDER_VERB = "whether a masked number needs a wider ring", "wider"
KEEPS = "keeps"  # in place of the verb of steps by which nothing leaves; they are asked by `each`


@dataclass(frozen=True)
class Plan:
    """A run, as its parties agree to it."""

    method: str
    settings: dict[str, Any]  # of the method, without its word list
    words: str | None  # the fingerprint of a given word list; None: parties agree on one during the run
    roster: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]  # names of steps and verbs that may be asked; empty: any step of the method
    keys: dict[str, str] = field(default_factory=dict)  # fingerprints of members' keys; none in a simulation
    start: str = ""  # the hash of the model that the run continues; empty: it starts without one
    terms: dict[str, Any] = field(default_factory=dict)  # of the run: text, seed, shares of documents, quorum
    operator: dict[str, str] = field(default_factory=dict)  # stated by the server's operator: organisation, purpose
    groups: tuple[tuple[str, ...], ...] = ()  # of parties over which masked sums may be made; empty: only over all
    limits: tuple[Limit, ...] = ()  # what may leave, and in how many questions; None: depends on the documents
    noisy_rounds: int | None = None  # for which a party's own epsilon holds (0: any number); None: nothing follows it

    @cached_property
    def hash(self) -> str:
        """The hash that every question carries. With keys it also identifies the members."""
        facts = asdict(self)
        del facts["noisy_rounds"]  # follows from the settings
        if not self.keys:  # keep the hashes of plans from versions without keys
            del facts["keys"]
        for name in ("start", "terms", "operator", "groups", "limits"):
            if not facts[name]:
                del facts[name]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    @property
    def secure(self) -> bool:
        """Whether sums are masked."""
        return bool(self.terms.get("federation.secure", False))

    @property
    def min_summed(self) -> int:
        """The smallest number of parties whose total may be unmasked."""
        return int(self.terms.get("federation.min_summed", MIN_SUMMED))

    @property
    def noise_shares(self) -> int:
        """The number of parties whose noise is in every sum and is known to nobody who could subtract it.

        Sums over groups may have as few parties as collude, and then a party's own noise alone is secret.
        """
        return honest_survivors(len(self.roster)) if self.secure and not self.groups else 1

    @property
    def user_at(self) -> int:
        """The number of members at which one user may have documents: all, or one if the terms say so."""
        return 1 if self.terms.get("federation.users") == ONE_PARTY else len(self.roster)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Plan:
        """Read a plan that `asdict` and JSON wrote."""
        try:
            pairs = tuple((str(step), str(verb)) for step, verb in fields["steps"])
            limits = tuple(_limit(*limit) for limit in fields.get("limits", ()))
            groups = tuple(tuple(map(str, group)) for group in fields.get("groups", ()))
            known = {"roster": tuple(fields["roster"]), "steps": pairs, "groups": groups, "limits": limits}
            return cls(**{**fields, **known})
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError("the plan in party.json is damaged: restore the file from a backup") from error


def _limit(step: str, verb: str, what: str, most: int | None) -> Limit:
    return str(step), str(verb), str(what), None if most is None else int(most)
