"""Row 47: an envelope of nested lists is small on the line and large in memory; it was parsed before run and plan were
checked. The same of a question's body, and of a party's answer at the server."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from helpers.attacks import CONSTANTS, OPEN, PUBLIC, Attacked
from tertulia.errors import FormatError
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import BEFORE_ALL, NAMED, Ask, Inquiry, Question, read_frame
from tertulia.federation.server.answers import read_answer
from tertulia.federation.types import step_name
from tertulia.federation.word_lists import SentLists
from tertulia.methods.common.evaluation import Candidate, score

SIZE = 24_000_000
NESTED = b"[" + b"[]," * (SIZE // 3) + b"0]"
MOST = 4  # times the frame
FTM = {"name": "ftm", "topics": 2, "rounds": 1, "sweeps": 2, "vocabulary": PUBLIC}


def in_envelope(run, plan):
    head = json.dumps([run, [0, 0], [-1, 0], 0, True, plan, "LISTS", False]).encode().replace(b'"LISTS"', NESTED)
    return len(head).to_bytes(4, "little") + head


def in_lists(run, plan):
    asked = Ask("sum", step_name(score), Candidate((NAMED, "name"), np.ones((2, 1)), np.ones(2), 0.0))
    return Question(run, (0, 0), BEFORE_ALL, 0, True, encode(asked), plan, SentLists(memoryview(NESTED))).to_bytes()


def in_body(run, plan):
    return Question(run, (0, 0), BEFORE_ALL, 0, True, message(), plan).to_bytes()


def in_inquiry(run, plan):
    head = b'{"run": "' + run.encode() + b'", "about": ' + NESTED + b', "entry": null}'
    return len(head).to_bytes(4, "little") + head


def message():
    head = b'{"__metadata__":{"tertulia":"' + NESTED + b'"}}'
    return len(head).to_bytes(8, "little") + head


def packed():
    """A message that says it is packed; its header is a section."""
    head = message()
    numbers = len(head).to_bytes(8, "little")
    return b"\xfftertul1" + bytes(32) + numbers + numbers + numbers + head


@pytest.fixture(scope="module")
def party(tmp_path_factory):
    return Attacked(tmp_path_factory.mktemp("attacked"), FTM, OPEN)


def peak(action, *given):
    """What a call returns, and the most memory that it takes beside what it is given."""
    tracemalloc.start()
    try:
        return action(*given), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("known", [False, True], ids=["other run", "its own run and plan"])
@pytest.mark.parametrize("make", [in_envelope, in_lists, in_body, in_inquiry])
def test_a_party_takes_little_memory_for_a_hostile_frame(party, make, known):
    frame = make(party.run.id if known else "another", party.plan if known else "0" * 64)
    data, most = peak(party.host.answer, frame)
    answer = decode(data)
    assert answer.kind in ("refused", "failed")
    assert answer.text in CONSTANTS or answer.text.startswith("refused by rule '")
    assert most < (MOST - 1) * len(frame)


@pytest.mark.parametrize("make", [message, packed])
def test_the_server_takes_little_memory_for_a_hostile_answer(make):
    data = make()
    answer, most = peak(read_answer, data)
    assert answer.kind == "failed"
    assert most < (MOST - 1) * len(data)


def test_an_envelope_is_short():
    run = "r" * (1 << 16)
    for asked in (Question(run, (0, 0), BEFORE_ALL, 0, True, b""), Inquiry(run, "ledger digest")):
        with pytest.raises(FormatError):
            read_frame(asked.to_bytes())
    words = tuple(f"word{i}" for i in range(200_000))  # long lists are no part of it
    question = Question("run", (0, 0), BEFORE_ALL, 0, True, b"", "", {"name": words})
    assert read_frame(question.to_bytes()).lists["name"] == words
    assert decode(encode(words)) == words


_MEASURED = """
import resource, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from tertulia.federation.party.host import PartyHost
from attacks.test_row47_large_envelopes import in_envelope
host = PartyHost(Path(sys.argv[1]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
frame = in_envelope("another", "0" * 64)
host.answer(frame)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 / len(frame))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="units of ru_maxrss differ")
def test_the_process_of_a_party_grows_little(party):
    tests = Path(__file__).parent.parent
    command = [sys.executable, "-c", _MEASURED, str(party.directory), str(tests)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < MOST
