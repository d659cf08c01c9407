"""Links that are slow, cut or dead, parties that dawdle, repeat themselves or talk nonsense: every question is answered
once and rightly, or its party counts as silent, and nobody else notices."""

import os
import threading
import time

import grpc
import pytest

from helpers.marks import slow
from helpers.network import PATIENCE, Network, Party, TcpProxy, eventually
from tertulia.federation.codec import decode
from tertulia.federation.engines.grpc import connections, party_session, wire

QUICK = wire.Keepalive(every=0.5, patience=0.5)


@pytest.fixture
def network(tmp_path):
    network = Network(tmp_path / "network", keepalive=QUICK)
    yield network
    network.close()


@pytest.fixture
def proxy(network):
    proxies = []

    def make(**trouble):
        proxies.append(TcpProxy(network.port, **trouble))
        return proxies[-1]

    yield make
    for made in proxies:
        made.close()


def upper(frame):
    return frame.upper()


class Slow:
    """A party that answers when the test allows it."""

    def __init__(self):
        self.asked, self.may = [], threading.Event()

    def __call__(self, frame):
        self.asked.append(frame)
        assert self.may.wait(20)
        return frame.upper()


# --- links ------------------------------------------------------------------------------------------------------------


def test_questions_go_out_at_once_and_answers_come_back_whole(network):
    network.attend("north", upper)
    network.attend("south", bytes)
    transport = network.service.transport(["north", "south", "absent"], absent_after=0.0)
    assert transport.parties == ["north", "south", "absent"]
    for size in (0, 1, wire.CHUNK - 1, wire.CHUNK, wire.CHUNK + 1, 3 * wire.CHUNK):
        frame = os.urandom(size)
        answers = transport.ask({"north": frame, "south": frame, "absent": frame}, None)
        assert answers == {"north": frame.upper(), "south": frame}


def test_a_slow_link(network, proxy):
    link = proxy(delay=0.02)
    network.attend("north", upper, link.address)
    assert network.service.transport(["north"]).ask({"north": b"a" * 300_000}, PATIENCE) == {"north": b"A" * 300_000}


@pytest.mark.parametrize("after", [100_000, 1_500_000])
@pytest.mark.parametrize("way", ["down", "up"])
def test_a_cut_in_the_middle_of_a_question_or_of_its_answer(network, proxy, way, after):
    link, asked = proxy(), []

    def answer(frame):
        asked.append(len(frame))
        return frame.upper()

    network.attend("north", answer, link.address)
    link.cut = (way, after)
    frame = b"abc" * 1_000_000
    assert network.service.transport(["north"]).ask({"north": frame}, PATIENCE) == {"north": frame.upper()}
    assert asked == [3_000_000] * (2 if way == "up" else 1)
    assert link.cuts == 1
    assert link.links == network.texts("connected").count("north") == 2


def test_a_link_that_is_dead_without_a_word_is_noticed_on_both_sides(network, proxy):
    link = proxy()
    north = network.attend("north", upper, link.address, QUICK)
    link.die()
    assert network.service.transport(["north"]).ask({"north": b"hello"}, PATIENCE) == {"north": b"HELLO"}
    assert link.links == 2
    assert any("dead" in str(facts.get("text")) for kind, facts in north.events if kind == "disconnected")


def test_the_server_notices_a_dead_link_by_itself(network, proxy):
    link = proxy()
    network.attend("north", upper, link.address)  # it pings every 30 seconds only
    link.die()
    transport = network.service.transport(["north"], absent_after=0.0)
    assert transport.ask({"north": b"hello"}, 20.0) == {}
    eventually(lambda: network.texts("disconnected") == ["north"])


def test_an_idle_stream_is_left_alone(network):
    north = network.attend("north", upper, keepalive=QUICK)
    time.sleep(2.5)  # five pings each way
    assert network.service.transport(["north"]).ask({"north": b"hello"}, PATIENCE) == {"north": b"HELLO"}
    assert north.count("connected") == 1


def test_a_server_that_is_started_again_finds_its_parties(network):
    parties = [network.attend(name, upper) for name in ("north", "south")]
    network.service.stop(0)
    eventually(lambda: all(party.count("disconnected") for party in parties))
    network.open()
    assert network.service.transport(["north", "south"]).ask({"north": b"a", "south": b"b"}, PATIENCE) == {
        "north": b"A",
        "south": b"B",
    }


# --- who is there -----------------------------------------------------------------------------------------------------


