"""A federation of sites without a network: the server's directory, the parties', and questions handed over."""

import json

from helpers.texts import halves
from tertulia.federation.identity.invitations import Invitation
from tertulia.federation.identity.party_identity import Identity
from tertulia.network.party.approval import Review
from tertulia.network.party.attendant import Attendant
from tertulia.network.party.party_directory import PartyDirectory, empty_directory, settle
from tertulia.network.server.federation_directory import FederationDirectory, create
from tertulia.network.server.run_registry import FINISHED, RunRegistry
from tertulia.privacy.policy_lines import write_lines
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish

MEMBERS = ("north", "south", "east")
METHOD = 'name = "consensus"\ntopics = 2\nrounds = 3\nsweeps = 2\nstart_sweeps = 2\n'


class Sites:
    """Everything of a federation, each in its own place below one directory."""

    def __init__(self, base, members=MEMBERS, method=METHOD, *, secure=False):
        self.base = base
        create(base / "oncology", members, "localhost:7433", 7)
        self.server = FederationDirectory(base / "oncology")
        self.registry = RunRegistry(self.server)
        self.write_method(method)
        if secure != (len(members) > 2):  # what is written by default
            self.edit(*(f"\nsecure = {str(on).lower()} " for on in (not secure, secure)))
        self.parties = {}

    def write_method(self, method):
        file = self.server.directory / "federation.toml"
        head, _, rest = file.read_text().partition("[method]")
        file.write_text(f"{head}[method]\n{method}\n[text]{rest.partition('[text]')[2]}")

    def edit(self, old, new):
        file = self.server.directory / "federation.toml"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    def join(self, *members):
        """What `tertulia join` does, with the certificate signed here."""
        for member in members:
            invitation = Invitation.load(self.server.directory / "invitations" / f"{member}.invite")
            place = empty_directory(self.base / member)
            request = Identity.create(place / "identity", member, invitation.ca_pem)
            signed = self.server.authority.sign(request, member)
            self.server.members.enrol(member, invitation.serial, signed)
            Identity(place / "identity").accept(signed)
            documents = self.base / f"{member}.jsonl"
            rows = [json.dumps({"note": text}) for text in halves(len(self.parties) + 1, 40)]
            documents.write_text("\n".join(rows) + "\n")
            settle(place, invitation, documents, "note")
            self.parties[member] = PartyDirectory(place)

    def consider(self, member, data=None):
        seen = Review.of(self.parties[member], data or self.registry.proposal())
        start = seen.proposal.start
        return seen.with_start(self.registry.model(member, start["run"])) if start else seen

    def approve(self, *members):
        """What `tertulia approve --yes` does."""
        for member in members:
            seen = self.consider(member)
            seen.check()
            write_lines(seen.party.policy_path, seen.lines_needed())
            seen.lay_out()
            self.registry.approve(member, seen.approval())

    def agree(self):
        """All join and approve."""
        members = self.server.file.members
        self.join(*members)
        self.approve(*members)
        return self

    def carried(self):
        return Carried({name: Attendant(party) for name, party in self.parties.items()})

    def finish(self, run: Run, observe=None, transport=None):
        return finish(run, observe=observe, transport=transport or self.carried())

    def run(self):
        """Start what was approved, and see it through."""
        run = self.registry.start()
        model = self.finish(run)
        self.registry.end(run.id, FINISHED)
        return model


class Carried:
    """A transport that hands frames over, and keeps all that the server gets to see."""

    def __init__(self, attendants):
        self.attendants, self.received = attendants, []

    @property
    def parties(self):
        return list(self.attendants)

    def ask(self, frames, timeout, enough=None):
        answers = {party: self.attendants[party].answer(frame) for party, frame in frames.items()}
        self.received += answers.values()
        return answers

    def close(self):
        pass
