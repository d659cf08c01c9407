"""Keys, certificates, invitations and the register of members: who is let in, and who is not any more."""

import json
import stat
import subprocess
import sys
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tertulia.errors import ConfigError, FormatError, InputError, Stranger
from tertulia.federation.identity import keys, members
from tertulia.federation.identity.authority import Authority
from tertulia.federation.identity.invitations import Invitation
from tertulia.federation.identity.members import Members
from tertulia.federation.identity.party_identity import Identity


@pytest.fixture
def authority(tmp_path):
    return Authority.create(tmp_path / "authority", "oncology")


@pytest.fixture
def register(tmp_path):
    register = Members(tmp_path)
    register.add(["north", "south"])
    return register


def joined(authority, register, directory, name="north", days=365.0):
    """A member that has joined, with its identity."""
    invitation = authority.invite(name, "localhost:1", "oncology")
    register.note_invitation(name, invitation.serial, invitation.expires)
    pem = authority.sign(Identity.create(directory, name, authority.certificate_pem), name, days)
    register.enrol(name, invitation.serial, pem)
    identity = Identity(directory)
    identity.accept(pem)
    return identity


def certificate_of(identity):
    return keys.read_certificate(identity.certificate_pem)


def refused(register, certificate):
    with pytest.raises(Stranger) as caught:
        register.member_of(certificate)
    assert str(caught.value) in members.REASONS
    return str(caught.value)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_who_has_joined_is_admitted_under_its_name(authority, register, tmp_path):
    identity = joined(authority, register, tmp_path / "north")
    assert register.member_of(certificate_of(identity)) == identity.name == "north"
    assert register.keys() == {"north": identity.fingerprint}
    assert [register.state(name) for name in register.names] == ["joined", "invited"]
    assert Members(tmp_path).keys() == register.keys()


def test_keys_are_for_their_owner_alone(authority, register, tmp_path):
    joined(authority, register, tmp_path / "north")
    authority.server_identity(["localhost"])
    for folder in (tmp_path / "north", tmp_path / "authority"):
        assert mode(folder) == 0o700
        assert {mode(path) for path in folder.iterdir()} == {0o600}
    assert mode(tmp_path / "members.json") == 0o600


def test_a_certificate_by_the_authority_alone_opens_nothing(authority, register, tmp_path):
    joined(authority, register, tmp_path / "north")
    other = authority.sign(keys.csr(keys.new_key(), "north"), "north")
    assert refused(register, keys.read_certificate(other)) == members.ANOTHER_KEY
    waits = authority.sign(keys.csr(keys.new_key(), "south"), "south")
    assert refused(register, keys.read_certificate(waits)) == members.NOT_JOINED
    nobody = authority.sign(keys.csr(keys.new_key(), "west"), "west")
    assert refused(register, keys.read_certificate(nobody)) == members.UNKNOWN


def test_who_has_expired_left_or_was_revoked_stays_outside(authority, register, tmp_path):
    identity = joined(authority, register, tmp_path / "north")
    late = keys.read_certificate(authority.sign(keys.csr(keys.read_key(identity.key_pem), "north"), "north", days=-1))
    assert refused(register, late) == members.EXPIRED
    register.leave("north")
    assert refused(register, certificate_of(identity)) == members.LEFT
    Members(tmp_path).revoke("north")  # by another process: seen at once
    assert refused(register, certificate_of(identity)) == members.REVOKED
    with pytest.raises(ConfigError, match="'west' is no member: the members are north, south"):
        register.revoke("west")


def test_who_was_revoked_comes_back_only_with_a_new_invitation_and_key(authority, register, tmp_path):
    old = joined(authority, register, tmp_path / "north")
    with pytest.raises(ConfigError, match="has joined already"):
        register.note_invitation("north", "1", keys.now() + timedelta(days=1))
    register.revoke("north")
    new = joined(authority, register, tmp_path / "again")
    assert register.member_of(certificate_of(new)) == "north"
    assert refused(register, certificate_of(old)) == members.ANOTHER_KEY


def test_an_invitation_serves_one_key(authority, register, tmp_path):
    invitation = authority.invite("north", "localhost:1", "oncology")
    register.note_invitation("north", invitation.serial, invitation.expires)
    assert register.invitee_of(keys.read_certificate(invitation.certificate_pem)) == "north"
    request = Identity.create(tmp_path / "north", "north", invitation.ca_pem)
    register.enrol("north", invitation.serial, authority.sign(request, "north"))
    again = Identity.create(tmp_path / "north", "north", invitation.ca_pem)  # the answer was lost on the way
    register.enrol("north", invitation.serial, authority.sign(again, "north"))
    with pytest.raises(Stranger, match=members.USED):
        register.enrol("north", invitation.serial, authority.sign(keys.csr(keys.new_key(), "north"), "north"))


