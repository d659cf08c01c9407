"""Admission over real TLS: members with their own certificates, and nobody else; and the errors that others read."""

import re
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import grpc
import pytest

from helpers.network import HOST, PATIENCE, Network, Party, WayOut, eventually
from tertulia.errors import ConfigError, ConnectionTrouble, TertuliaError
from tertulia.federation.engines.grpc import client, wire
from tertulia.federation.engines.grpc.listener import ListenOptions
from tertulia.federation.engines.grpc.service import Service
from tertulia.federation.identity import keys, members
from tertulia.federation.identity.authority import Authority
from tertulia.federation.identity.invitations import Invitation
from tertulia.federation.identity.party_identity import Identity


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A network for callers that are refused: no test changes it."""
    network = Network(tmp_path_factory.mktemp("network"))
    yield network
    network.close()


@pytest.fixture
def changing(tmp_path):
    network = Network(tmp_path / "network", ("north", "south"))
    yield network
    network.close()


@pytest.fixture
def other(tmp_path):
    return Authority.create(tmp_path / "other", "oncology")


def impostor(network, directory, **files):
    """Copy North's identity, with some files replaced."""
    directory.mkdir()
    for name in ("key", "certificate", "ca"):
        own = (network.directory / "north" / f"{name}.pem").read_bytes()
        (directory / f"{name}.pem").write_bytes(files.get(name, own))
    return Identity(directory)


def request(network, name="north"):
    """Make a request for a certificate of North's key."""
    return keys.csr(keys.read_key(network.identity("north").key_pem), name)


def refused(identity, address, kind=ConnectionTrouble):
    """Return the error that a refused caller reads; it must be the same for every call."""
    with pytest.raises(kind) as unary:
        client.fetch_proposal(identity, address)
    with pytest.raises(kind) as other:
        client.approve(identity, address, b"a plan")
    assert str(unary.value) == str(other.value)
    return str(unary.value)


def invited(network, name, days=7.0):
    invitation = network.authority.invite(name, network.address, "oncology", days)
    network.members.add([name])
    network.members.note_invitation(name, invitation.serial, invitation.expires)
    return invitation


# --- who is let in ----------------------------------------------------------------------------------------------------


def test_the_way_in_and_out(changing, tmp_path):
    network = changing
    invited(network, "east").save(tmp_path / "east.invite")
    east = client.enrol(Invitation.load(tmp_path / "east.invite"), tmp_path / "east")
    assert network.members.keys()["east"] == east.fingerprint
    assert client.fetch_proposal(east, network.address) == b"a plan"
    assert client.approve(east, network.address, b"a plan") == b"noted"
    with pytest.raises(ConnectionTrouble, match="this is not what was proposed: run `tertulia approve` again"):
        client.approve(east, network.address, b"another")
    assert network.backend.approvals == {"east": b"a plan"}
    client.leave(east, network.address)
    assert network.backend.left == ["east"]
    assert members.LEFT in refused(east, network.address, client.Refused)
    assert network.texts("joined") == network.texts("left") == ["east"]


def test_a_lost_answer_does_not_use_up_an_invitation(changing, tmp_path, monkeypatch):
    invitation = invited(changing, "east")
    with monkeypatch.context() as broken:
        broken.setattr(Identity, "accept", lambda self, pem: 1 / 0)  # it died before the certificate was on the disk
        with pytest.raises(ZeroDivisionError):
            client.enrol(invitation, tmp_path / "east")
    east = client.enrol(invitation, tmp_path / "east")
    assert changing.members.keys()["east"] == east.fingerprint


def test_a_renewed_certificate_serves_and_the_old_one_does_not(changing, tmp_path):
    north = changing.identity("north")
    old = impostor(changing, tmp_path / "old")
    client.renew(north, changing.address)
    assert client.fetch_proposal(old, changing.address) == b"a plan"  # until the new one is seen
    assert client.fetch_proposal(north, changing.address) == b"a plan"
    assert members.ANOTHER_KEY in refused(old, changing.address, client.Refused)
    assert changing.members.keys()["north"] == north.fingerprint


