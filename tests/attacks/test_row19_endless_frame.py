"""A party's process claims a frame of 2^62 bytes, or floods the pipe: the server neither dies nor waits for ever."""

import io
import struct
import sys
import time

import pytest

from tertulia.federation.codec import decode
from tertulia.federation.engines import processes
from tertulia.federation.engines.base import MOST_BYTES

HUGE = """
import sys, struct, time
sys.stdout.buffer.write(struct.pack('<QQ', 2**62, 1) + b'x')
sys.stdout.flush()
time.sleep(600)
"""
FLOOD = "import sys,struct\nwhile True: sys.stdout.buffer.write(struct.pack('<QQ', 1, 7) + b'x')"


def test_a_length_beyond_the_cap_is_not_read():
    assert processes.receive_or_none(io.BytesIO(struct.pack("<QQ", MOST_BYTES + 1, 1) + b"x" * 100)) is None
    assert processes.receive_or_none(io.BytesIO(struct.pack("<QQ", MOST_BYTES, 1) + b"x" * 100)) is None  # cut short
    assert processes.receive_or_none(io.BytesIO(struct.pack("<QQ", 3, 9) + b"abc")) == (9, b"abc")


@pytest.mark.parametrize("program", [HUGE, FLOOD])
def test_the_server_gets_an_answer_that_says_failed(program, tmp_path, monkeypatch):
    popen = processes.subprocess.Popen
    monkeypatch.setattr(
        processes.subprocess, "Popen", lambda command, **given: popen([sys.executable, "-c", program], **given)
    )
    monkeypatch.setattr(processes, "_RESTARTS", 1)
    transport = processes.ProcessTransport({"b": tmp_path})
    started = time.monotonic()
    try:
        answer = decode(transport.ask({"b": b"question"}, None)["b"])  # no timeout
    finally:
        for process in transport._processes.values():
            process._process.kill()
        transport.close()
    assert (answer.kind, "died 2 times" in answer.text) == ("failed", True)
    assert time.monotonic() - started < 60
