"""A server that is served in this process, with parties that attend over TLS: it waits, stops, goes on, gives up."""

import json
import shutil

import numpy as np
import pytest

from helpers.serving import attending, on_a_free_port, serving, wait
from helpers.sites import MEMBERS, METHOD, Sites
from tertulia.federation.engines.grpc import client
from tertulia.models import Topics
from tertulia.network.server.service import status_of
from tertulia.runs.driver import finish


@pytest.fixture
def sites(tmp_path):
    sites = Sites(tmp_path, method=METHOD.replace("rounds = 3", "rounds = 30"))
    on_a_free_port(sites)
    sites.edit("quorum = 0.5", "quorum = 1.0")
    sites.edit("absent_after = 30.0", "absent_after = 20.0")
    sites.agree()
    return sites


def events(sites):
    log = sites.server.directory / "server.log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def rounds(sites):
    return [event["round"] for event in events(sites) if event["event"] == "round"]


def state(sites):
    return sites.registry.state(sites.registry.newest())


def test_too_few_parties_are_waited_for(sites):
    sites.edit("absent_after = 20.0", "absent_after = 0.3")
    sites.registry.start()
    with serving(sites) as server, attending(sites, "north", "south"):
        wait(lambda: any("waits: 2 of 3 parties answered" in text for text in server.said))
        assert any(event["event"] == "waiting" for event in events(sites))
        assert state(sites).state == "under way"
        with attending(sites, "east"):
            wait(lambda: state(sites).state == "finished")
    assert rounds(sites)[-1] == 32


def test_a_server_that_is_stopped_goes_on_where_it_was(sites):
    sites.registry.start()
    with attending(sites, *MEMBERS):
        with serving(sites):
            wait(lambda: len(rounds(sites)) >= 3)
        done = rounds(sites)[-1]
        assert 3 <= done < 32
        assert state(sites).state == "under way"
        with serving(sites):
            wait(lambda: state(sites).state == "finished")
            facts = status_of(sites.server)
    assert rounds(sites) == list(range(1, 33))  # none is run twice
    assert facts["serving"]
    assert all(row["connected"] for row in facts["members"])
    sent = [event["bytes"]["north"] for event in events(sites) if event["event"] == "round"]
    assert facts["run"]["bytes"]["north"] == [sum(one[0] for one in sent), sum(one[1] for one in sent)]


def test_a_run_that_is_abandoned_ends_and_another_can_be_proposed(sites):
    first = sites.registry.start()
    with attending(sites, *MEMBERS), serving(sites):
        wait(lambda: len(rounds(sites)) >= 2)
        sites.edit("rounds = 30", "rounds = 2")
        assert sites.registry.current().run == first.id
        assert sites.registry.abandon() == first.id
        wait(lambda: events(sites)[-1]["event"] == "halted")
        sites.approve(*MEMBERS)
        second = sites.registry.start()
        wait(lambda: sites.registry.state(second.id).state == "finished")
    assert second.id != first.id
    assert not (first.directory / "model").exists()


def test_a_run_that_stopped_says_why_and_is_started_again(sites, tmp_path):
    sites.edit('on_failure = "skip"', 'on_failure = "stop"')
    sites.approve(*MEMBERS)
    run = sites.registry.start()
    corpus, documents = sites.parties["south"].runs / run.id / "corpus", sites.base / "south.jsonl"
    shutil.rmtree(corpus)
    documents.rename(tmp_path / "moved.jsonl")
    with serving(sites) as server:
        with attending(sites, *MEMBERS):
            wait(lambda: state(sites).state == "stopped")
        assert state(sites).text == "party 'south': failed: the reason is in the party's own log"
        assert any(f"`tertulia start {sites.server.directory}` goes on with it" in text for text in server.said)
        assert "south.jsonl" in (sites.parties["south"].runs / run.id / "party.log").read_text()
        (tmp_path / "moved.jsonl").rename(documents)
        with attending(sites, *MEMBERS):
            assert sites.registry.start().id == run.id
            wait(lambda: state(sites).state == "finished")


def test_what_is_waited_for_is_said_once(sites, monkeypatch):
    monkeypatch.setattr("tertulia.network.server.service._RETRY", 0.2)
    sites.edit("absent_after = 20.0", "absent_after = 0.1")
    sites.registry.start()
    tried = []
    monkeypatch.setattr(
        "tertulia.network.server.service.finish", lambda *given, **named: tried.append(1) or finish(*given, **named)
    )
    with serving(sites) as server:
        wait(lambda: len(tried) >= 4)
        assert len(server.said) == len(set(server.said)) == 1 + len(MEMBERS) + 1  # it serves, three are late, it waits
        noted = [event["event"] for event in events(sites)]
        assert noted == ["serving", "run", *["warning"] * len(MEMBERS), "waiting"]
        with attending(sites, "north"):
            wait(lambda: any("1 of 3 parties answered" in text for text in server.said))


def test_a_key_that_is_renewed_in_the_middle_of_a_run_changes_nothing(sites, tmp_path):
    run, party = sites.registry.start(), sites.parties["north"]
    before = party.identity.fingerprint
    connected = lambda: [e["name"] for e in events(sites) if e["event"] == "connected"].count("north")  # noqa: E731
    with attending(sites, *MEMBERS), serving(sites):
        wait(lambda: len(rounds(sites)) >= 3)
        client.renew(party.identity, sites.address)
        assert client.server_time(party.identity, sites.address)  # from now on the old key opens nothing
        wait(lambda: connected() == 2)
        assert rounds(sites)[-1] < 32
        wait(lambda: state(sites).state == "finished")
    assert sites.server.members.keys()["north"] == party.identity.fingerprint != before
    assert run.keys["north"] == before  # the plan is the one that was agreed
    assert rounds(sites) == list(range(1, 33))
    assert all(up > 0 for event in events(sites) if event["event"] == "round" for _, up in event["bytes"].values())
    (tmp_path / "undisturbed").mkdir()
    other = Sites(tmp_path / "undisturbed", method=METHOD.replace("rounds = 3", "rounds = 30")).agree()
    undisturbed, found = other.finish(other.registry.start()), Topics.load(run.directory / "model")
    assert found.vocabulary.words == undisturbed.vocabulary.words
    np.testing.assert_array_equal(found.topic_word, undisturbed.topic_word)
    np.testing.assert_array_equal(found.alpha, undisturbed.alpha)
