"""Agreed words travel once; from then on questions name them by their fingerprint."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.attacks import Attacked
from tertulia.corpus import Corpus
from tertulia.errors import FormatError
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import NAMED, Ask, Question, body, fingerprint, named_or_none, read_frame
from tertulia.federation.party.host import PartyHost
from tertulia.federation.server.handle import Handle
from tertulia.federation.word_lists import MOST_WORDS, SentLists, write_lists
from tertulia.methods.common.evaluation import Candidate, score
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import begin
from tertulia.runs.plan import plan_of
from tertulia.runs.settings import RunSettings

WORDS = tuple(f"word{'abcdefghij'[i % 10]}{'klmnopqrst'[i // 10]}" for i in range(90))
TEXT = st.characters(exclude_categories=["Cs"])
MODEL = Candidate(WORDS, np.full((2, 90), 1 / 90, np.float32), np.ones(2), 0.0)


@pytest.fixture
def run(tmp_path) -> Run:
    method = {"name": "ftm", "topics": 2, "rounds": 4, "sweeps": 1, "vocabulary": {"mode": "public", "words": WORDS}}
    texts = [" ".join(WORDS[i : i + 40]) for i in range(40)]
    return begin(
        RunSettings(directory=str(tmp_path / "run"), method=method, heldout=0.3),
        {name: Corpus.from_texts(texts) for name in ("a", "b")},
    )


def handle_of(run: Run) -> Handle:
    plan = plan_of(RunSettings(**run.config), run.parties)
    return Handle(run.id, run.transport("local", 1), run.journal(), plan=plan)


def test_a_list_is_sent_once_and_kept(run):
    fed, sent = handle_of(run), []
    for turn in range(3):
        total = fed.sum(score, MODEL)
        fed.commit(turn)
        sent.append({party: down for party, (down, _) in fed.history[-1]["bytes"].items()})
    size = len(encode(WORDS))
    assert all(sent[0][party] - sent[1][party] > 0.8 * size for party in run.parties)
    assert sent[1] == sent[2]
    assert total.tokens > 0
    host = PartyHost(run.party_directory("a"))  # started again
    question, _ = body("sum", score, MODEL)
    frame = Question(run.id, (3, 0), (2, 0), 0, True, question, fed.plan).to_bytes()
    assert decode(host.answer(frame)).reply.tokens * 2 == total.tokens


def test_a_party_that_has_lost_a_list_gets_it_again(run):
    fed = handle_of(run)
    first = fed.sum(score, MODEL)
    fed.commit(1)
    shutil.rmtree(run.party_directory("b") / "words")
    again = handle_of(run)
    again.restore()
    again._has_words = {"a": {fingerprint(WORDS)}, "b": {fingerprint(WORDS)}}  # as it was before the party's accident
    assert again.sum(score, MODEL).log_likelihood == first.log_likelihood


def test_the_hash_of_a_question_covers_its_words():
    bodies = {
        body("sum", score, Candidate(words, MODEL.topic_word, MODEL.alpha, 0.0))[0] for words in (WORDS, WORDS[::-1])
    }
    assert len(bodies) == 2
    assert named_or_none(decode(body("sum", score, MODEL)[0]).message) == fingerprint(WORDS)


NAME = fingerprint(WORDS)
WHOLE = write_lists({NAME: WORDS})
LONE = write_lists({NAME: ("abc",)}).replace(b"abc", b"\xed\xa0\x80")  # half a character
MANY = write_lists({NAME: ("a",)}).replace((1).to_bytes(4, "little"), (MOST_WORDS + 1).to_bytes(4, "little"), 1)


@given(st.dictionaries(st.text(TEXT, max_size=20), st.lists(st.text(TEXT, max_size=5), max_size=9).map(tuple)))
def test_lists_come_back_as_they_were(lists):
    sent = SentLists(memoryview(write_lists(lists)))
    assert sent == lists
    assert write_lists(sent) == write_lists(lists)
    frame = Question("run", (0, 0), (-1, 0), 0, True, b"body", "plan", lists).to_bytes()
    assert read_frame(frame) == Question("run", (0, 0), (-1, 0), 0, True, b"body", "plan", lists)


@pytest.mark.parametrize("data", [WHOLE[:-1], WHOLE[:5], WHOLE + b"x", LONE, MANY, b"\xff" * 40])
def test_bytes_that_are_no_lists(data):
    with pytest.raises(FormatError, match="cannot be read"):
        len(SentLists(memoryview(data)))


@pytest.mark.parametrize(
    "sent", [{NAME: WORDS[::-1]}, {NAME: WORDS[:5]}, {NAME: ()}, *map(SentLists, map(memoryview, (LONE, MANY, b"xx")))]
)
def test_a_list_under_a_wrong_name_is_refused(sent, tmp_path):
    party = Attacked(tmp_path, {"name": "ftm", "topics": 2, "vocabulary": {"mode": "union"}}, "")
    named = Candidate((NAMED, fingerprint(WORDS)), MODEL.topic_word, MODEL.alpha, 0.0)
    question = Question(
        party.run.id, (0, 0), (-1, 0), 0, True, encode(Ask("sum", "tertulia.methods.common.evaluation:score", named)),
        party.plan, sent,
    )  # fmt: skip
    assert decode(party.host.answer(question.to_bytes())).kind in ("failed", "lacking")
    for name in ("../../party", "", "x"):
        lost = Candidate((NAMED, name), MODEL.topic_word, MODEL.alpha, 0.0)
        assert party.ask(score, lost, "sum").kind == "lacking"
