"""The shared model comes to a party: over TLS, to who took part, when the run is over, and only if it is a model."""

import json
import shutil
from contextlib import contextmanager

import numpy as np
import pytest

from helpers.network import Network
from helpers.sites import MEMBERS, Sites
from tertulia.errors import ConfigError, ConnectionTrouble, FormatError, TertuliaError
from tertulia.federation.codec import decode, encode
from tertulia.federation.engines.grpc import client, wire
from tertulia.federation.engines.grpc.listener import ListenOptions
from tertulia.federation.engines.grpc.service import Service
from tertulia.models import Topics
from tertulia.network.party.received_models import fetch_run, keep_model

JSON, TENSORS = "model.json", "topics.safetensors"


@contextmanager
def served(sites):
    """The server lets parties in, which know its port, for as long as the block lasts."""
    service = Service(
        sites.server.authority, sites.server.members, sites.registry, ListenOptions("localhost:0", ["localhost"])
    )
    sites.address = f"localhost:{service.start()}"
    for party in sites.parties.values():
        file = party.directory / "party.toml"
        file.write_text(file.read_text().replace(party.file.server, sites.address))
    try:
        yield sites
    finally:
        service.stop(0)


def complete(sites):
    run = sites.registry.start()
    sites.finish(run)
    sites.registry.end(run.id, "finished")
    return run


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """A finished run; tests fetch at parties, and change no more."""
    sites = Sites(tmp_path_factory.mktemp("sites")).agree()
    sites.run = complete(sites)
    with served(sites):
        yield sites