def test_other_invitations_open_nothing(authority, register, tmp_path):
    first, second = (authority.invite("north", "localhost:1", "oncology") for _ in range(2))
    for invitation in (first, second):
        register.note_invitation("north", invitation.serial, invitation.expires)
    with pytest.raises(Stranger, match=members.NO_INVITATION):
        register.invitee_of(keys.read_certificate(first.certificate_pem))
    pem = authority.sign(keys.csr(keys.new_key(), "north"), "north")
    register.note_invitation("south", "abc", keys.now() - timedelta(seconds=1))
    for name, serial in (("north", first.serial), ("south", "abc")):  # replaced; expired
        with pytest.raises(Stranger, match=members.NO_INVITATION):
            register.enrol(name, serial, pem)
    assert refused(register, keys.read_certificate(second.certificate_pem)) == members.UNKNOWN


def test_invitations_travel_as_files(authority, tmp_path):
    path = tmp_path / "north.invite"
    invitation = authority.invite("north", "topics.example.org:7000", "oncology", days=2)
    invitation.save(path)
    assert Invitation.load(path) == invitation
    assert mode(path) == 0o600
    authority.invite("north", "localhost:1", "oncology", days=-2).save(path)
    with pytest.raises(InputError, match=r"expired on \d{4}-\d\d-\d\d: ask the operator for a new one"):
        Invitation.load(path)
    for text, why in (
        ("hello", "is not an invitation"), ("[1]", "is not an invitation"), ("{}", "is not an invitation"),
        ('{"tertulia-invitation": 2}', "of format 2, this version reads 1"),
        ('{"tertulia-invitation": 1, "member": "north"}', "damaged invitation"),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(FormatError, match=why):
            Invitation.load(path)
    with pytest.raises(InputError, match="cannot read the invitation"):
        Invitation.load(tmp_path / "none.invite")


@pytest.mark.parametrize("field", ["member", "ca_pem", "key_pem", "certificate_pem", "expires"])
def test_damaged_invitations_are_noticed(authority, tmp_path, field):
    path = tmp_path / "north.invite"
    authority.invite("north", "localhost:1", "oncology").save(path)
    facts = json.loads(path.read_text())
    for value in ("../x" if field == "member" else facts[field][:15], 7, None):
        path.write_text(json.dumps({**facts, field: value}))
        with pytest.raises(FormatError, match="damaged invitation"):
            Invitation.load(path)


def test_a_request_needs_its_keys_signature_and_the_members_name(authority):
    request = keys.csr(keys.new_key(), "north")
    with pytest.raises(FormatError, match="another name"):
        authority.sign(request, "south")
    whole = x509.load_pem_x509_csr(request).public_bytes(Encoding.DER)
    forged = x509.load_der_x509_csr(whole[:-1] + bytes([whole[-1] ^ 1])).public_bytes(Encoding.PEM)
    for bad in (forged, b"", b"x" * 100_000):
        with pytest.raises(FormatError, match="signature is wrong"):
            authority.sign(bad, "north")


def test_a_certificate_is_taken_only_if_it_is_ours(authority, register, tmp_path):
    identity = joined(authority, register, tmp_path / "north")
    stranger = Authority.create(tmp_path / "stranger", "oncology")
    own = keys.csr(keys.read_key(identity.key_pem), "north")
    before = identity.certificate_pem
    for pem, why in (
        (stranger.sign(own, "north"), "has not signed"),
        (authority.sign(keys.csr(keys.new_key(), "north"), "north"), "for another key"),
        (authority.sign(keys.csr(keys.read_key(identity.key_pem), "south"), "south"), "for another name"),
    ):
        with pytest.raises(FormatError, match=why):
            identity.accept(pem)
    assert identity.certificate_pem == before
    with pytest.raises(ConfigError, match="holds an identity already, that of 'north'"):
        Identity.create(tmp_path / "north", "south", authority.certificate_pem)
    with pytest.raises(ConfigError, match=r"certificate.pem is missing: join the federation"):
        _ = Identity(tmp_path / "nobody").name


def test_a_renewed_key_takes_over_when_it_is_used(authority, register, tmp_path):
    identity = joined(authority, register, tmp_path / "north")
    old, first = certificate_of(identity), identity.fingerprint
    request, signature = identity.renewal()
    keys.check_renewal(old, request, signature)
    pem = authority.sign(request, "north")
    register.renew("north", pem)
    assert register.member_of(old) == "north"  # the new one may have been lost on the way
    assert register.keys() == {"north": first}
    identity.accept(pem)
    assert identity.fingerprint != first
    assert not (tmp_path / "north" / "key.next.pem").exists()
    assert register.member_of(certificate_of(identity)) == "north"
    assert register.keys() == {"north": identity.fingerprint}
    assert refused(register, old) == members.ANOTHER_KEY


def test_a_renewal_needs_the_old_keys_signature(authority, register, tmp_path):
    identity = joined(authority, register, tmp_path / "north")
    request, signature = identity.renewal()
    thief = keys.csr(keys.new_key(), "north")
    for asked, signed in ((thief, signature), (request, b""), (request, keys.sign_renewal(keys.new_key(), request))):
        with pytest.raises(FormatError, match="not signed by the old key"):
            keys.check_renewal(certificate_of(identity), asked, signed)


def test_a_crash_in_the_middle_of_a_renewal_harms_nobody(authority, register, tmp_path):
    identity = joined(authority, register, tmp_path / "north")
    before = identity.credentials
    request, _ = identity.renewal()
    assert identity.credentials == before
    assert identity.renewal()[0] != b""  # asked again: the same key, so that it does not matter which answer arrives
    pem = authority.sign(request, "north")
    keys.write_private(tmp_path / "north" / "certificate.pem", pem)  # and then it died, before the key was moved
    key, certificate = Identity(tmp_path / "north").credentials
    assert certificate == pem
    assert keys.fingerprint(keys.read_key(key).public_key()) == keys.fingerprint(keys.read_certificate(pem))
    Identity(tmp_path / "north").renewal()  # the next one begins with the key that is in use
    assert Identity(tmp_path / "north").credentials == (key, certificate)


def test_when_a_renewal_is_due(authority, register, tmp_path):
    assert not joined(authority, register, tmp_path / "north").renewal_due
    assert joined(authority, register, tmp_path / "south", "south", days=0.2).renewal_due


def test_the_servers_certificate_is_kept_until_hosts_change(authority):
    first = authority.server_identity(["topics.example.org", "127.0.0.1"])
    assert Authority.open(authority.directory).server_identity(["topics.example.org", "127.0.0.1"]) == first
    other = authority.server_identity(["localhost"])
    assert other != first
    names = keys.read_certificate(other[1]).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    with pytest.raises(ConfigError, match="is no host"):
        authority.server_identity(["a" * 80])


def test_the_servers_certificate_is_renewed_in_its_last_month(authority, monkeypatch):
    first = authority.server_identity(["localhost"])
    later = keys.now() + timedelta(days=340)
    monkeypatch.setattr(keys, "now", lambda: later)
    assert authority.server_identity(["localhost"]) != first


def test_an_authority_is_not_overwritten_and_its_loss_is_said(authority, tmp_path):
    with pytest.raises(ConfigError, match="holds an authority already"):
        Authority.create(tmp_path / "authority", "oncology")
    with pytest.raises(ConfigError, match=r"ca.key.pem is missing: restore it"):
        Authority.open(tmp_path / "nothing")
    (tmp_path / "authority" / "ca.key.pem").write_bytes(keys.pem(keys.new_key()))
    with pytest.raises(FormatError, match=r"not the certificate of ca.key.pem"):
        Authority.open(tmp_path / "authority")


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "é", "x" * 65, "invitation"])
def test_names_that_no_member_can_have(register, name):
    with pytest.raises(ConfigError, match="a member cannot be called"):
        register.add([name])


def test_a_damaged_register_is_said(register, tmp_path):
    for text in ("hello", '{"north": {"state": "king"}}', "[]"):
        (tmp_path / "members.json").write_text(text)
        with pytest.raises(FormatError, match=r"members.json is damaged"):
            _ = register.names


def test_two_processes_share_the_register(register, tmp_path):
    program = (
        "import sys; from pathlib import Path; from tertulia.federation.identity.members import Members\n"
        "for i in range(20): Members(Path(sys.argv[1])).add([sys.argv[2] + str(i)])"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), letter]) for letter in "ab"]
    assert [process.wait(60) for process in running] == [0, 0]
    assert set(register.names) == {"north", "south", *(f"{letter}{i}" for letter in "ab" for i in range(20))}
