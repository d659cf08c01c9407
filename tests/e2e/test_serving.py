"""A server that is served in this process, with parties that attend over TLS: it waits, stops, goes on, gives up."""

import json
import shutil

import numpy as np
import pytest

from helpers.houses import MEMBERS, METHOD, Houses
from helpers.serving import attending, on_a_free_port, serving, wait
from tertulia.federation.engines.grpc import calls
from tertulia.models import Topics
from tertulia.runs.driver import finish
from tertulia.runs.serving import status_of


@pytest.fixture
def houses(tmp_path):
    houses = Houses(tmp_path, method=METHOD.replace("rounds = 3", "rounds = 30"))
    on_a_free_port(houses)
    houses.edit("quorum = 0.5", "quorum = 1.0")
    houses.edit("absent_after = 30.0", "absent_after = 20.0")
    houses.agree()
    return houses


def events(houses):
    log = houses.server.directory / "server.log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def rounds(houses):
    return [event["round"] for event in events(houses) if event["event"] == "round"]


def state(houses):
    return houses.desk.state(houses.desk.newest())


def test_too_few_parties_are_waited_for(houses):
    houses.edit("absent_after = 20.0", "absent_after = 0.3")
    houses.desk.start()
    with serving(houses) as server, attending(houses, "north", "south"):
        wait(lambda: any("waits: 2 of 3 parties answered" in text for text in server.said))
        assert any(event["event"] == "waiting" for event in events(houses))
        assert state(houses).state == "under way"
        with attending(houses, "east"):
            wait(lambda: state(houses).state == "finished")
    assert rounds(houses)[-1] == 31


def test_a_server_that_is_stopped_goes_on_where_it_was(houses):
    houses.desk.start()
    with attending(houses, *MEMBERS):
        with serving(houses):
            wait(lambda: len(rounds(houses)) >= 3)
        done = rounds(houses)[-1]
        assert 3 <= done < 31
        assert state(houses).state == "under way"
        with serving(houses):
            wait(lambda: state(houses).state == "finished")
            facts = status_of(houses.server)
    assert rounds(houses) == list(range(1, 32))  # none is run twice
    assert facts["serving"]
    assert all(row["connected"] for row in facts["members"])
    sent = [event["bytes"]["north"] for event in events(houses) if event["event"] == "round"]
    assert facts["run"]["bytes"]["north"] == [sum(one[0] for one in sent), sum(one[1] for one in sent)]


def test_a_run_that_is_abandoned_ends_and_another_can_be_proposed(houses):
    first = houses.desk.start()
    with attending(houses, *MEMBERS), serving(houses):
        wait(lambda: len(rounds(houses)) >= 2)
        houses.edit("rounds = 30", "rounds = 2")
        assert houses.desk.current().run == first.id
        assert houses.desk.abandon() == first.id
        wait(lambda: events(houses)[-1]["event"] == "halted")
        houses.approve(*MEMBERS)
        second = houses.desk.start()
        wait(lambda: houses.desk.state(second.id).state == "finished")
    assert second.id != first.id
    assert not (first.directory / "model").exists()


def test_a_run_that_stopped_says_why_and_is_started_again(houses, tmp_path):
    houses.edit('on_failure = "skip"', 'on_failure = "stop"')
    houses.approve(*MEMBERS)
    run = houses.desk.start()
    corpus, documents = houses.parties["south"].runs / run.id / "corpus", houses.base / "south.jsonl"
    shutil.rmtree(corpus)
    documents.rename(tmp_path / "moved.jsonl")
    with serving(houses) as server:
        with attending(houses, *MEMBERS):
            wait(lambda: state(houses).state == "stopped")
        assert state(houses).text == "party 'south': failed: the reason is in the party's own log"
        assert any(f"`tertulia start {houses.server.directory}` goes on with it" in text for text in server.said)
        assert "south.jsonl" in (houses.parties["south"].runs / run.id / "party.log").read_text()
        (tmp_path / "moved.jsonl").rename(documents)
        with attending(houses, *MEMBERS):
            assert houses.desk.start().id == run.id
            wait(lambda: state(houses).state == "finished")


def test_what_is_waited_for_is_said_once(houses, monkeypatch):
    monkeypatch.setattr("tertulia.runs.serving._RETRY", 0.2)
    houses.edit("absent_after = 20.0", "absent_after = 0.1")
    houses.desk.start()
    tried = []
    monkeypatch.setattr(
        "tertulia.runs.serving.finish", lambda *given, **named: tried.append(1) or finish(*given, **named)
    )
    with serving(houses) as server:
        wait(lambda: len(tried) >= 4)
        assert len(server.said) == len(set(server.said)) == 1 + len(MEMBERS) + 1  # it serves, three are late, it waits
        noted = [event["event"] for event in events(houses)]
        assert noted == ["serving", "run", *["warning"] * len(MEMBERS), "waiting"]
        with attending(houses, "north"):
            wait(lambda: any("1 of 3 parties answered" in text for text in server.said))


def test_a_key_that_is_renewed_in_the_middle_of_a_run_changes_nothing(houses, tmp_path):
    run, party = houses.desk.start(), houses.parties["north"]
    before = party.identity.fingerprint
    connected = lambda: [e["name"] for e in events(houses) if e["event"] == "connected"].count("north")  # noqa: E731
    with attending(houses, *MEMBERS), serving(houses):
        wait(lambda: len(rounds(houses)) >= 3)
        calls.renew(party.identity, houses.address)
        assert calls.server_time(party.identity, houses.address)  # from now on the old key opens nothing
        wait(lambda: connected() == 2)
        assert rounds(houses)[-1] < 31
        wait(lambda: state(houses).state == "finished")
    assert houses.server.members.keys()["north"] == party.identity.fingerprint != before
    assert run.keys["north"] == before  # the plan is the one that was agreed
    assert rounds(houses) == list(range(1, 32))
    assert all(up > 0 for event in events(houses) if event["event"] == "round" for _, up in event["bytes"].values())
    (tmp_path / "undisturbed").mkdir()
    other = Houses(tmp_path / "undisturbed", method=METHOD.replace("rounds = 3", "rounds = 30")).agree()
    undisturbed, found = other.finish(other.desk.start()), Topics.load(run.directory / "model")
    assert found.vocabulary.words == undisturbed.vocabulary.words
    np.testing.assert_array_equal(found.topic_word, undisturbed.topic_word)
    np.testing.assert_array_equal(found.alpha, undisturbed.alpha)
