"""Packed questions and answers: the same models as without packing, also after restarts, in far fewer bytes."""

import dataclasses

import numpy as np
import pytest

import tertulia as tt
from helpers.attacks import LIST, OPEN, PUBLIC, Attacked, method_of
from helpers.federations import three_parties
from helpers.runs import Interrupted, interrupt_at
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import Ask, Question, read_frame
from tertulia.federation.packing import Base, pack, size_of, unpack
from tertulia.federation.party.host import PartyHost
from tertulia.federation.server.answers import read_answer
from tertulia.federation.types import step_name
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import LocalTask
from tertulia.methods.ftm.method import train_local
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish

PARTIES = {name: texts[:40] for name, texts in three_parties(1).items()}
METHODS = {
    "consensus": tt.Consensus(topics=30, rounds=5, start_sweeps=3, sweeps=2, vocabulary={"max_share": 1.0}),
    "ftm": tt.FTM(topics=20, rounds=3, sweeps=3, vocabulary={"max_share": 1.0}),
    "gfedntm": tt.GFedNTM(topics=4, hidden=(16, 12), rounds=3, vocabulary={"max_share": 1.0}),
}


class Watched:
    """A transport that notes what travels, and may start a party again before it is asked."""

    def __init__(self, transport, restart=()):
        self.transport, self.restart = transport, restart
        self.questions, self.answers = [], []

    @property
    def parties(self):
        return self.transport.parties

    def ask(self, frames, timeout):
        asked = {party: read_frame(frame) for party, frame in frames.items()}
        place = {question.place for question in asked.values() if isinstance(question, Question)}
        for round_, party in self.restart:
            if (round_, 0) in place and self.transport.hosts[party]:
                old = self.transport.hosts[party]
                self.transport.hosts[party] = PartyHost(old.directory, old._given)
                self.transport.hosts[party].pins = old.pins
                self.restart = [one for one in self.restart if one != (round_, party)]
        self.questions += [question for question in asked.values() if isinstance(question, Question)]
        answers = self.transport.ask(frames, timeout)
        self.answers += [read_answer(answer) for answer in answers.values()]
        return answers

    def close(self):
        self.transport.close()


@pytest.fixture
def watched(monkeypatch):
    """What travels in the runs of a test; `watched.restart` is a list of (round, party)."""
    roads, transport = [], Run.transport

    def laid(run, *arguments):
        roads.append(Watched(transport(run, *arguments), laid_restart))
        return roads[-1]

    laid_restart: list = []
    monkeypatch.setattr(Run, "transport", laid)
    return roads, laid_restart


def unpacked(monkeypatch):
    monkeypatch.setattr("tertulia.federation.packing.pack", lambda data, base=None: data)


@pytest.mark.parametrize("name", METHODS)
def test_models_are_the_same_packed_or_not(name, monkeypatch):
    packed = METHODS[name].fit(PARTIES, heldout=0.2, seed=1)
    unpacked(monkeypatch)
    plain = METHODS[name].fit(PARTIES, heldout=0.2, seed=1)
    assert packed.topic_word.tobytes() == plain.topic_word.tobytes()
    assert packed.history[-1].get("perplexity") == plain.history[-1].get("perplexity")
    for direction in ("bytes_up", "bytes_down"):
        assert getattr(packed.communication, direction) < 0.95 * getattr(plain.communication, direction)


def test_counting_together_takes_a_quarter_of_dense_float32():
    model = METHODS["consensus"].fit(PARTIES, heldout=0.0, seed=1)
    dense = 4 * model.topic_word.size
    for facts in model.history[2:]:  # the rounds after the start
        for down, up in facts["bytes"].values():
            assert down < 0.25 * 2 * dense + 1500  # counts, a model to score, and envelopes
            assert up < 0.25 * dense + 1500


def test_a_party_that_was_started_again_gets_its_question_in_full(watched, tmp_path):
    roads, restart = watched
    expected = METHODS["consensus"].fit(PARTIES, heldout=0.0, seed=1)
    assert not [answer for answer in roads[-1].answers if answer.kind == "lacking"]
    restart += [(4, "b"), (5, "a")]  # the question of round 3 holds tokens, and that before it parts of tokens
    found = METHODS["consensus"].fit(PARTIES, heldout=0.0, seed=1, directory=tmp_path / "run")
    assert [answer.kind for answer in roads[-1].answers].count("lacking") == 2
    assert found.topic_word.tobytes() == expected.topic_word.tobytes()


def test_a_server_that_was_started_again_sends_no_differences_at_first(watched, tmp_path):
    roads, _ = watched
    method = METHODS["consensus"]
    expected = method.fit(PARTIES, heldout=0.0, seed=1)
    with pytest.raises(Interrupted):
        method.fit(PARTIES, heldout=0.0, seed=1, directory=tmp_path / "run", observe=interrupt_at(3))
    resumed = finish(Run.open(tmp_path / "run"))
    assert not [answer for answer in roads[-1].answers if answer.kind == "lacking"]
    assert unpack(roads[-1].questions[0].body)  # needs no base
    assert resumed.topic_word.tobytes() == expected.topic_word.tobytes()


FTM = {"name": "ftm", "topics": 2, "rounds": 1, "sweeps": 2, "vocabulary": PUBLIC}


def question(party: Attacked, body: bytes, **facts) -> Question:
    return Question(party.run.id, (0, 0), (-1, 0), 0, True, body, party.plan, **facts)


def task(party: Attacked) -> bytes:
    words = (*LIST, *(f"nowhere{i}" for i in range(3000)))
    task = LocalTask(words, method_of(party).part(Training), None, with_sizes=True)
    return encode(Ask("each", step_name(train_local), task))


def test_the_policy_counts_what_a_question_has_when_it_is_unpacked(tmp_path):
    party = Attacked(tmp_path, FTM, OPEN + "max_question_bytes = 20_000\n")
    body = task(party)
    assert len(pack(body)) < 20_000 < len(body)
    answer = decode(party.host.answer(question(party, pack(body)).to_bytes()))
    assert answer.text == "refused by rule 'max_question_bytes'"


@pytest.mark.parametrize("owners", ["one", "several"])
def test_strangers_get_nothing_unpacked(owners, tmp_path, monkeypatch):
    party = Attacked(tmp_path, FTM, OPEN, owners=owners)
    unpacked = []
    monkeypatch.setattr("tertulia.federation.packing.unpack", lambda data, find: unpacked.append(data) or data)
    sent = question(party, pack(task(party)))
    for stranger in (dataclasses.replace(sent, run="guess"), dataclasses.replace(sent, plan="0" * 64)):
        assert decode(party.host.answer(stranger.to_bytes())).kind != "ok"
    assert not unpacked


def test_a_base_that_a_party_never_had_is_a_constant_answer(tmp_path):
    party = Attacked(tmp_path, FTM, OPEN, owners="several")
    body = encode(Ask("each", "x:y", {"x": np.arange(5000)}))
    packed = pack(body, Base.of(body))
    assert size_of(packed) == len(body) > 10 * len(packed)
    answer = decode(party.host.answer(question(party, packed).to_bytes()))
    assert (answer.kind, answer.text) == ("lacking", "")
    assert not (party.directory / "answers").exists() or not list((party.directory / "answers").iterdir())
