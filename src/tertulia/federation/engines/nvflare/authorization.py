"""The rights of FLARE's administrators at a site (`local/authorization.json`): run our job, and no job with code.

The default of `nvflare provision` lets a project's administrator do anything at a site, and a lead submit jobs that
contain code. Such a job runs as the site's user, against whom policy and ledger give no protection.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia.errors import ConfigError
from tertulia.federation.engines.nvflare.kits import Kit, read_facts

FILE = "authorization.json"
_JOBS = ("submit_job", "clone_job", "manage_job", "download_job", "view")  # rights that a job without code needs
_FORBIDDEN = ("byoc", "shell_commands", "operate", "server-predeployed-flwr")
_NONE = ("none", "no")


def restrict(kit: Kit) -> None:
    """Write a strict authorization if a site has none of its own; raise `ConfigError` if its own admits code."""
    path = _path(kit)
    if not path.exists():
        permissions = {role: _strict(rights) for role, rights in _permissions(kit).items()}
        atomic_write(path, json.dumps({"format_version": "1.0", "permissions": permissions}, indent=2).encode())
    if loose := loose_rights(kit):
        raise ConfigError(
            f'{path} grants more than a run needs: {", ".join(loose)}. Set these to "none", or delete the file and '
            "join again, which writes a strict one; --keep-authorization leaves it as it is"
        )


def loose_rights(kit: Kit) -> list[str]:
    """Return the rights that a kit grants beyond jobs without code, as "role: right"."""
    return [f"{role}: {right}" for role, rights in _permissions(kit).items() for right in _granted(rights)]


def _strict(rights: Any) -> dict[str, Any]:
    """Reduce the provisioned rights of a role to those that a run needs."""
    provisioned = rights if isinstance(rights, dict) else dict.fromkeys(_JOBS, rights)
    return {right: provisioned.get(right, "none") for right in _JOBS} | dict.fromkeys(_FORBIDDEN, "none")


def _granted(rights: Any) -> Iterator[str]:
    """Yield the rights, unknown ones included, that are granted on any condition but that a run does not need."""
    if not isinstance(rights, dict):
        rights = {"everything": rights}
    for right, who in rights.items():
        conditions = who if isinstance(who, list) else [who]
        if right not in _JOBS and not all(isinstance(one, str) and one.strip().lower() in _NONE for one in conditions):
            yield str(right)


def _permissions(kit: Kit) -> dict[str, Any]:
    """Return the permissions in force: those of the site's own file, or of the provisioned default."""
    path = _path(kit)
    facts = read_facts(path if path.exists() else path.with_name(f"{FILE}.default"))
    permissions = facts.get("permissions")
    return permissions if isinstance(permissions, dict) else {"every role": permissions}


def _path(kit: Kit) -> Path:
    return kit.directory / "local" / FILE
