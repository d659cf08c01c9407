"""A server and parties on loopback, in this process, and a link between them that can be slow, cut or dead."""

import contextlib
import socket
import threading
import time

from tertulia.errors import ConfigError
from tertulia.federation.engines.grpc import client, wire
from tertulia.federation.engines.grpc.listener import ListenOptions
from tertulia.federation.engines.grpc.party_session import PartySession
from tertulia.federation.engines.grpc.service import Service
from tertulia.federation.identity.authority import Authority
from tertulia.federation.identity.members import Members
from tertulia.federation.identity.party_identity import Identity

HOST = "127.0.0.1"
PATIENCE = 90.0  # seconds for anything to happen, on a machine that has much else to do


def eventually(happened, patience=PATIENCE):
    """Wait until something is true."""
    until = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


class FakeBackend:
    """A minimal backend of a server."""

    def __init__(self):
        self.approvals, self.left, self.said = {}, [], b"{}"

    def proposal(self):
        return b"a plan"

    def approve(self, member, approval):
        if approval != b"a plan":
            raise ConfigError("this is not what was proposed: run `tertulia approve` again")
        self.approvals[member] = approval
        return b"noted"

    def leave(self, member):
        self.left.append(member)

    def model(self, member, run):
        return f"{member} {run} ".encode() * 2_000_000

    def news(self, member):
        return self.said


class Party:
    """A party that attends in a thread of this process."""

    def __init__(self, identity, address, answer, keepalive=None, hear=None):
        self.events, self.error = [], None
        self.stop = threading.Event()
        self.session = PartySession(identity, address, answer, self._note, keepalive, hear)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _note(self, kind, facts):
        self.events.append((kind, facts))

    def _run(self):
        try:
            self.session.run(self.stop)
        except Exception as error:
            self.error = error

    def count(self, kind):
        return sum(event[0] == kind for event in self.events)

    def ended(self):
        """Wait for its end; return why."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.error

    def close(self):
        self.stop.set()
        return self.ended()


class Network:
    """A federation: an authority, a register, a service, and parties that have joined."""

    def __init__(self, directory, names=("north", "south"), hosts=(), keepalive=None):
        self.directory, self.events, self.parties = directory, [], {}
        self.authority = Authority.create(directory / "authority", "oncology")
        self.members = Members(directory)
        self.members.add(names)
        self.backend = FakeBackend()
        for name in names:
            self.join(name)
        self.options = ListenOptions(f"{HOST}:0", hosts, keepalive or wire.Keepalive())
        self.open()

    def open(self):
        """Listen; after `shut`, on the same port."""
        note = lambda kind, facts: self.events.append((kind, facts))  # noqa: E731
        self.service = Service(self.authority, self.members, self.backend, self.options, note)
        self.port = self.service.start()
        self.options = ListenOptions(f"{HOST}:{self.port}", self.options.hosts, self.options.keepalive)
        self.address = f"{HOST}:{self.port}"

    def join(self, name, days=365.0, authority=None):
        """Give a party its identity, without a network."""
        invitation = self.authority.invite(name, "", "oncology")
        self.members.note_invitation(name, invitation.serial, invitation.expires)
        request = Identity.create(self.directory / name, name, self.authority.certificate_pem)
        signed = self.authority.sign(request, name, days)
        self.members.enrol(name, invitation.serial, signed)
        self.identity(name).accept(signed)

    def identity(self, name):
        return Identity(self.directory / name)

    def attend(self, name, answer=bytes, address=None, keepalive=None, hear=None):
        """Start a party; return once it is connected."""
        before = self.texts("connected").count(name)
        self.parties[name] = Party(self.identity(name), address or self.address, answer, keepalive, hear)
        eventually(lambda: self.texts("connected").count(name) > before)
        return self.parties[name]

    def texts(self, kind):
        """Return the names or sentences of the server's events of one kind."""
        return [facts.get("name") or facts.get("text") for found, facts in self.events if found == kind]

    def refusals(self):
        return [facts["text"] for kind, facts in self.events if kind == "refused"]

    def stream(self, name, chunks):
        """Open a member's stream that sends these chunks."""
        address, identity = wire.Address.parse(self.address), self.identity(name)
        channel = client.open_channel(address, identity.ca_pem, identity.credentials, wire.Keepalive())
        call = channel.stream_stream(wire.path("Attend"))(chunks, metadata=client.call_metadata(address, b""))
        return contextlib.closing(channel), call

    def close(self):
        for party in self.parties.values():
            party.stop.set()
        for party in self.parties.values():
            party.close()
        self.service.stop(0)


class TcpProxy:
    """A proxy to a port: it can delay bytes, cut a link after a number of bytes, or go dead silently."""

    def __init__(self, port, delay=0.0):
        self.delay, self.cut = (
            delay,
            None,
        )  # ("up" to the port or "down" from it, bytes): cut once, after this number of bytes
        self.dead = threading.Event()
        self.links = self.cuts = 0
        self._port, self._sockets = port, []
        self._listener = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _greet(self, near):
        """Nothing is said before bytes are carried."""

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._greet(near)
                far = socket.create_connection((HOST, self._port))
                self.links += 1
                self._sockets += [near, far]
                for way, source, target in (("up", near, far), ("down", far, near)):
                    threading.Thread(target=self._forward, args=(way, source, target, self.links), daemon=True).start()

    def _forward(self, way, source, target, link):
        carried = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                time.sleep(self.delay)
                while self.dead.is_set() and link <= self.dead_links:
                    time.sleep(0.05)  # what is sent arrives nowhere, and nobody hears of it
                    if self._listener.fileno() < 0:
                        return
                carried += len(data)
                if self.cut is not None and self.cut[0] == way and carried > self.cut[1]:
                    self.cut, self.cuts = None, self.cuts + 1
                    target.sendall(data[:100])
                    break
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def die(self):
        """Stop carrying bytes on the present links; later links work."""
        self.dead_links = self.links
        self.dead.set()

    def close(self):
        for end in (self._listener, *self._sockets):
            end.close()


class WayOut(TcpProxy):
    """An organisation's HTTPS proxy: asked for any host, it connects to the port."""

    def __init__(self, port):
        self.asked = []
        super().__init__(port)

    def _greet(self, near):
        said = b""
        while not said.endswith(b"\r\n\r\n"):
            said += near.recv(1)
        self.asked.append(said.split(b"\r\n")[0].decode())
        near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