def test_the_servers_certificate_is_renewed_without_a_stop(changing, monkeypatch):
    before = changing.authority.server_identity([HOST])
    (changing.directory / "authority" / "server.pem").unlink()
    assert client.fetch_proposal(changing.identity("north"), changing.address) == b"a plan"
    assert changing.authority.server_identity([HOST]) != before


def test_plaintext_is_for_loopback_and_only_when_asked_for(changing):
    service = Service(changing.authority, changing.members, changing.backend, f"http://{HOST}:0")
    address = f"http://{HOST}:{service.start()}"
    try:
        assert client.fetch_proposal(changing.identity("north"), address) == b"a plan"
        changing.members.revoke("north")
        assert members.REVOKED in refused(changing.identity("north"), address, client.Refused)
        with pytest.raises(ConnectionTrouble, match="does not speak TLS"):
            client.fetch_proposal(changing.identity("south"), address.removeprefix("http://"))
    finally:
        service.stop(0)
    for wrong in ("http://topics.example.org:7443", "http://0.0.0.0:7443"):
        with pytest.raises(ConfigError, match="would go without TLS"):
            Service(changing.authority, changing.members, changing.backend, wrong)


# --- who is not -------------------------------------------------------------------------------------------------------


def test_a_stranger_does_not_get_through_the_handshake(network, other, tmp_path):
    stranger = impostor(network, tmp_path / "x", certificate=other.sign(request(network), "north"))
    assert "has closed the link: see that this party's certificate is of that federation" in refused(
        stranger, network.address
    )


def test_an_expired_certificate(network, tmp_path, monkeypatch):
    expired = impostor(network, tmp_path / "x", certificate=network.authority.sign(request(network), "north", days=-1))
    assert members.EXPIRED in refused(expired, network.address, client.Refused)
    monkeypatch.setattr(client, "expired_or_none", lambda pem: None)  # a party that shows it all the same
    assert "valid by the server's clock" in refused(expired, network.address)


def test_no_certificate(network):
    address = wire.Address.parse(network.address)
    credentials = grpc.ssl_channel_credentials(network.authority.certificate_pem)
    with grpc.secure_channel(address.target, credentials) as channel:
        for call in ("Proposal", "Enrol"):
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(wire.path(call))(b"", metadata=client.call_metadata(address, b""))
            assert "has closed the link" in str(client.connection_error(caught.value, address))


def test_another_partys_name_needs_that_partys_key(network, tmp_path):
    under = impostor(network, tmp_path / "x", certificate=network.authority.sign(request(network, "south"), "south"))
    assert members.ANOTHER_KEY in refused(under, network.address, client.Refused)
    nobody = impostor(network, tmp_path / "y", certificate=network.authority.sign(request(network, "west"), "west"))
    assert members.UNKNOWN in refused(nobody, network.address, client.Refused)


def test_a_revoked_member_loses_its_stream_and_stays_outside(changing):
    north = changing.attend("north")
    changing.members.revoke("north")  # by another process, it could be: the file is all that there is
    error = north.ended()
    assert isinstance(error, client.Refused)
    assert members.REVOKED in str(error)
    assert "ask the operator" in str(error)
    eventually(lambda: not changing.service.connected)
    assert members.REVOKED in refused(changing.identity("north"), changing.address, client.Refused)


def test_who_is_revoked_while_it_fetches_a_model_does_not_get_the_rest(changing, monkeypatch):
    """The model is longer than the buffers of a link, so the server still sends when the register changes."""
    from tertulia.federation.engines.grpc.wire import Assembler

    taken, take = [], Assembler.take

    def revoking(self, chunk, wanted):
        taken.append(len(chunk))
        changing.members.revoke("north")
        return take(self, chunk, wanted)

    monkeypatch.setattr(changing.backend, "model", lambda member, run: bytes(64 << 20))
    monkeypatch.setattr(Assembler, "take", revoking)
    with pytest.raises(ConnectionTrouble, match=members.REVOKED):
        client.fetch_model(changing.identity("north"), changing.address, "a1")
    assert 0 < sum(taken) < 64 << 20


@pytest.mark.parametrize("ahead", [0.5, -0.5, -3])
def test_clocks_that_differ_a_little_or_a_server_that_is_behind_do_no_harm(ahead, tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "now", lambda: datetime.now(UTC) + timedelta(days=ahead))
    network = Network(tmp_path / "network")
    try:
        assert client.fetch_proposal(network.identity("north"), network.address) == b"a plan"
        invitation = invited(network, "east")
        assert client.enrol(invitation, tmp_path / "east").name == "east"
    finally:
        network.close()


