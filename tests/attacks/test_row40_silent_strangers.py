"""Strangers without a certificate open connections and say nothing, until the server has no descriptor left."""

import resource
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from helpers.network import Network, eventually
from helpers.serving import on_a_free_port
from helpers.sites import Sites
from tertulia.federation.engines.grpc import client, proxy

DESCRIPTORS, STRANGERS = 256, 300
QUICKLY = 10.0  # seconds, on a machine that has much else to do


def greeting():
    """The first message of a handshake, which nothing follows."""
    out = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    sites = Sites(tmp_path_factory.mktemp("sites"), ("north", "south"))
    on_a_free_port(sites)
    sites.join("north")
    return sites


@contextmanager
def served(sites):
    """`tertulia serve` in a process with few descriptors."""

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))

    command = [sys.executable, "-m", "tertulia", "serve", str(sites.server.directory)]
    process = subprocess.Popen(command, preexec_fn=few, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: answers(sites) or process.poll() is not None)
        assert process.poll() is None, process.stderr.read()
        yield process
        assert process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def answers(sites):
    try:
        return client.server_time(sites.parties["north"].identity, sites.address)
    except Exception:
        return None


def strangers(stack, port, number, said=b"", source="127.0.0.1"):
    """Connections that stay open until the stack closes them."""
    for _ in range(number):
        link = stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=(source, 0)))
        if said:
            link.sendall(said)


def silence(stack):
    """Chunks that never come."""
    end = threading.Event()
    stack.callback(end.set)

    def chunks():
        end.wait()
        yield from ()

    return chunks()


def test_a_member_is_answered_while_strangers_hold_connections(sites):
    port = int(sites.address.rpartition(":")[2])
    with served(sites), ExitStack() as stack:
        for said in (b"", greeting()):
            strangers(stack, port, STRANGERS, said)
            started = time.monotonic()
            assert answers(sites)
            assert time.monotonic() - started < QUICKLY
    log = (sites.server.directory / "server.log").read_text()
    assert log.count("too many connections at once from 127.0.0.1") == 1  # and not a line for each


def test_a_silent_connection_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(proxy, "SILENCE", 0.2)
    network = Network(tmp_path / "network", ("north",))
    try:
        with socket.create_connection(("127.0.0.1", network.port)) as silent:
            silent.settimeout(QUICKLY)
            assert silent.recv(1) == b""
    finally:
        network.close()


def test_strangers_never_close_a_members_connection(tmp_path, monkeypatch):
    monkeypatch.setattr(proxy.Limits, "of_process", lambda: proxy.Limits(strangers=4, per_address=2))
    network = Network(tmp_path / "network", ("north",))
    try:
        party = network.attend("north", bytes.upper)
        with ExitStack() as stack:
            strangers(stack, network.port, 50, greeting())
            strangers(stack, network.port, 50, source="127.0.0.2")
            assert network.service.transport(["north"]).ask({"north": b"hello"}, QUICKLY) == {"north": b"HELLO"}
        assert party.count("disconnected") == 0
        assert {text.split()[6].rstrip(",") for text in network.texts("warning")} == {"127.0.0.1", "127.0.0.2"}
    finally:
        network.close()


def test_a_member_has_few_connections_at_once(tmp_path):
    network = Network(tmp_path / "network", ("north",))
    try:
        with ExitStack() as stack:
            for _ in range(3 * proxy.MOST_PER_CALLER):
                channel, call = network.stream("north", silence(stack))
                stack.enter_context(channel)
                call.initial_metadata()
            eventually(lambda: len(network.service._proxy._links) <= proxy.MOST_PER_CALLER)
    finally:
        network.close()


DESCRIPTORS_OPEN = Path("/proc/self/fd")


@pytest.mark.skipif(not DESCRIPTORS_OPEN.is_dir(), reason="descriptors are counted in /proc")
def test_no_descriptor_stays_when_connections_end(tmp_path):
    network = Network(tmp_path / "network", ("north",))
    try:
        client.server_time(network.identity("north"), network.address)
        before = len(list(DESCRIPTORS_OPEN.iterdir()))
        with ExitStack() as stack:
            strangers(stack, network.port, 30, greeting())
        for _ in range(5):
            client.server_time(network.identity("north"), network.address)
        eventually(lambda: len(list(DESCRIPTORS_OPEN.iterdir())) <= before + 2)
    finally:
        network.close()
