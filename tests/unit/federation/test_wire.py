"""The wire protocol before a peer is trusted: chunks, versions, addresses, and the errors of calls."""

import os
import threading

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.errors import ConfigError, FormatError
from tertulia.federation.engines.grpc import client, connections, party_session, wire
from tertulia.federation.party.failures import ENCODED_FAILURE


@pytest.mark.parametrize("size", [0, 1, wire.CHUNK, wire.CHUNK + 1, 2 * wire.CHUNK, 2 * wire.CHUNK + 7])
def test_frames_are_cut_and_put_together(size):
    frame, assembler = os.urandom(size), wire.Assembler(wire.ANSWER)
    chunks = list(wire.chunks(wire.ANSWER, 5, frame))
    assert len(chunks) == max(1, -(-size // wire.CHUNK))
    assert [assembler.take(chunk) for chunk in chunks] == [None] * (len(chunks) - 1) + [(5, frame)]


def test_a_frame_that_is_not_finished_gives_way_to_the_next():
    assembler = wire.Assembler(wire.ANSWER)
    first = next(wire.chunks(wire.ANSWER, 1, bytes(2 * wire.CHUNK)))
    assert assembler.take(first) is None
    (second,) = wire.chunks(wire.ANSWER, 2, b"abc")
    assert assembler.take(second) == (2, b"abc")


def test_nothing_is_kept_of_what_is_not_wanted():
    assembler = wire.Assembler(wire.ANSWER)
    for chunk in wire.chunks(wire.ANSWER, 1, bytes(3 * wire.CHUNK)):
        for wanted in (2, None):
            assert assembler.take(chunk, wanted) is None
            assert not assembler._parts


def test_memory_is_capped_while_bytes_come_in(monkeypatch):
    monkeypatch.setattr(wire, "MOST_BYTES", 2 * wire.CHUNK)
    assembler = wire.Assembler(wire.ANSWER)
    chunks = wire.chunks(wire.ANSWER, 1, bytes(4 * wire.CHUNK))
    assert [assembler.take(next(chunks)) for _ in range(2)] == [None, None]
    with pytest.raises(FormatError, match="too long"):
        assembler.take(next(chunks))


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_whatever_comes_is_a_chunk_or_an_error_of_ours(messages):
    assembler = wire.Assembler(wire.ANSWER)
    for message in messages:
        try:
            assembler.take(message)
        except FormatError:
            return


def test_versions_are_compared_by_protocol():
    assert wire.difference_or_none(wire.Hello(1, "0.1.0"), wire.Hello(1, "0.3.0")) is None
    text = wire.difference_or_none(wire.Hello(1, "0.1.0"), wire.Hello(2, "0.3.0"))
    assert "the server speaks protocol 1 (tertulia 0.1.0), the party protocol 2 (tertulia 0.3.0)" in text
    assert wire.Hello.read([("other", b""), (wire.HELLO, wire.Hello(3, "4.5").to_bytes())]) == wire.Hello(3, "4.5")


@pytest.mark.parametrize(
    "said", [b"", b"{", b"[]", b'{"protocol": "1"}', b'{"protocol": true, "version": "1"}', b"[" * 2000,
             b'{"protocol": 1, "version": "\\u001b[2J"}', b'{"protocol": 1e400, "version": "1"}'],
)  # fmt: skip
def test_a_hello_that_cannot_be_read_is_of_no_protocol(said):
    assert wire.Hello.read([(wire.HELLO, said)]).protocol == 0


def test_addresses():
    assert wire.Address.parse("topics.example.org:7443").target == "topics.example.org:7443"
    assert wire.Address.parse("[::1]:7443").target == "[::1]:7443"
    assert wire.Address.parse("http://127.0.0.1:0").plain
    loopback = {"127.0.0.1": True, "localhost": True, "::1": True, "10.0.0.1": False, "localhost.example.org": False}
    assert {host: wire.Address(host, 1).is_loopback for host in loopback} == loopback
    with pytest.raises(ConfigError, match="would go without TLS"):
        wire.Address.parse("http://localhost.example.org:1")


class Ended:
    """The end of a call, as gRPC describes it."""

    def __init__(self, code, details):
        self._code, self._details = code, details

    def code(self):
        return self._code

    def details(self):
        return self._details

    def trailing_metadata(self):
        return ()


@pytest.mark.parametrize("code", grpc.StatusCode)
@pytest.mark.parametrize(
    "details", ["", "\x1b[2J{host}", wire.OTHER_PROTOCOL, wire.NEWER_STREAM, "hostname lookup error"]
)
def test_every_end_of_a_call_is_one_sentence(code, details):
    text = str(client.connection_error(Ended(code, details), wire.Address("topics.example.org", 7443)))
    assert text.isprintable()
    assert 10 < len(text) < 400 or details.startswith("\x1b")
    assert "{where}" not in text


def test_questions_and_answers_that_nobody_would_take_are_not_sent(monkeypatch):
    monkeypatch.setattr(connections, "MOST_BYTES", 10)
    monkeypatch.setattr(party_session, "MOST_BYTES", 10)
    with pytest.raises(FormatError, match="a question of 11 bytes is too long"):
        connections.GrpcTransport(connections.Connections(), ["a"]).ask({"a": bytes(11)}, None)

    def answer(frame):
        party.stop()
        return bytes(11)

    party = party_session.WorkQueue(answer)
    party.add(1, b"")
    party.run()
    assert party._ready == (1, ENCODED_FAILURE)


def test_a_repeat_that_crosses_its_answer_is_not_worked_again_unless_the_stream_ends():
    asked, stream = [], threading.Event()

    def answer(frame):
        asked.append(frame)
        return frame.upper()

    party = party_session.WorkQueue(answer)
    worker = threading.Thread(target=party.run)
    worker.start()
    try:
        party.add(1, b"a")
        assert party.take(stream) == (1, b"A")
        party.add(1, b"a")  # the server repeated it before it had the answer
        party.sent(1)
        party.add(1, b"a")
        assert party._waiting is None  # a question waits, then is worked on, then its answer waits: in this order
        assert not party.busy
        assert not party.unsent
        party.add(2, b"b")
        assert party.take(stream) == (2, b"B")
        assert asked == [b"a", b"b"]
        party.wake()  # the stream has ended, perhaps without the answer
        party.add(2, b"b")
        assert party.take(stream) == (2, b"B")
    finally:
        party.stop()
        worker.join(20)