def test_a_server_days_ahead_is_distinguished_from_a_stranger(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "now", lambda: datetime.now(UTC) + timedelta(days=3))
    network = Network(tmp_path / "network")
    try:
        with pytest.raises(ConnectionTrouble, match="is not valid yet: check this machine's clock"):
            client.enrol(invited(network, "east"), tmp_path / "east")
    finally:
        network.close()


def test_a_server_that_the_party_does_not_trust(network, other, tmp_path):
    wrong = impostor(network, tmp_path / "x", ca=other.certificate_pem)
    assert "is not the one that invited this party: nothing was sent" in refused(wrong, network.address)


def test_a_server_whose_name_does_not_match(network):
    text = refused(network.identity("north"), f"localhost:{network.port}")
    assert f"the certificate of the server at localhost:{network.port} is not for 'localhost'" in text


def test_certificates_serve_one_side_only(network, tmp_path):
    key, certificate = network.authority.server_identity([HOST])
    as_client = impostor(network, tmp_path / "x", key=key, certificate=certificate)
    assert "has closed the link" in refused(as_client, network.address)
    server = grpc.server(ThreadPoolExecutor(2))
    shown = grpc.ssl_server_credentials(
        [network.identity("south").credentials], network.authority.certificate_pem, True
    )
    port = server.add_secure_port(f"{HOST}:0", shown)
    server.start()
    try:
        assert "is not the one that invited this party" in refused(network.identity("north"), f"{HOST}:{port}")
    finally:
        server.stop(0)


def test_invitations_that_open_nothing(changing, tmp_path, monkeypatch):
    used = invited(changing, "east")
    client.enrol(used, tmp_path / "east")
    with pytest.raises(client.Refused, match=members.USED):
        client.enrol(used, tmp_path / "thief")
    expired = invited(changing, "west", days=-1)
    with pytest.raises(client.Refused, match="expired"):
        client.enrol(expired, tmp_path / "west")
    monkeypatch.setattr(client, "expired_or_none", lambda pem: None)
    with pytest.raises(ConnectionTrouble, match="valid by the server's clock"):
        client.enrol(expired, tmp_path / "west")
    older, newer = invited(changing, "west"), invited(changing, "west")
    with pytest.raises(client.Refused, match=members.NO_INVITATION):
        client.enrol(older, tmp_path / "west")
    (tmp_path / "only").mkdir()
    for name, pem in (("key", newer.key_pem), ("certificate", newer.certificate_pem), ("ca", newer.ca_pem)):
        (tmp_path / "only" / f"{name}.pem").write_bytes(pem)
    assert members.UNKNOWN in refused(Identity(tmp_path / "only"), changing.address, client.Refused)
    assert changing.members.state("west") == "invited"
    client.enrol(newer, tmp_path / "west")


@pytest.mark.parametrize(("ours", "remedy"), [(1, "install the server's version"), (3, "install the party's version")])
def test_another_protocol_ends_in_a_sentence_on_both_sides(changing, monkeypatch, ours, remedy):
    monkeypatch.setattr(client, "OURS", wire.Hello(ours, "9.8.7"))
    text = refused(changing.identity("north"), changing.address, client.Refused)
    versions = f"the server speaks {wire.Hello()}, the party protocol {ours} (tertulia 9.8.7)"
    assert versions in text
    assert remedy in text
    assert any(versions in said for said in changing.refusals())
    invitation = invited(changing, "east")
    with pytest.raises(client.Refused, match="the party protocol"):
        client.enrol(invitation, changing.directory / "east")
    assert versions in str(Party(changing.identity("north"), changing.address, bytes).ended())


