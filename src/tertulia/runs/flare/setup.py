"""A federation's directory, or a party's, made from a startup kit: FLARE has the names, the keys and the address."""

from __future__ import annotations

from pathlib import Path

from tertulia._disk import atomic_write, private_directory
from tertulia._toml import toml_value
from tertulia.errors import ConfigError
from tertulia.federation.engines.nvflare.kits import Kit, sites_in
from tertulia.federation.identity.keys import member_name
from tertulia.runs import federations
from tertulia.runs.federations import Federation, FederationFile
from tertulia.runs.membership import Admission, PartyDirectory, empty_directory, settle

SERVER, PARTY = "tertulia.runs.flare.server.RunServer", "tertulia.runs.flare.party.Party"


def found(directory: Path, kit: Path, kits: Path) -> Federation:
    """Make a federation's directory for a server's kit, with the sites whose kits, or certificates, are in a folder."""
    server, sites = Kit.open(kit, "server"), sites_in(kits)
    if not sites:
        raise ConfigError(f"{kits} holds no kit of a site: name the folder that `nvflare provision` wrote, prod_00 say")
    if strangers := sorted(name for name, site in sites.items() if site.project != server.project):
        raise ConfigError(f"the kit of '{strangers[0]}' is of another project than {kit}: take kits of one project")
    path, name = directory / federations.FILE, member_name(server.project)
    if not path.exists():
        carried = (
            f'engine = "nvflare"\naddress = {toml_value(server.address)}      # of the FLARE server, that sites dial'
        )
        FederationFile(name=name, address=server.address, engine="nvflare", members=tuple(sites))
        private_directory(directory)
        atomic_write(path, federations.template(name, list(sites), carried).encode())
    federation = Federation(directory)
    federation.check_engine("nvflare")
    federation.members.add(sites)
    for site, one in sites.items():
        federation.members.certified(site, one.fingerprint)
    server.place(directory, (SERVER,))
    return federation


def join(kit: Path, directory: Path | None, documents: Path | None, text: str) -> PartyDirectory:
    """Make a party's directory for a site's kit, and say in the kit where it is."""
    site = Kit.open(kit, "client")
    place = directory or Path(member_name(site.name))
    if not (place / "party.toml").exists():
        settle(
            empty_directory(place), Admission(site.name, site.project, site.address, site.directory), documents, text
        )
    party = PartyDirectory(place)
    if (party.file.name, party.file.kit) != (site.name, str(site.directory)):
        raise ConfigError(f"{place} holds a party already, '{party.file.name}', of another kit: choose another place")
    site.place(place, (PARTY,))
    return party
