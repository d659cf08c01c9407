"""A federation of houses that is served in this process, with parties that attend over TLS."""

import socket
import threading
import time
from contextlib import contextmanager

from tertulia.federation.engines.grpc.attendance import Attendance
from tertulia.runs.attending import Attendant
from tertulia.runs.serving import Server

PATIENCE = 60.0


def on_a_free_port(houses):
    """Have a federation that has no member yet listen where nobody else does."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        houses.address = f"localhost:{free.getsockname()[1]}"
    houses.edit("localhost:7433", houses.address)
    for member in houses.server.file.members:
        houses.server.invite(member, 7)  # an invitation says where the server is


@contextmanager
def serving(houses):
    """Serve for as long as the block lasts, which begins when parties can call."""
    said = []
    server = Server(houses.server, said.append)
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
def attending(houses, *members):
    stop, threads = threading.Event(), []
    for member in members:
        party = houses.parties[member]
        one = Attendance(party.identity, houses.address, Attendant(party).answer)
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
