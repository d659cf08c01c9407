"""Proposals: their id covers every field, hostile bytes are refused, no file of a party is named."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.errors import ConfigError, FormatError
from tertulia.network.proposals import MOST_BYTES, Proposal, propose
from tertulia.runs.settings import RunSettings

KEYS = {"north": "ab" * 32, "south": "cd" * 32}
SETTINGS = RunSettings(
    method={"name": "consensus", "topics": 5}, federation={"owners": "several"}, directory="/srv/secret", engine="grpc"
)


def proposed(keys=KEYS, start=None):
    return propose(SETTINGS, ("north", "south"), keys, "oncology", "0" * 16, start or {})


def changed(proposal, **changes):
    """The bytes of a proposal with other facts, under the id of the first."""
    return json.dumps({**json.loads(proposal.to_bytes()), **changes}).encode()


def test_what_was_proposed_is_read():
    proposal = proposed(start={"run": "1" * 16, "hash": "ef" * 32})
    read = Proposal.from_bytes(proposal.to_bytes())
    assert read == proposal
    assert read.run == proposal.run
    assert read.own_plan.hash == proposal.plan
    assert read.run_settings.method.topics == 5


def test_nothing_of_the_servers_own_travels():
    sent = proposed().to_bytes()
    assert b"/srv/secret" not in sent
    assert not {"directory", "engine", "address", "workers", "parties", "data"} & json.loads(sent)["settings"].keys()


def test_without_all_members_there_is_no_plan():
    proposal = proposed(keys={"north": KEYS["north"], "stranger": "00" * 32})
    assert (proposal.missing, proposal.plan, proposal.keys) == (["south"], "", {"north": KEYS["north"]})
    with pytest.raises(ConfigError, match="not all members have joined: south"):
        _ = proposal.own_plan


@pytest.mark.parametrize(
    "change",
    [
        {"federation": "other"}, {"version": "0"}, {"mark": "1"}, {"settings": {}}, {"roster": ("north",)},
        {"keys": {}}, {"plan": ""}, {"start": {"run": "1" * 16, "hash": "ef" * 32}},
    ],
)  # fmt: skip
def test_the_id_covers_every_field(change):
    proposal = proposed()
    assert dataclasses.replace(proposal, **change).run != proposal.run
    with pytest.raises(FormatError):
        Proposal.from_bytes(changed(proposal, **change))  # under the old id


def test_version_and_mark_alone_are_no_difference():
    proposal = proposed()
    assert not proposal.differs(dataclasses.replace(proposal, mark="1", version="0"))
    assert proposal.differs(dataclasses.replace(proposal, keys={}))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"{}", b"null", b"\xff", b'{"run": 1}', b"[" * 100_000, b'{"run": NaN}',
        *(changed(proposed(), **facts) for facts in (
            {"run": "../../x"}, {"run": "0" * 16}, {"run": None}, {"roster": None}, {"roster": "north"},
            {"roster": ["north", "north"]}, {"roster": ["../x", "south"]}, {"keys": {"x": "00" * 32}}, {"keys": []},
            {"settings": 3}, {"mark": "x" * 101}, {"start": {"run": "../x", "hash": "ef" * 32}},
            {"start": {"run": "1" * 16}}, {"extra": 1}, {"federation": "\ud800"},
        )),
    ],
)  # fmt: skip
def test_hostile_bytes_are_refused(data):
    with pytest.raises(FormatError, match=r"^the server's proposal") as caught:
        Proposal.from_bytes(data)
    assert len(str(caught.value)) < 200


def test_a_proposal_that_is_too_long_is_not_parsed():
    with pytest.raises(FormatError, match="is too long"):
        Proposal.from_bytes(bytes(MOST_BYTES + 1))


@given(st.binary(max_size=80))
def test_any_bytes_are_a_proposal_or_an_error(data):
    with pytest.raises(FormatError):
        Proposal.from_bytes(data)


@pytest.mark.parametrize(
    "settings",
    [
        {"method": {"name": "consensus"}, "directory": "/tmp"},
        {"method": {"name": "consensus"}, "start_from": "/etc/passwd"},
        {"method": {"name": "pctd", "vectors": "/etc/passwd"}},
        {"method": {"name": "consensus", "vocabulary": {"mode": "public", "words": "/etc/passwd"}}},
        {"method": {"name": "custom", "module": "os"}},
        {"method": None},
        {},
    ],
)
def test_a_proposal_names_no_file_and_no_code(settings):
    proposal = dataclasses.replace(proposed(), settings=settings)
    with pytest.raises(FormatError, match="the server's proposal"):
        _ = proposal.run_settings


def test_another_plan_than_the_servers_is_refused():
    proposal = dataclasses.replace(proposed(), plan="00" * 32, version="9.9.9")
    with pytest.raises(ConfigError, match=r"its version is 9\.9\.9, and all need the same"):
        _ = proposal.own_plan
