"""The startup kits that `nvflare provision` makes for each participant.

Folder `startup` is signed by the project, and only read here. Folder `local` belongs to the participant: there we write
the directory of the federation or the party, and the classes that a job may name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tertulia._disk import atomic_write
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.identity.keys import MOST_PEM, member_name, name_of

Role = Literal["server", "client", "admin"]
PLACE = "tertulia.json"  # in `local`: the directory of the federation, or of the party
COLLAB = ("nvflare.collab.runtime.controller.CollabController", "nvflare.collab.runtime.executor.CollabExecutor")
_FILES: dict[str, Role] = {"fed_server.json": "server", "fed_client.json": "client", "fed_admin.json": "admin"}
_ALLOWED = "class_allow_list"
_STREAMS = "site_log_streamer"


@dataclass(frozen=True)
class Kit:
    """One participant's kit."""

    directory: Path
    role: Role

    @classmethod
    def open(cls, directory: Path, *roles: Role) -> Kit:
        """Open the kit in a folder; raise `ConfigError` if there is none, or one for another role."""
        found = [role for file, role in _FILES.items() if (directory / "startup" / file).exists()]
        if not found:
            raise ConfigError(
                f"{directory} is no startup kit, for it has no startup/fed_*.json: `nvflare provision` makes kits"
            )
        if found[0] not in roles:
            raise ConfigError(f"{directory} is the kit of a {found[0]}, and one of a {' or '.join(roles)} is needed")
        return cls(directory.resolve(), found[0])

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return read_facts(self.directory / "startup" / f"fed_{self.role}.json")

    @property
    def project(self) -> str:
        """The name of the project."""
        return str(_first(self._facts).get("name", ""))

    @property
    def address(self) -> str:
        """The server's address, as `host:port`."""
        return str(_first(self._facts).get("service", {}).get("target", ""))

    @property
    def name(self) -> str:
        """The name that the kit's certificate is for."""
        return name_of(self._certificate)

    @property
    def fingerprint(self) -> str:
        """The hash of the certificate's public key, which identifies it."""
        public = self._certificate.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return hashlib.sha256(public).hexdigest()

    @property
    def expires(self) -> datetime:
        """When the certificate expires."""
        return self._certificate.not_valid_after_utc

    @cached_property
    def _certificate(self) -> x509.Certificate:
        path = self.directory / "startup" / ("server.crt" if self.role == "server" else "client.crt")
        try:
            return x509.load_pem_x509_certificate(path.read_bytes()[:MOST_PEM])
        except (OSError, ValueError) as error:
            raise FormatError(f"{path} holds no certificate: provision the kit again") from error

    @property
    def private_key(self) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
        """The private key of a site's certificate."""
        path = self.directory / "startup" / "client.key"
        try:
            key = serialization.load_pem_private_key(path.read_bytes()[:MOST_PEM], password=None)
        except (OSError, ValueError, TypeError) as error:
            raise FormatError(f"{path} holds no key: provision the kit again") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise FormatError(f"{path} holds a key that cannot sign: provision the kit again")
        return key

    def record_directory(self, directory: Path, classes: Sequence[str]) -> None:
        """Record in `local` the directory of the federation or the party, and let jobs name these classes only.

        Also keep a site's log at the site, and a server's jobs in its kit instead of FLARE's temporary folder.
        """
        path = self.directory / "local" / "resources.json"
        facts = read_facts(path if path.exists() else path.with_name("resources.json.default"))
        allowed = facts.get(_ALLOWED, [])
        facts[_ALLOWED] = [*allowed, *(name for name in (*COLLAB, *classes) if name not in allowed)]
        if self.role == "client":
            facts["allow_log_streaming"] = False
            facts["components"] = [one for one in facts.get("components", []) if one.get("id") != _STREAMS]
        else:
            _keep_stores(facts, self.directory)
        atomic_write(path, json.dumps(facts, indent=2).encode())
        atomic_write(self.directory / "local" / PLACE, json.dumps({"directory": str(directory.resolve())}).encode())


def recorded_directory(workspace: Path) -> Path:
    """Return the directory of the federation or the party of a running kit; a job cannot change it."""
    path = workspace / "local" / PLACE
    try:
        return Path(read_facts(path)["directory"])
    except (KeyError, TypeError) as error:
        raise FormatError(f"{path} is damaged: run `tertulia nvflare init` or `join` again") from error


def sites_in(folder: Path) -> dict[str, Kit]:
    """Open the kits of all sites in a folder; return them by name."""
    paths = sorted(path.parents[1] for path in folder.glob("*/startup/fed_client.json"))
    kits = [Kit.open(path, "client") for path in paths]
    return {member_name(kit.name): kit for kit in kits}


def _keep_stores(facts: dict[str, Any], kit: Path) -> None:
    for component in facts.get("components", []):
        if component.get("id") == "job_manager":
            component["args"]["uri_root"] = str(kit / "jobs-storage")
    snapshots = facts.get("snapshot_persistor", {}).get("args", {}).get("storage", {}).get("args", {})
    if snapshots:
        snapshots["root_dir"] = str(kit / "snapshot-storage")


def _first(facts: dict[str, Any]) -> dict[str, Any]:
    servers = facts.get("servers")
    return servers[0] if isinstance(servers, list) and servers and isinstance(servers[0], dict) else {}


def read_facts(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file of a kit."""
    try:
        facts = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{path} cannot be read ({error}): provision the kit again, or restore it") from error
    if not isinstance(facts, dict):
        raise FormatError(f"{path} is damaged: provision the kit again, or restore it")
    return facts
