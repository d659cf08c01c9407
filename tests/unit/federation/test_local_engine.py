"""The local engine with parties that are late: questions keep their order, and what timed out is not worked on."""

import threading
from contextlib import closing
from types import SimpleNamespace

import pytest

from tertulia.federation.codec import decode
from tertulia.federation.engines.local import LocalTransport

SOON = 0.05
LONG = 30.0  # seconds: a bound, never reached


class Host:
    """Echoes frames, and notes their order; a frame that has an event waits for it."""

    def __init__(self, party, **events):
        self.config = SimpleNamespace(id=party)
        self.events = events
        self.begun = threading.Event()
        self.worked = []

    def answer(self, frame):
        self.begun.set()
        if event := self.events.get(frame.decode()):
            assert event.wait(LONG)
        if frame == b"broken":
            raise RuntimeError("its host breaks")
        self.worked.append(frame)
        return frame


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_question_that_timed_out_is_never_worked_on_after_its_successor(workers):
    go = threading.Event()
    host = Host("b", slow=go)
    with closing(LocalTransport([host], workers)) as transport:
        assert transport.ask({"b": b"slow"}, SOON) == {}
        assert host.begun.wait(LONG)
        for _ in range(3):  # these wait behind it, and nobody waits for them
            assert transport.ask({"b": b"late"}, SOON) == {}
        threading.Timer(SOON, go.set).start()
        assert transport.ask({"b": b"next"}, LONG) == {"b": b"next"}
    assert host.worked == [b"slow", b"next"]


def test_questions_that_wait_behind_a_late_answer_keep_no_worker_from_others():
    go = threading.Event()
    late, other = Host("b", slow=go), Host("a")
    with closing(LocalTransport([late, other], 2)) as transport:
        assert transport.ask({"b": b"slow"}, SOON) == {}
        assert late.begun.wait(LONG)
        for _ in range(4):
            assert transport.ask({"b": b"more", "a": b"more"}, 1.0) == {"a": b"more"}
        go.set()
        assert transport.ask({"b": b"last", "a": b"last"}, LONG) == {"b": b"last", "a": b"last"}
    assert late.worked == [b"slow", b"last"]


def test_a_host_that_breaks_loses_only_its_own_answer():
    with closing(LocalTransport([Host("a"), Host("b")])) as transport:
        answers = transport.ask({"a": b"whole", "b": b"broken"}, LONG)
        assert answers["a"] == b"whole"
        assert decode(answers["b"]).text == "RuntimeError in its host"
        assert transport.ask({"b": b"whole"}, LONG) == {"b": b"whole"}
