"""Directories of a federation and of a party, made from startup kits of FLARE, which have names, keys and address."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tertulia._disk import atomic_write, private_directory
from tertulia._toml import toml_value
from tertulia.errors import ConfigError
from tertulia.federation.engines.nvflare.authorization import restrict
from tertulia.federation.engines.nvflare.kits import Kit, sites_in
from tertulia.federation.identity.keys import member_name
from tertulia.network.party.party_directory import FILE, POLICY, Admission, PartyDirectory, empty_directory, settle
from tertulia.network.server import federation_directory as federations
from tertulia.network.server.federation_directory import FederationDirectory, FederationFile

SERVER, PARTY = "tertulia.network.flare.server.FlareServer", "tertulia.network.flare.party.FlareParty"


def found(directory: Path, kit: Path, kits: Path, stated: Mapping[str, str] | None = None) -> FederationDirectory:
    """Make a federation's directory for a server's kit, with the sites whose kits, or certificates, are in a folder.

    `stated` holds the operator's statements, for a new federation.toml.
    """
    server, sites = Kit.open(kit, "server"), sites_in(kits)
    if not sites:
        raise ConfigError(f"{kits} holds no kit of a site: name the folder that `nvflare provision` wrote, prod_00 say")
    if strangers := sorted(name for name, site in sites.items() if site.project != server.project):
        raise ConfigError(f"the kit of '{strangers[0]}' is of another project than {kit}: take kits of one project")
    path, name = directory / federations.FILE, member_name(server.project)
    if path.exists():
        _check_nothing_stated(stated, "operator", path)
    else:
        carried = (
            f'engine = "nvflare"\naddress = {toml_value(server.address)}      # of the FLARE server, that sites dial'
        )
        FederationFile(name=name, address=server.address, engine="nvflare", members=tuple(sites))
        private_directory(directory)
        atomic_write(path, federations.template(name, list(sites), carried, stated).encode())
    federation = FederationDirectory(directory)
    federation.check_engine("nvflare")
    federation.members.add(sites)
    for site, one in sites.items():
        federation.members.note_certificate(site, one.fingerprint)
    server.record_directory(directory, (SERVER,))
    return federation


def join(
    kit: Path, directory: Path | None, documents: Path | None, text: str, *,
    stated: Mapping[str, str] | None = None, keep_authorization: bool = False,
) -> PartyDirectory:  # fmt: skip
    """Make a party's directory for a site's kit; the kit then names it, and forbids jobs that bring code.

    `stated` holds the party's statements, for a new policy.toml.
    """
    site = Kit.open(kit, "client")
    place = directory or Path(member_name(site.name))
    if (place / POLICY).exists():
        _check_nothing_stated(stated, "record", place / POLICY)
    if not keep_authorization:
        restrict(site)
    if not (place / FILE).exists():
        admission = Admission(site.name, site.project, site.address, site.directory)
        settle(empty_directory(place), admission, documents, text, stated)
    party = PartyDirectory(place)
    if (party.file.name, party.file.kit) != (site.name, str(site.directory)):
        raise ConfigError(f"{place} holds a party already, '{party.file.name}', of another kit: choose another place")
    site.record_directory(place, (PARTY,))
    return party


def _check_nothing_stated(stated: Mapping[str, str] | None, table: str, path: Path) -> None:
    """Raise `ConfigError` if statements are given for a file that exists: it is the user's to edit."""
    if stated:
        raise ConfigError(f"--state {next(iter(stated))}: write it under [{table}] in {path}, which exists already")
