"""Half a character (a lone surrogate) in a frame, a step's name or a message: an answer, and no dead party."""

import json

import pytest

from tertulia.corpus import Corpus
from tertulia.errors import FormatError
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import BEFORE_ALL, Ask, Question, read_frame
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.federation.types import Nothing


@pytest.fixture
def host(worded, tmp_path):
    PartyConfig(id="a", run="run", seed=1, methods=("helpers.toys",)).save(tmp_path)
    return PartyHost(tmp_path, Corpus.from_texts(worded(0, 3)))


def test_in_the_name_of_a_step(host):
    body = encode(Ask("each", "helpers.toys:7 bytes", Nothing())).replace(b"7 bytes", rb"\\ud800")
    answer = decode(host.answer(Question("run", (0, 0), BEFORE_ALL, 0, True, body).to_bytes()))
    assert answer.kind == "failed"


def test_in_the_envelope(host):
    head = json.dumps(["\ud800", [0, 0], [-1, 0], 0, True]).encode()
    frame = len(head).to_bytes(4, "little") + head
    with pytest.raises(FormatError):
        read_frame(frame)
    assert decode(host.answer(frame)).kind == "failed"


def test_in_an_answer_that_is_sent():
    with pytest.raises(FormatError, match="half a character"):
        encode({"text": "\ud800"})


def test_where_words_travel():
    data = encode({"words": ("7 bytes", "sun")}).replace(b"7 bytes", rb"\\udFff")
    with pytest.raises(FormatError, match="half a character"):
        decode(data)
    assert decode(encode({"a": "\\ud800", "b": "\U0001f600"})) == {"a": "\\ud800", "b": "\U0001f600"}