def test_requests_that_cannot_be_read_are_refused_with_a_constant(network):
    north = network.identity("north")
    address = wire.Address.parse(network.address)
    with client.open_channel(address, north.ca_pem, north.credentials, wire.Keepalive()) as channel:
        for request_ in (b"", b"{", b"[]", b'{"csr": 1}', b'{"csr": "x", "signature": "zz"}', b"[" * 100_000):
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(wire.path("Renew"))(request_, metadata=client.call_metadata(address, b""))
            assert caught.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL)
            assert "Traceback" not in caught.value.details()
            assert len(caught.value.details()) < 80
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/tertulia.Federation/Other")(b"", metadata=client.call_metadata(address, b""))
        assert "is no tertulia server" in str(client.connection_error(caught.value, address))


def test_what_the_backend_did_not_mean_to_say_stays_at_the_server(changing, monkeypatch):
    def broken():
        raise OSError("/srv/oncology/proposal.json")

    monkeypatch.setattr(changing.backend, "proposal", broken)
    with pytest.raises(ConnectionTrouble, match="could not do this: ask the operator"):
        client.fetch_proposal(changing.identity("north"), changing.address)


@pytest.mark.parametrize(("version", "speaks"), [("TLSv1_2", False), ("TLSv1_3", True)])
def test_a_member_speaks_tls_1_3_and_nothing_older(network, version, speaks):
    context = ssl.create_default_context(cadata=network.authority.certificate_pem.decode())
    context.load_cert_chain(network.directory / "north" / "certificate.pem", network.directory / "north" / "key.pem")
    context.set_alpn_protocols(["h2"])
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    with socket.create_connection((HOST, network.port)) as link, ExitStack() as refused:
        if not speaks:
            refused.enter_context(pytest.raises(OSError))
        with context.wrap_socket(link, server_hostname=HOST) as spoken:
            assert spoken.version() == "TLSv1.3"


# --- addresses --------------------------------------------------------------------------------------------------------


def test_nobody_there_and_a_port_that_is_taken(network):
    with pytest.raises(ConnectionTrouble, match=r"no server answers at 127.0.0.1:1: see that `tertulia serve` runs"):
        client.fetch_proposal(network.identity("north"), f"{HOST}:1")
    reasons = {network.address: "Address already in use", "192.0.2.1:0": "assign requested", "a..b:0": "no host called"}
    for address, reason in reasons.items():
        with pytest.raises(ConfigError, match=f"cannot listen on {re.escape(address)}: .*{reason}"):
            Service(network.authority, network.members, network.backend, address).start()
    for wrong in ("", "host", "host:", ":7", "host:x", "host:70000"):
        with pytest.raises(ConfigError, match="is no address"):
            client.fetch_proposal(network.identity("north"), wrong)


def test_a_host_name_in_the_certificate(changing):
    listening = ListenOptions(f"{HOST}:0", ("localhost",))
    service = Service(changing.authority, changing.members, changing.backend, listening)
    port = service.start()
    try:
        assert client.fetch_proposal(changing.identity("north"), f"localhost:{port}") == b"a plan"
    finally:
        service.stop(0)


def test_the_way_out_of_a_site_is_its_proxy(tmp_path, monkeypatch):
    network = Network(tmp_path / "network", ("north",), hosts=("topics.example.org",))
    proxy = WayOut(network.port)
    monkeypatch.setenv("https_proxy", f"http://{proxy.address}")
    for name in ("no_proxy", "no_grpc_proxy", "grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    try:
        north = network.attend("north", bytes.upper, "topics.example.org:7443")
        assert network.service.transport(["north"]).ask({"north": b"hello"}, PATIENCE) == {"north": b"HELLO"}
        assert client.fetch_proposal(network.identity("north"), "topics.example.org:7443") == b"a plan"
        assert proxy.asked == ["CONNECT topics.example.org:7443 HTTP/1.1"] * 2
        assert north.close() is None
    finally:
        network.close()
        proxy.close()


def test_loopback_does_not_go_through_a_proxy(network, monkeypatch):
    for name in ("https_proxy", "http_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, f"http://{HOST}:1")
    for name in ("no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert client.fetch_proposal(network.identity("north"), network.address) == b"a plan"


def test_texts_of_a_server_play_no_tricks_on_a_terminal(changing, monkeypatch):
    def rude():
        raise ConfigError("\x1b[2Jboo\r\n" + "x" * 1000)

    monkeypatch.setattr(changing.backend, "proposal", rude)
    with pytest.raises(TertuliaError) as caught:
        client.fetch_proposal(changing.identity("north"), changing.address)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 500
