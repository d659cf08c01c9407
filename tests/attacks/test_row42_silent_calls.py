"""A revoked certificate, a used invitation or a member opens calls that say nothing, and takes all of the server's
threads."""

import threading
import time
from contextlib import ExitStack

import grpc
import pytest

from helpers.network import Network, eventually
from tertulia.federation.engines.grpc import callers, client, wire
from tertulia.federation.identity import members

CALLS = 60
QUICKLY = 10.0  # seconds, on a machine that has much else to do


@pytest.fixture
def network(tmp_path):
    network = Network(tmp_path / "network")
    yield network
    network.close()


def silent_calls(stack, network, call, shown, number=CALLS):
    """Open calls whose request never comes, as many per connection as the server allows."""
    address, end = wire.Address.parse(network.address), threading.Event()

    def never():
        end.wait()
        yield from ()

    opened = []
    for i in range(number):
        if i % 10 == 0:
            ca = network.authority.certificate_pem
            channel = stack.enter_context(client.open_channel(address, ca, shown, wire.Keepalive(every=31.0 + i)))
        opened.append(channel.stream_stream(wire.path(call))(never(), metadata=client.call_metadata(address, b"")))
    stack.callback(end.set)
    return opened


def answered_quickly(network, name):
    started = time.monotonic()
    assert client.server_time(network.identity(name), network.address)
    assert time.monotonic() - started < QUICKLY


def codes(opened):
    eventually(lambda: all(call.code() is not None for call in opened if not call.is_active()))
    return [call.code() for call in opened if not call.is_active()]


@pytest.mark.parametrize("call", ["Time", "Approve", "Model", "Attend"])
def test_a_revoked_certificate_takes_no_thread(network, call):
    network.members.revoke("north")
    with ExitStack() as stack:
        opened = silent_calls(stack, network, call, network.identity("north").credentials)
        answered_quickly(network, "south")
        eventually(lambda: not any(one.is_active() for one in opened))
        assert set(codes(opened)) == {grpc.StatusCode.PERMISSION_DENIED}
    assert network.refusals() == [f"a caller was refused: {members.REVOKED}"]  # once, not sixty times


def test_a_used_invitation_has_few_threads(network):
    invitation = network.authority.invite("east", network.address, "oncology")
    network.members.add(["east"])
    network.members.note_invitation("east", invitation.serial, invitation.expires)
    client.enrol(invitation, network.directory / "east")
    with ExitStack() as stack:
        opened = silent_calls(stack, network, "Enrol", (invitation.key_pem, invitation.certificate_pem))
        answered_quickly(network, "south")
        answered_quickly(network, "east")  # the invitation does not end the member's own calls
        eventually(lambda: sum(one.is_active() for one in opened) <= callers.MOST_CALLS)
    assert [text for text in network.refusals() if "more than" in text]


def test_a_member_has_few_calls_at_once_and_keeps_its_newest(network):
    with ExitStack() as stack:
        opened = silent_calls(stack, network, "Approve", network.identity("north").credentials, 20)
        answered_quickly(network, "south")
        eventually(lambda: sum(one.is_active() for one in opened) <= callers.MOST_CALLS)
        answered_quickly(network, "north")
    assert [facts["name"] for kind, facts in network.events if kind == "refused"] == ["north"]