def test_who_is_away_for_long_counts_as_silent_at_once(network):
    network.attend("north", upper)
    transport = network.service.transport(["north", "south"], absent_after=1.0)
    both = {"north": b"a", "south": b"b"}
    eventually(lambda: transport.ask(both, None) == {"north": b"A"})
    started = time.monotonic()
    for _ in range(5):
        assert transport.ask(both, None) == {"north": b"A"}
    assert time.monotonic() - started < 4.0  # five waits of a second would be longer
    network.attend("south", upper)
    assert transport.ask(both, None) == {"north": b"A", "south": b"B"}


def test_who_comes_back_in_time_is_asked_again(network):
    slow_one = Slow()
    network.attend("south", slow_one).stop.set()
    eventually(lambda: not network.service.connected)
    late = threading.Timer(0.5, lambda: network.attend("south", upper))
    late.start()
    assert network.service.transport(["south"]).ask({"south": b"b"}, PATIENCE) == {"south": b"B"}
    late.join()


def test_an_absence_that_runs_out_does_not_cost_the_others_their_answers(monkeypatch):
    """The clock jumps past the limit of the absent party while the other still works."""
    clock = iter(range(10**6))
    monkeypatch.setattr(connections.time, "monotonic", lambda: next(clock) * 0.3)
    table = connections.Connections()
    table.of("away")
    table.attach("north", connections.Stream(), "")

    def answer():
        table.receive("north", table.of("north").wanted, b"A")

    threading.Timer(0.5, answer).start()
    assert table.ask({"north": b"a", "away": b"b"}, None, 0.5) == {"north": b"A"}


def test_the_newest_stream_of_a_name_is_its_own(network):
    first = network.attend("north", lambda frame: b"first")
    second = Party(network.identity("north"), network.address, lambda frame: b"second")
    try:
        eventually(lambda: first.count("disconnected"))
        said = next(facts["text"] for kind, facts in first.events if kind == "disconnected")
        assert "see that `tertulia attend` runs only once" in said
        first.stop.set()
        first.ended()
        eventually(lambda: network.service.transport(["north"]).ask({"north": b""}, 5.0) == {"north": b"second"})
    finally:
        second.close()


# --- parties that are slow, repeat themselves, or talk nonsense -------------------------------------------------------


def test_a_slow_party_holds_up_nobody_and_gets_the_newest_question_only(network):
    slow_one = Slow()
    network.attend("north", upper)
    network.attend("south", slow_one)
    transport = network.service.transport(["north", "south"])
    frames = [bytes([i]) * 3_000_000 for i in range(97, 103)]
    for frame in frames:
        started = time.monotonic()
        assert transport.ask({"north": frame, "south": frame}, 0.3) == {"north": frame.upper()}
        assert time.monotonic() - started < 10.0  # it would wait for ever
    slow_one.may.set()
    assert transport.ask({"north": b"x", "south": b"x"}, PATIENCE) == {"north": b"X", "south": b"X"}
    assert slow_one.asked[0] == frames[0]
    assert len(slow_one.asked) <= 3  # the one in work, perhaps the last of those that waited, and this
    assert slow_one.asked[-1] == b"x"


def chunk(serial, frame, kind=wire.ANSWER):
    return b"".join(wire.chunks(kind, serial, frame))


def test_answers_that_come_twice_late_or_never_asked_for(network):
    network.attend("south", upper)
    outbox = []
    ready = threading.Event()

    def chunks():
        while ready.wait(20):
            ready.clear()
            yield from outbox.pop(0)

    channel, call = network.stream("north", chunks())
    with channel:
        numbers = []

        def answer():
            for question in call:
                number, frame = wire.Assembler(wire.QUESTION).take(question)
                earlier = [chunk(old, b"late") for old in numbers]
                numbers.append(number)
                outbox.append([*earlier, chunk(7, b"never"), chunk(number, frame.upper()), chunk(number, b"twice")])
                ready.set()

        def read():
            try:
                answer()
            except grpc.RpcError:
                return

        threading.Thread(target=read, daemon=True).start()
        eventually(lambda: set(network.service.connected) == {"north", "south"})
        transport = network.service.transport(["north", "south"])
        for frame in (b"a", b"b", b"c"):
            assert transport.ask({"north": frame, "south": frame}, PATIENCE) == dict.fromkeys(
                ("north", "south"), frame.upper()
            )
        call.cancel()
        ready.set()


