"""The lines of a policy that a plan needs: shown to the person who decides, and written on request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia._toml import toml_value, with_value
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.policy import Policy
from tertulia.privacy.releases import Release


def lines_needed(policy: Policy, releases: Sequence[Release]) -> dict[str, Any]:
    """Find the settings that a policy lacks to allow these releases; budgets are left aside.

    A rule that no setting of these kinds lifts is raised as the `PolicyRefusal` that it is.
    """
    changes: dict[str, Any] = {}
    nothing = Ledger(":memory:")
    for release in releases:
        while True:
            changed = policy.model_copy(update={**changes, "budget": ()})
            try:
                changed.check(release, nothing)
                break
            except PolicyRefusal as refusal:
                changes[refusal.rule] = _lifted(changed, refusal, release.what)
    return changes


def _lifted(policy: Policy, refusal: PolicyRefusal, what: str) -> Any:
    """Return a rule's value that allows one thing more, and nothing else."""
    if refusal.rule == "allow_clear":
        return (what,) if isinstance(policy.allow_clear, bool) else (*policy.allow_clear, what)
    if refusal.rule == "declared_public":
        return (*policy.declared_public, what)
    if refusal.rule in ("allow_metrics", "allow_single", "allow_masked") and not getattr(policy, refusal.rule):
        return True
    raise refusal


def line_of(key: str, value: Any) -> str:
    """Write a setting as a line of the file.

    >>> line_of("allow_clear", ("topic sizes",))
    'allow_clear = ["topic sizes"]'
    """
    return f"{key} = {toml_value(value)}"


def write_lines(path: Path, changes: dict[str, Any]) -> None:
    """Change these lines of a policy file; comments and everything else stay, and a crash leaves the old file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the policy {path} cannot be read: {error}") from error
    before = Policy.parse(text, str(path))
    for key, value in changes.items():
        try:
            text = with_value(text, key, value)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
    if Policy.parse(text, str(path)) != before.model_copy(update=changes):
        raise ConfigError(f"{path} is written in a way that lines cannot change: edit it yourself")
    atomic_write(path, text.encode())
