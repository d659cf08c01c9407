"""Questions that parties of one process decode once: none can change what another sees, and each checks for itself."""

import dataclasses
from contextlib import closing

import numpy as np
import pytest
from pydantic import BaseModel

import tertulia as tt
from helpers import toys
from tertulia._arrays import Array
from tertulia.errors import FormatError
from tertulia.federation import messages, packing
from tertulia.federation.codec import decode, encode
from tertulia.federation.engines.local import LocalTransport
from tertulia.federation.messages import BEFORE_ALL, Answer, Ask, Content, Question, fingerprint, read_frame
from tertulia.federation.messages import body as message_body
from tertulia.federation.packing import Contents, PartyPacking, pack, unpack
from tertulia.federation.party.host import PartyHost
from tertulia.federation.server.answers import read_answer
from tertulia.federation.server.handle import Handle
from tertulia.federation.types import Nothing, message, step_name
from tertulia.federation.word_lists import ListWriter, SentLists, write_lists
from tertulia.methods.consensus import method, start
from tertulia.methods.consensus.messages import Counting
from tertulia.methods.consensus.start import Expecting
from tertulia.privacy.policy import Policy

WORDS = tuple(f"word{i}" for i in range(40))


@message
class Table:
    numbers: Array


@message
class Open:
    named: dict[str, Array]


@message
class Loose(BaseModel):
    numbers: tuple[int, ...]


def body(value):
    return encode(Ask("each", "step", value))


def packed(value):
    return read_frame(Question("run", (0, 0), BEFORE_ALL, 0, True, pack(body(value))).to_bytes())


def test_parties_of_one_process_get_one_message_that_none_can_change():
    contents = Contents()
    asked = [PartyPacking(contents).unpack(packed(Table(np.arange(4000)))) for _ in range(2)]
    assert asked[0].content is asked[1].content
    assert asked[0].body == body(Table(np.arange(4000)))
    first, second = (question.content.ask().message for question in asked)
    assert first is second
    with pytest.raises(ValueError, match="read-only"):
        first.numbers[0] = 7
    assert PartyPacking().unpack(packed(first)).content is not asked[0].content


@pytest.mark.parametrize("value", [Open({"a": np.arange(3)}), Loose(numbers=(1, 2))])
def test_a_message_that_can_change_is_decoded_for_each_party(value):
    content = Content(body(value))
    first, second = content.ask().message, content.ask().message
    assert first is not second
    if isinstance(value, Open):
        first.named["a"] = "mine"
        assert second.named["a"].tolist() == [0, 1, 2]


def test_other_bytes_are_another_question():
    contents = Contents()
    texts = [packed(Table(np.arange(4000) + i)) for i in range(9)]
    found = [contents.open(one.body, lambda name: None) for one in texts]
    assert [one.ask().message.numbers[0] for one in found] == list(range(9))
    assert contents.open(texts[8].body, None) is found[8]
    assert contents.open(texts[0].body, None) is not found[0]  # only the last few are kept


def test_a_long_question_is_not_kept(monkeypatch):
    monkeypatch.setattr(packing, "_MOST_KEPT", 1000)
    contents, one = Contents(), packed(Table(np.arange(4000)))
    assert contents.open(one.body, None) is not contents.open(one.body, None)


def test_words_are_put_into_a_question_once_and_decoded_once():
    content, contents = Content(body(Nothing())), Contents()
    writer = ListWriter()
    sent = writer.write({fingerprint(WORDS): WORDS})
    assert writer.write({fingerprint(WORDS): WORDS}) is sent
    assert writer.write({}).data == b""
    assert sent.data == write_lists({fingerprint(WORDS): WORDS})
    lists = [contents.same_lists(SentLists(memoryview(bytes(sent.data)))) for _ in range(2)]
    assert lists[0] is lists[1]
    assert lists[0] == {fingerprint(WORDS): WORDS}
    assert content.ask() is content.ask()


def test_a_check_that_fails_fails_again_and_one_that_passes_is_made_once():
    content, made = Content(body(Nothing())), []

    def fail():
        made.append("failed")
        raise FormatError("no")

    for _ in range(2):
        with pytest.raises(FormatError):
            content.check_once(fail, "strict")
    for _ in range(2):
        content.check_once(lambda: made.append("passed"), "open")
    assert made == ["failed", "failed", "passed"]


