"""What a run is: its method, settings, members, and who is asked what. Parties agree once, and know it by its hash.

Another plan is another run. Who is absent, or comes late, changes no plan: the roster names all members.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from tertulia.errors import FormatError

KEEPS = "keeps"  # stands for the verb of steps by which nothing leaves; they are asked by `each`


@dataclass(frozen=True)
class Plan:
    """A run, as its parties agree to it."""

    method: str
    settings: dict[str, Any]  # of the method, its word list left out
    words: str | None  # the fingerprint of a word list that is given; None: parties agree on one, or it comes later
    roster: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]  # what is asked: a step's name and a verb; empty: any step of the method
    keys: dict[str, str] = field(default_factory=dict)  # members' keys by their fingerprints; none in a simulation
    start: str = ""  # the hash of the model that the run goes on from; empty: it begins anew

    @cached_property
    def hash(self) -> str:
        """The plan's name, which every question carries. With keys it also says who the members are."""
        facts = asdict(self)
        if not self.keys:  # a plan without keys is called what it was called before there were any
            del facts["keys"]
        if not self.start:
            del facts["start"]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Plan:
        """Read what `asdict` gave, after JSON."""
        try:
            pairs = tuple((str(step), str(verb)) for step, verb in fields["steps"])
            return cls(**{**fields, "roster": tuple(fields["roster"]), "steps": pairs})
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError("the plan in party.json is damaged: restore the file from a backup") from error
