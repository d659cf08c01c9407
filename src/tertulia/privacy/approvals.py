"""Approvals: entries of a party's ledger that say which person approved which plan, by which key.

Where a policy asks for several approvers, a run is laid out only when as many of them have signed its plan. An entry is
in the ledger's hash chain, as durable as a charge. It holds a name, a public key and a signature, and no document.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from tertulia.errors import FormatError
from tertulia.privacy.chain import APPROVED

_DAMAGED = "an entry of an approval is damaged ({}): restore the ledger from a backup"


class Approval(NamedTuple):
    """One person's approval of one plan."""

    run: str
    plan: str  # the hash
    name: str
    key: str  # the public key, in hex
    signature: str  # of `statement`, in hex
    time: str = ""  # when it was recorded, UTC

    @property
    def entry_id(self) -> str:
        """The id of its entry: a key approves a plan once."""
        return f"{APPROVED}{self.run}:{self.plan}:{self.key}"

    @property
    def statement(self) -> bytes:
        """The text that is signed."""
        return statement(self.run, self.plan, self.name)

    def to_json(self) -> str:
        """Write the body of the entry."""
        return json.dumps({name: getattr(self, name) for name in self._fields if name != "time"})

    @classmethod
    def from_json(cls, body: str, time: str) -> Approval:
        """Read the body of an entry; raise `FormatError` if it is none."""
        try:
            found = cls(**json.loads(body), time=time)
        except (ValueError, TypeError, RecursionError) as error:
            raise FormatError(_DAMAGED.format(error)) from error
        if not all(isinstance(part, str) for part in found):
            raise FormatError(_DAMAGED.format("a part is no text"))
        return found


def statement(run: str, plan: str, name: str) -> bytes:
    """Return the text that a person signs to approve a plan."""
    return json.dumps(["tertulia approval", run, plan, name]).encode()
