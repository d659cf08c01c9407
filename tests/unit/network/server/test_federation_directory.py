"""The operator's file, and the directory of a federation."""

import pytest

from helpers.sites import Sites
from tertulia.errors import ConfigError
from tertulia.network.party.party_directory import PartyDirectory
from tertulia.network.server.federation_directory import FederationDirectory, FederationFile, create, split_address


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"members": ("a", "a")}, "'a' is named twice"),
        ({"members": ()}, "members"),
        ({"members": ("../a",)}, "a member cannot be called '../a'"),
        ({"address": "here"}, "'here' is no address: write host:port"),
        ({"address": "here:99999"}, "is no address"),
        ({"address": "::1:80"}, "is no address"),
        ({"method": {"name": "centralised"}}, "brings all documents to one place"),
        ({"method": {"name": "custom", "module": "mine"}}, "runs on one machine only"),
        ({"parties": {}}, "unknown key 'parties'"),
        ({"terms": {"quorum": 2}}, "terms.quorum = 2"),
        ({"terms": {"owners": "one"}}, "unknown key 'terms.owners'"),
        ({"quorum": 0.5}, "it belongs to 'terms', so write 'terms.quorum'"),
    ],
)
def test_a_wrong_file_is_one_sentence(changes, said):
    with pytest.raises(ConfigError) as caught:
        FederationFile(**{"name": "x", "address": "localhost:1", "members": ("a",), **changes})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_where_the_server_listens():
    def listens(address, listen=None):
        return FederationFile(name="x", address=address, members=("a",), listen=listen).listens_on

    assert listens("localhost:7") == "localhost:7"
    assert listens("[::1]:7") == "[::1]:7"
    assert listens("topics.example.org:7") == "0.0.0.0:7"
    assert listens("topics.example.org:443", "10.0.0.1:7433") == "10.0.0.1:7433"
    assert split_address("[::1]:7") == ("::1", 7)


def test_init_is_not_repeated_and_can_be_taken_up(tmp_path):
    with pytest.raises(ConfigError, match="named twice"):
        create(tmp_path / "x", ["a", "a"], "localhost:1", 7)
    assert not (tmp_path / "x").exists()
    create(tmp_path / "x", ["a", "b"], "localhost:1", 7)
    with pytest.raises(ConfigError, match="holds a federation already"):
        create(tmp_path / "x", ["a", "b"], "localhost:1", 7)
    (tmp_path / "x" / "federation.toml").unlink()  # as if it had been broken off
    before = (tmp_path / "x" / "authority" / "ca.pem").read_bytes()
    create(tmp_path / "x", ["a", "b"], "localhost:1", 7)
    assert (tmp_path / "x" / "authority" / "ca.pem").read_bytes() == before
    with pytest.raises(ConfigError, match="it has no federation"):
        FederationDirectory(tmp_path)
    with pytest.raises(ConfigError, match="it has no party"):
        PartyDirectory(tmp_path)


def test_a_federations_name_is_one(tmp_path):
    with pytest.raises(ConfigError, match="a federation cannot be called 'two words'"):
        create(tmp_path / "two words", ["a"], "localhost:1", 7)


def test_a_member_that_has_joined_is_invited_again_only_after_it_was_revoked(tmp_path):
    sites = Sites(tmp_path)
    sites.join("north")
    with pytest.raises(ConfigError, match="'north' has joined already"):
        sites.server.invite("north", 7)
    sites.server.members.revoke("north")
    assert sites.server.invite("north", 7).name == "north.invite"


@pytest.mark.parametrize(("members", "secure"), [(("a",), False), (("a", "b"), False), (("a", "b", "c"), True)])
def test_three_members_have_secure_sums_by_default(members, secure, tmp_path, tertulia):
    code, out, _ = tertulia("init", tmp_path / "ward", "--members", ",".join(members), "--yes")
    assert code == 0
    file = FederationDirectory(tmp_path / "ward").file
    assert file.terms.secure is secure
    assert file.method.vocabulary.mode == ("common" if secure else "union")
    assert ("The server will read each party's numbers, for masked sums need three members" in out) is not secure