def test_each_party_checks_a_shared_question_by_its_own_policy(toy_run, tmp_path):
    run, contents = toy_run(tmp_path / "run", methods=(method.__name__,)), Contents()
    hosts = [PartyHost(run.party_directory(party), contents=contents) for party in run.parties]
    hosts[1].policy = Policy(max_words=10)
    known = tuple(dict.fromkeys(word for host in hosts for word in host.corpus.vocabulary.words))
    words = (*known, *WORDS)
    asked, lists = message_body("sum", start.count_tokens, start.WordTask(words, start.FirstTopics()))
    assert len(words) > 32  # so that the list is named, and completed
    assert lists
    question = Question("run", (0, 0), BEFORE_ALL, 0, True, asked, lists=lists)
    with closing(LocalTransport(hosts)) as transport:
        answers = transport.ask(dict.fromkeys(run.parties, question.to_bytes()), None)
    assert [decode(answers[party]).kind for party in run.parties] == ["ok", "refused", "ok"]


def test_a_server_in_the_same_process_reads_an_answer_without_unpacking_it(monkeypatch):
    whole = encode(Answer("ok", "", Table(np.arange(4000))))
    asked = dataclasses.replace(packed(Nothing()), packs=True)
    answer = PartyPacking(Contents()).pack(whole, asked)
    assert bytes(answer) == pack(whole)  # what is counted and stored
    assert len(answer) == len(pack(whole)) < len(whole)
    assert type(PartyPacking().pack(whole, asked)) is bytes
    stored = bytes(answer)
    monkeypatch.setattr(packing, "_unpack", None)
    assert unpack(answer) == whole
    with pytest.raises(FormatError):
        unpack(stored)
    first, second = (read_answer(answer).reply.numbers for _ in range(2))
    assert not np.shares_memory(first, second)


def test_only_the_log_keeps_an_answer_and_as_it_travels(toy_run, tmp_path):
    run = toy_run(tmp_path / "run")
    host = PartyHost(run.party_directory("a"), contents=Contents())
    question = Question("run", (0, 0), BEFORE_ALL, 0, True, encode(Ask("each", step_name(toys.count_free), Nothing())))
    sent = host.answer(dataclasses.replace(question, packs=True).to_bytes())
    kept = host.answers.find_or_none((0, 0), question.key)
    assert type(kept) is bytes
    assert kept == bytes(sent)


def arrays(value):
    if isinstance(value, np.ndarray):
        yield value
    elif dataclasses.is_dataclass(value):
        for part in vars(value).values():
            yield from arrays(part)


def test_states_of_two_parties_share_no_memory(monkeypatch):
    texts = {name: [f"river{i % 3} market{i % 5} garden{i % 7} violin" for i in range(start, start + 30)]
             for start, name in enumerate(("north", "south"))}  # fmt: skip
    hosts, states = [], []
    opened = PartyHost.__init__
    monkeypatch.setattr(PartyHost, "__init__", lambda self, *given: (hosts.append(self), opened(self, *given))[1])
    note = lambda: states.append([host.answers.state for host in hosts])  # noqa: E731
    monkeypatch.setattr(Handle, "commit", _commit(Handle.commit, note))
    tt.Consensus(topics=3, rounds=2, sweeps=1).fit(texts, seed=1)
    seen = {type(state) for pair in states for state in pair}
    assert seen >= {Expecting, Counting}
    for north, south in states:
        for one in arrays(north):
            assert not any(np.shares_memory(one, other) for other in arrays(south))


@pytest.mark.parametrize("seeds", [{}, {"music": ["violin1"]}])
def test_parties_of_one_process_decode_each_question_of_a_run_once(monkeypatch, seeds):
    texts = {name: [f"river{i % 3} market{i % 5} garden{i % 7} violin{i % 2}" for i in range(30)] for name in "abc"}
    decoded = []
    decode_ask = messages._decode_ask
    note = lambda data: (found := decode_ask(data), decoded.append(found.step))[0]  # noqa: E731
    monkeypatch.setattr(messages, "_decode_ask", note)
    tt.Consensus(topics=3, start_rounds=2, rounds=4, sweeps=1, seeds=seeds).fit(texts, seed=1)
    counts = {step.rpartition(":")[2]: decoded.count(step) for step in decoded}
    assert {name: counts[name] for name in ("profile_words", "expect", "count_together")} == {
        "profile_words": 1, "expect": 2, "count_together": 4,
    }  # fmt: skip


def _commit(commit, note):
    def noted(self, *given, **metrics):
        note()
        return commit(self, *given, **metrics)

    return noted
