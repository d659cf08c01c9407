"""The heads of other members' ledgers that a party holds, and what its own ledger lacks by theirs: a file in its home.

`ledger_heads` says what a head is. Nobody can open a head but the party that has made it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia.errors import FormatError
from tertulia.privacy.lost_entries import Missing

FILE = "heads.json"
KEPT = 4  # heads of one member: two runs at once may deliver them in another order than they were made
HEAD_BYTES = 12 + 8 + 2 * 32 + 16  # nonce, number, two hashes, tag
NO_HEAD = bytes(HEAD_BYTES)
_MOST_MEMBERS = 1000  # whose heads are kept


class HeadStore:
    """The file in one home. Members are known by the fingerprints of their roster keys."""

    def __init__(self, home: Path, *, durable: bool = True) -> None:
        self.path, self._durable = home / FILE, durable

    def held(self, member: str) -> list[bytes]:
        """Return the last heads of a member, the newest first: `KEPT` of them, or `NO_HEAD` in their place."""
        found = [bytes.fromhex(one) for one in self._read()["held"].get(member, [])]
        return (found + [NO_HEAD] * KEPT)[:KEPT]

    def keep(self, heads: Mapping[str, bytes]) -> None:
        """Store new heads; they are on disk when this returns."""
        facts = self._read()
        for member, head in heads.items():
            before = facts["held"].pop(member, [])
            facts["held"][member] = list(dict.fromkeys([head.hex(), *before]))[:KEPT]
        newest = list(facts["held"].items())[-_MOST_MEMBERS:]
        self._write(facts | {"held": dict(newest)})

    def missing(self) -> list[Missing]:
        """Return what the ledger lacked when members' heads were last compared with it."""
        return [Missing.from_data(one) for one in self._read()["missing"]]

    def note_missing(self, missing: Sequence[Missing]) -> None:
        """Store what the ledger lacks; nothing is written if that is known."""
        facts, found = self._read(), [one.to_data() for one in missing]
        if facts["missing"] != found:
            self._write(facts | {"missing": found})

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            held = {str(member): [bytes.fromhex(one).hex() for one in heads] for member, heads in found["held"].items()}
            if any(len(one) != 2 * HEAD_BYTES for heads in held.values() for one in heads):
                raise ValueError("a head is cut off")
            return {"held": held, "missing": [Missing.from_data(one).to_data() for one in found["missing"]]}
        except FileNotFoundError:
            return {"held": {}, "missing": []}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"{self.path} is damaged ({error}): restore it from a backup, or delete it") from error

    def _write(self, facts: dict[str, Any]) -> None:
        atomic_write(self.path, json.dumps(facts).encode(), durable=self._durable)
