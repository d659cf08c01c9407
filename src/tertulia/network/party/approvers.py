"""The people who approve for a party, where its policy asks for several: keys, signatures, and who is still missing.

Each person has a key of their own, in a file that only they hold. The policy lists the public halves. A signature
covers the run and the hash of its plan, so an approval of one plan is none of another. Signatures are entries of the
party's ledger; they are verified again before the run is laid out.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from tertulia._disk import write
from tertulia._locks import directory_lock
from tertulia._toml import toml_value
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.federation.identity.keys import new_key, pem, public_der, read_key, sign, verify
from tertulia.privacy.approvals import Approval, statement
from tertulia.privacy.home import LEDGER, open_home
from tertulia.privacy.policy import Policy

RULE = "approvers"


def make_key(path: Path, name: str) -> str:
    """Write a new key to a private file; return the lines that name its holder in policy.toml."""
    if path.exists():
        raise ConfigError(f"{path} exists: a key is made once; give another file")
    Policy.parse(lines_of(name, public := public_der(key := new_key()).hex()))  # checks the name
    try:
        path.touch(0o600)
        write(path, pem(key))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror}): choose another place") from error
    return lines_of(name, public)


def lines_of(name: str, public: str) -> str:
    """Return the lines of a person in policy.toml."""
    return f"[[approver]]\nname = {toml_value(name)}\nkey = {toml_value(public)}\n"


class Approvers:
    """The people who must approve one plan at one party."""

    def __init__(self, policy: Policy, home: Path, run: str, plan: str) -> None:
        self._policy, self._home, self._run, self._plan = policy, home, run, plan

    @property
    def needed(self) -> int:
        """How many people must sign; 0: nobody, for one person approves by the command alone."""
        return self._policy.approvers if self._policy.approvers > 1 else 0

    def signed(self) -> list[Approval]:
        """Return the valid approvals of this plan, of people whom the policy names now, in order."""
        if not (self._home / LEDGER).exists():
            return []
        with closing(open_home(self._home).ledger) as ledger:
            found = ledger.approvals(self._run)
        keys = {person.key: person.name for person in self._policy.approver}
        mine = [one for one in found if one.plan == self._plan and keys.get(one.key) == one.name]
        return [one for one in mine if _is_signed(one)]

    def sign(self, name: str, key_file: Path) -> None:
        """Record a person's approval; raise `ConfigError` if the policy does not name that person with that key."""
        known = {person.name: person.key for person in self._policy.approver}
        if name not in known:
            raise ConfigError(
                f"'{name}' is no approver of this party: policy.toml names {', '.join(known) or 'nobody'}"
            )
        key = read_key(_content(key_file), key_file)
        if public_der(key).hex() != known[name]:
            raise ConfigError(f"{key_file} is not the key that policy.toml has of '{name}': use that person's own file")
        signature = sign(key, statement(self._run, self._plan, name)).hex()
        approval = Approval(self._run, self._plan, name, known[name], signature)
        os.umask(0o077)
        with directory_lock(self._home, wait=lambda text: None), closing(open_home(self._home).ledger) as ledger:
            ledger.approve(approval)

    def check(self) -> None:
        """Raise `PolicyRefusal` unless enough people have approved."""
        signed = self.signed()
        if len(signed) < self.needed:
            who = ", ".join(one.name for one in signed) or "nobody"
            raise PolicyRefusal(
                RULE, f"{self.needed} people must approve this plan, and {who} did: `tertulia approve` for the others"
            )


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): give the file of your key") from error


def _is_signed(approval: Approval) -> bool:
    try:
        verify(bytes.fromhex(approval.key), bytes.fromhex(approval.signature), approval.statement)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True