NONSENSE = {
    "empty": b"",
    "kind": chunk(1, b"x", kind=9),
    "question": chunk(1, b"x", kind=wire.QUESTION),
    "short": wire._HEAD.pack(wire.ANSWER, 0, 1) + b"x",
    "long": wire._HEAD.pack(wire.ANSWER, 1, 1) + b"x" * (wire.CHUNK + 1),
    "flag": wire._HEAD.pack(wire.ANSWER, 7, 1) + b"x",
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_costs_a_party_its_stream_and_nobody_else_anything(network, kind):
    network.attend("south", upper)
    channel, call = network.stream("north", iter([NONSENSE[kind]]))
    with channel:
        with pytest.raises(grpc.RpcError):
            next(call)
        assert call.details() == wire.NONSENSE
    transport = network.service.transport(["north", "south"], absent_after=0.0)
    assert transport.ask({"south": b"a", "north": b"a"}, PATIENCE) == {"south": b"A"}


def test_an_answer_without_an_end_is_cut_off_and_its_party_fails(network, monkeypatch):
    monkeypatch.setattr(wire, "MOST_BYTES", 3 * wire.CHUNK)
    monkeypatch.setattr(party_session, "_LONGEST", 0.2)
    north = network.attend("north", lambda frame: b"x" * (5 * wire.CHUNK))
    network.attend("south", upper)
    answers = network.service.transport(["north", "south"]).ask({"north": b"a", "south": b"a"}, PATIENCE)
    assert answers["south"] == b"A"
    assert decode(answers["north"]).kind == "failed"
    assert north.count("connected") >= 6


def test_a_question_without_an_end_costs_the_server_its_stream(network, monkeypatch):
    north = network.attend("north", upper)
    monkeypatch.setattr(wire, "MOST_BYTES", wire.CHUNK)
    assert network.service.transport(["north"]).ask({"north": b"x" * (3 * wire.CHUNK)}, 1.0) == {}
    assert north.count("disconnected") >= 1
    assert network.service.transport(["north"]).ask({"north": b"x"}, PATIENCE) == {"north": b"X"}


def test_a_host_that_breaks_says_nothing_but_that_it_failed(network):
    def broken(frame):
        raise ValueError("the patient is called Mary")

    network.attend("north", broken)
    answer = decode(network.service.transport(["north"]).ask({"north": b"a"}, PATIENCE)["north"])
    assert answer.kind == "failed"
    assert "Mary" not in answer.text


# --- the end, and renewals --------------------------------------------------------------------------------------------


def test_a_party_that_is_stopped_finishes_its_step_and_sends_it(network):
    slow_one = Slow()
    north = network.attend("north", slow_one)
    answers = {}
    asking = threading.Thread(
        target=lambda: answers.update(network.service.transport(["north"]).ask({"north": b"a" * 3_000_000}, PATIENCE))
    )
    asking.start()
    eventually(lambda: slow_one.asked)
    north.stop.set()
    time.sleep(0.3)
    slow_one.may.set()
    assert north.ended() is None
    asking.join()
    assert answers == {"north": b"A" * 3_000_000}


def test_a_certificate_is_renewed_in_the_middle_of_a_step(tmp_path):
    network = Network(tmp_path / "network", ())
    try:
        network.members.add(["north"])
        network.join("north", days=0.2)
        first, slow_one = network.identity("north").fingerprint, Slow()
        answers = {}
        asking = threading.Thread(
            target=lambda: answers.update(network.service.transport(["north"]).ask({"north": b"a"}, PATIENCE))
        )
        asking.start()
        north = network.attend("north", slow_one)
        eventually(lambda: network.texts("connected") == ["north", "north"])
        eventually(lambda: slow_one.asked)
        slow_one.may.set()
        asking.join()
        assert answers == {"north": b"A"}
        assert slow_one.asked == [b"a"]  # asked again on the new stream, and worked on once
        assert network.members.keys()["north"] == network.identity("north").fingerprint != first
        eventually(lambda: [kind for kind, _ in north.events] == ["connected", "renewed", "connected"])
    finally:
        network.close()


@pytest.mark.parametrize("number", [12, slow(50)])
def test_many_parties_at_once(tmp_path, number):
    names = [f"party-{i}" for i in range(number)]
    network = Network(tmp_path / "network", names)
    try:
        for name in names:
            network.parties[name] = Party(network.identity(name), network.address, upper)
        eventually(lambda: len(network.service.connected) == number)
        transport = network.service.transport(names)
        for i in range(3):
            frames = {name: f"{name} {i}".encode() for name in names}
            answers = transport.ask(frames, PATIENCE)
            assert answers == {name: frame.upper() for name, frame in frames.items()}
    finally:
        network.close()
