"""States of runs: the server sends constants, and a party accepts nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.sites import Sites
from tertulia.errors import FormatError
from tertulia.federation.engines.grpc import wire
from tertulia.federation.engines.grpc.service import News
from tertulia.network.endings import (
    ABANDONED,
    FINISHED,
    STOPPED,
    UNDER_WAY,
    Ending,
    ending_or_none,
    from_bytes,
    keep_ending,
    to_bytes,
)  # fmt: skip
from tertulia.network.party.attendant import Attendant, status_of_party

RUN = "0123456789abcdef"
ENDINGS = {RUN: Ending(FINISHED, 121), "f" * 16: Ending(UNDER_WAY)}


def test_what_is_said_is_heard():
    assert from_bytes(to_bytes(ENDINGS)) == ENDINGS


@pytest.mark.parametrize(
    "said",
    [
        b"", b"\xff", b"[]", b"{", b"[" * 100_000, b'{"../x": ["finished", 1]}', b'{"%s": "finished"}' % RUN.encode(),
        *(json.dumps({RUN: facts}).encode() for facts in (
            ["won", 1], ["finished"], ["finished", -1], ["finished", 1.5], ["finished", True], ["finished", 10**9],
            ["finished", "1"], [["finished"], 1], {"state": "finished", "round": 1}, [None, 1], ["finished", 1, 1],
        )),
        json.dumps({f"{number:016x}": ["finished", 1] for number in range(201)}).encode(),
        b" " * 70_000 + b"{}",
    ],
)  # fmt: skip
def test_nothing_else_is_taken(said):
    with pytest.raises(FormatError, match=r"^what the server says of runs cannot be read$"):
        from_bytes(said)


@given(st.binary(max_size=60))
def test_whatever_the_bytes(data):
    try:
        found = from_bytes(data)
    except FormatError:
        return
    assert all(isinstance(one, Ending) for one in found.values())


def test_what_is_kept_is_read_again_and_a_damaged_file_says_nothing(tmp_path):
    assert ending_or_none(tmp_path) is None
    assert keep_ending(tmp_path, Ending(STOPPED, 3))
    assert not keep_ending(tmp_path, Ending(STOPPED, 3))  # no news
    assert ending_or_none(tmp_path) == Ending(STOPPED, 3)
    (tmp_path / "ended.json").write_text('["won", 3]')
    assert ending_or_none(tmp_path) is None


def test_news_goes_to_who_listens_and_only_when_it_is_news():
    class Registry:
        said = b"{}"

        def news(self, member):
            return self.said

    registry = Registry()
    assert News(registry, "north", ()).chunks(idle=True) == []
    news = News(registry, "north", (wire.LISTENS,))
    (chunk,) = news.chunks(idle=False)  # the first time in any case
    assert wire.news_or_none(chunk) == b"{}"
    assert news.chunks(idle=True) == []
    registry.said = to_bytes(ENDINGS)
    assert news.chunks(idle=False) == []  # a question goes first
    (chunk,) = news.chunks(idle=True)
    assert from_bytes(wire.news_or_none(chunk)) == ENDINGS
    registry.said = b"x" * (wire.CHUNK + 1)
    assert news.chunks(idle=True) == []


def test_a_chunk_of_news_that_cannot_be():
    (chunk,) = wire.chunks(wire.QUESTION, 1, b"what?")
    assert wire.news_or_none(chunk) is None
    first = next(wire.chunks(wire.NEWS, 0, b"x" * (2 * wire.CHUNK)))
    for wrong in (first, bytes([wire.NEWS]), bytes([wire.NEWS, 1, 2])):
        with pytest.raises(FormatError):
            wire.news_or_none(wrong)


@pytest.fixture
def sites(tmp_path):
    sites = Sites(tmp_path, members=("north", "south", "east"))
    sites.agree()
    return sites


def test_states_go_to_members_of_the_roster(sites, monkeypatch):
    monkeypatch.setattr("tertulia.network.endings._FRESH", 0.0)
    assert from_bytes(sites.registry.news("north")) == {}
    run = sites.registry.start()
    assert from_bytes(sites.registry.news("north")) == {run.id: Ending(UNDER_WAY)}
    sites.finish(run)
    for state in (STOPPED, ABANDONED, FINISHED):
        sites.registry.end(run.id, state, "why is the server's own")
        assert from_bytes(sites.registry.news("east")) == {run.id: Ending(state, 5)}
    assert b"why" not in sites.registry.news("east")
    assert from_bytes(sites.registry.news("west")) == {}
    (run.directory / "run.json").write_text("{")
    assert from_bytes(sites.registry.news("north")) == {run.id: Ending(FINISHED, 5)}  # its roster is known


def test_a_party_keeps_what_it_hears_of_its_runs(sites):
    run = sites.registry.start()
    north = sites.parties["north"]
    sites.finish(run)

    def row():
        (found,) = status_of_party(north)["runs"]
        return found["state"], found["round"]

    attendant = Attendant(north)
    assert row() == ("approved", 4)  # the round survives the end of a process
    assert attendant.hear(to_bytes({run.id: Ending(STOPPED, 5), RUN: Ending(FINISHED, 9)})) == {
        run.id: Ending(STOPPED, 5)
    }
    assert row() == (STOPPED, 5)
    assert not (north.runs / RUN).exists()
    assert attendant.hear(b"nonsense") == {}
    assert "what the server says of runs cannot be read" in (north.directory / "party.log").read_text()
    assert row() == (STOPPED, 5)
    Attendant(north).note(connected=True)  # it attends again
    assert row() == (STOPPED, 5)
    attendant.hear(to_bytes({run.id: Ending(FINISHED, 5)}))
    assert row() == (FINISHED, 5)
    north.forget(run.id)
    assert row() == ("forgotten", 5)


def test_a_question_of_a_run_that_was_stopped_says_that_it_goes_on(sites):
    run = sites.registry.start()
    north = sites.parties["north"]
    Attendant(north).hear(to_bytes({run.id: Ending(STOPPED, 1)}))
    sites.finish(run)
    assert ending_or_none(north.runs / run.id) == Ending(UNDER_WAY)
