"""A federation of sites that is served in this process, with parties that attend over TLS."""

import socket
import threading
import time
from contextlib import contextmanager

from tertulia.federation.engines.grpc.party_session import PartySession
from tertulia.network.party.attendant import Attendant
from tertulia.network.server.service import FederationServer

PATIENCE = 60.0


def on_a_free_port(sites):
    """Have a federation that has no member yet listen where nobody else does."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        sites.address = f"localhost:{free.getsockname()[1]}"
    sites.edit("localhost:7433", sites.address)
    for member in sites.server.file.members:
        sites.server.invite(member, 7)  # an invitation says where the server is


@contextmanager
def serving(sites):
    """Serve for as long as the block lasts, which begins when parties can call."""
    said = []
    server = FederationServer(sites.server, said.append)
    server.said = said
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        wait(lambda: said or not thread.is_alive())
        yield server
    finally:
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


@contextmanager
def attending(sites, *members):
    stop, threads = threading.Event(), []
    for member in members:
        party = sites.parties[member]
        attendant = Attendant(party)
        one = PartySession(party.identity, sites.address, attendant.answer, hear=attendant.hear)
        threads.append(threading.Thread(target=one.run, args=(stop,)))
        threads[-1].start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


def wait(ready):
    until = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < until
        time.sleep(0.02)
