"""What `tertulia doctor` finds: on a machine that is well, and with one thing after the other broken."""

import socket
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.engines.network import Net
from tertulia.federation.engines.grpc.client import server_time
from tertulia.operations import doctor as examination
from tertulia.operations.doctor import BAD, BEWARE, GOOD


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    net = Net(tmp_path_factory.mktemp("net"), ["north"])
    yield net
    net.service.stop()


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    net = Net(tmp_path_factory.mktemp("other"), ["north"])
    yield net
    net.service.stop()


def tls(net, identity, host="127.0.0.1"):
    key, certificate = identity.credentials
    return examination.check_tls(host, int(net.address.rpartition(":")[2]), identity.ca_pem, certificate, key)


def test_a_server_and_its_party_trust_each_other(net):
    assert tls(net, net.identities["north"]).state == GOOD


def test_another_federations_server_is_told_apart(net, other):
    found = tls(net, other.identities["north"])
    assert found.state == BAD
    assert "not the server of the invitation" in found.text


def test_a_name_that_the_certificate_is_not_for(net):
    assert "not the server of the invitation" in tls(net, net.identities["north"], "localhost").text


def test_a_certificate_of_another_authority_is_refused(net, other):
    ours, theirs = net.identities["north"], other.identities["north"]
    key, certificate = theirs.credentials
    port = int(net.address.rpartition(":")[2])
    found = examination.check_tls("127.0.0.1", port, ours.ca_pem, certificate, key)
    assert found.state == BAD
    assert "does not take" in found.text


def test_the_servers_clock_is_asked_for_by_members_alone(net, other):
    found = examination.check_clock(lambda: server_time(net.identities["north"], net.address))
    assert (found.what, found.state) == ("clock", GOOD)
    found = examination.check_clock(lambda: server_time(other.identities["north"], net.address))
    assert (found.what, found.state) == ("member", BAD)


def test_names_and_ports(net):
    assert examination.check_name("localhost").state == GOOD
    assert examination.check_name("nowhere.invalid").state == BAD
    port = int(net.address.rpartition(":")[2])
    assert examination.check_port("127.0.0.1", port).state == GOOD
    assert examination.check_listen("127.0.0.1", port).state == BEWARE
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = free.getsockname()[1]
    assert "nobody listens" in examination.check_port("127.0.0.1", closed).text
    assert examination.check_listen("127.0.0.1", closed).state == GOOD


def test_clocks_and_certificates():
    now = datetime.now(UTC)
    clocks = [lambda s=s: now - timedelta(seconds=s) for s in (1, 3600, 200_000)]
    assert [examination.check_clock(clock).state for clock in clocks] == [GOOD, BEWARE, BAD]
    ends = [examination.check_expiry("it", now + timedelta(days=d)).state for d in (200, 5, -1)]
    assert ends == [GOOD, BEWARE, BAD]


def test_this_machine(tmp_path):
    assert examination.check_disk(tmp_path).state in (GOOD, BEWARE)
    assert examination.check_disk(tmp_path / "missing").state == BAD
    assert examination.check_memory().state in (GOOD, BEWARE)
    assert examination.check_kernels().state in (GOOD, BEWARE)


def test_a_policy(tmp_path):
    path = tmp_path / "policy.toml"
    assert examination.check_policy(path).state == BEWARE
    path.write_text("allow_clear = false")
    assert examination.check_policy(path).state == GOOD
    path.write_text("allow_clear = true")
    assert examination.check_policy(path).state == BEWARE
    path.write_text("allow_claer = true")
    assert examination.check_policy(path).state == BAD


def test_a_sample_of_the_documents_is_counted_and_not_quoted(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text("text\nMrs Garcia is well\n\n")
    found = examination.check_documents({"path": str(path)})
    assert found.state == GOOD
    assert "Garcia" not in found.text
    assert examination.check_documents({"path": str(path), "text": "note"}).state == BAD
    assert examination.check_documents({"path": str(tmp_path / "none.csv")}).state == BAD
    assert examination.check_documents({}).state == BAD


def test_a_check_that_breaks_is_a_finding():
    assert examination.examine([lambda: 1 / 0])[0].state == BAD