def files(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def left_in(sites, member="south"):
    """What is in a party's directory of the run that could be a model."""
    return sorted(path.name for path in (sites.parties[member].runs / sites.run.id).glob("*model*"))


def test_a_party_gets_the_same_files(sites, tertulia):
    north = sites.parties["north"]
    place = north.runs / sites.run.id
    code, _, err = tertulia("topics", place)
    assert code == 1
    assert f"`tertulia fetch {north.directory} {sites.run.id}` fetches the shared one" in err
    assert f"tertulia fetch {north.directory} " in tertulia("status", north.directory)[1]
    for _ in range(2):  # again, it takes the place of the first
        code, out, err = tertulia("fetch", north.directory)
        assert code == 0, err
        assert f"next: tertulia topics {place}" in out
        assert files(place / "model") == files(sites.run.directory / "model")
    assert all(path.stat().st_mode & 0o077 == 0 for path in (place / "model", *(place / "model").iterdir()))
    code, out, _ = tertulia("topics", place, "--json")
    assert code == 0
    assert json.loads(out)["topics"] == Topics.load(sites.run.directory / "model").top_words(10)
    assert f"tertulia topics {place}" in tertulia("status", north.directory)[1]
    assert json.loads(tertulia("status", north.directory, "--json")[1])["runs"][0]["model"] == "fetched"
    assert not (place / "model.part").exists()


def test_a_stranger_gets_nothing(sites, tmp_path):
    other = Sites(tmp_path)
    other.join("north")
    identity = other.parties["north"].identity
    with pytest.raises(ConnectionTrouble, match="is not the one that invited"):
        client.fetch_model(identity, sites.address, sites.run.id)
    shutil.copyfile(sites.parties["north"].identity.directory / "ca.pem", identity.directory / "ca.pem")
    with pytest.raises(ConnectionTrouble):
        client.fetch_model(identity, sites.address, sites.run.id)


def test_a_member_that_was_not_of_the_run_gets_nothing(sites):
    sites.server.invite("west", 7)
    sites.join("west")
    identity = sites.parties["west"].identity
    for run in (sites.run.id, "00" * 8, "..", "", f"../runs/{sites.run.id}", "x" * 5000):
        with pytest.raises(client.NoModel, match="no such run, or this party is not on its roster"):
            client.fetch_model(identity, sites.address, run)


def test_a_run_that_was_not_approved_here_is_not_asked_for(sites):
    south = sites.parties["south"]
    for run in ("00" * 8, "../south", ""):
        with pytest.raises(ConfigError, match=r"is no run that .* has approved"):
            fetch_run(south, run)


def forgeries(data):
    """What a hostile server could send in place of a model."""
    sent = decode(data)
    about = json.loads(bytes(sent[JSON]))
    changed = lambda **facts: {**sent, JSON: array(json.dumps({**about, **facts}).encode())}  # noqa: E731
    yield from (b"", b"x" * 1000, data[:-1], encode(None), encode({}), encode({JSON: sent[JSON]}))
    yield from (encode({**sent, name: array(b"x")}) for name in ("party.json", "../party.json", "/x", "run.json"))
    yield from (encode({**sent, name: value}) for name in sent for value in (None, "x", np.ones(3), array(b"")))
    yield encode({**sent, JSON: sent[JSON].reshape(1, -1)})
    yield encode({**sent, TENSORS: sent[TENSORS][:-1]})
    yield encode(changed(provenance={"run": "00" * 8}))
    yield encode(changed(provenance={}))
    yield encode(changed(format=2))
    yield encode(changed(format="\x1b[2J" * 1000))
    yield encode(changed(vocabulary=about["vocabulary"][1:]))
    yield encode(changed(options={**about["options"], "min_length": 9}))
    yield encode(changed(beta="x"))


def array(data):
    return np.frombuffer(data, np.uint8)


def test_what_is_no_model_is_refused_and_nothing_written(sites):
    south, data = sites.parties["south"], sites.registry.model("south", sites.run.id)
    tried = list(forgeries(data))
    for forgery in tried:
        with pytest.raises(FormatError, match=r"is no model of run .*: nothing was kept") as found:
            keep_model(south, sites.run.id, forgery)
        assert len(str(found.value)) < 600
        assert left_in(sites) == []
    assert len(tried) > 20
    place = keep_model(south, sites.run.id, data)
    with pytest.raises(FormatError):
        keep_model(south, sites.run.id, tried[-1])
    assert files(place) == files(sites.run.directory / "model")  # what there was stays
    assert left_in(sites) == ["model"]
    shutil.rmtree(place)


def test_bytes_that_were_changed_on_the_way_are_a_model_or_an_error_of_ours(sites):
    south, data = sites.parties["south"], sites.registry.model("south", sites.run.id)
    rng, refused = np.random.default_rng(0), 0
    for _ in range(80):
        changed = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            changed[place] = rng.integers(256)
        try:
            shutil.rmtree(keep_model(south, sites.run.id, bytes(changed)))
        except TertuliaError:
            refused += 1
        assert left_in(sites) == []
    assert refused > 20


def test_a_model_that_is_longer_than_a_message(tmp_path):
    network = Network(tmp_path / "network")
    try:
        found = client.fetch_model(network.identity("north"), network.address, "a1")
        assert len(found) > wire.MOST_MESSAGE
        assert found == network.backend.model("north", "a1")
    finally:
        network.close()


def test_before_the_end_a_sentence_and_after_it_the_newest(tmp_path):
    with served(Sites(tmp_path).agree()) as sites:
        north = sites.parties["north"]
        with pytest.raises(ConfigError, match=rf"run {sites.registry.current().run}: this run is not finished yet"):
            fetch_run(north)
        first = complete(sites)
        assert fetch_run(north).parent.name == first.id
        sites.edit("seed = 0", "seed = 1")
        sites.approve(*MEMBERS)
        second = sites.registry.start()
        assert fetch_run(north).parent.name == first.id
        with pytest.raises(ConfigError, match=f"run {second.id}: this run is not finished yet"):
            fetch_run(north, second.id)
        sites.registry.abandon()
        with pytest.raises(ConfigError, match="was given up"):
            fetch_run(north, second.id)
        sites.server.members.revoke("north")
        with pytest.raises(ConnectionTrouble, match="was revoked"):
            fetch_run(north)
        south = sites.parties["south"]
        fetch_run(south)
        assert "model" in south.forget(first.id)
        with pytest.raises(ConfigError, match=r"is no run that .* has approved"):
            fetch_run(south, first.id)
