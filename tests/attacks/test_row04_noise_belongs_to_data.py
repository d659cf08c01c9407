"""A server has the same question answered about other data, by a reused run or a rewound state, and subtracts."""

import numpy as np
import pytest

from helpers.attacks import LIST, NOTES, OPEN, Attacked, method_of
from helpers.attacks_noise import ask, corpus_of, count, party, tabulate
from tertulia.federation.messages import BEFORE_ALL
from tertulia.methods.fedlda.method import Broadcast, local_sampling
from tertulia.methods.fedlda.settings import UserSettings
from tertulia.privacy.mechanisms import Adjacency, Unit

TEXTS = ["ache burn cold dose fever", "cold cold dose"]
SECRET = "fever fever ache"


def epsilon(host):
    return host.ledger.cost(Unit.DOCUMENT, Adjacency.ADD_REMOVE, 1e-6).epsilon


@pytest.mark.parametrize(("function", "added"), [(tabulate, np.array([1, 0, 0, 0, 2]) << 20)])
def test_a_grown_corpus_gets_other_noise_and_another_charge(tmp_path, function, added):
    before = party(tmp_path / "first", corpus_of(TEXTS))
    small = ask(before, function).reply.values
    spent = epsilon(before)
    after = party(tmp_path / "second", corpus_of([*TEXTS, SECRET]))  # the same run and question
    large = ask(after, function).reply.values
    assert not np.array_equal((large - small).ravel(), added)
    assert len(after.ledger.releases()) == 2
    assert epsilon(after) > spent


def test_a_rewound_state_gets_other_noise_and_another_charge(tmp_path):
    host = party(tmp_path / "north", corpus_of(TEXTS))
    ask(host, count, place=(0, 0))
    first = ask(host, count, place=(0, 1), previous=(0, 0)).reply.values  # counts times 1
    ask(host, count, place=(0, 2), previous=(0, 1))
    # The server forgets all but (0, 0) and (0, 1), and asks (0, 1) again, of a state that has moved on.
    host.answers._state = type(host.answers.state)(2)
    host.answers.directory.joinpath("00000000-000001.safetensors").unlink()
    host.answers._stored.pop((0, 1))
    host.answers._stored.pop((0, 2))
    host.answers._latest = host.answers._read((0, 0))[0]
    second = ask(host, count, place=(0, 1), previous=(0, 0)).reply.values  # counts times 2
    assert not np.array_equal(second - first, np.bincount([0, 1, 2, 3, 4, 2, 2, 3]))
    assert len(host.ledger.releases()) == 4


def test_the_server_alone_rewinds_and_pays(tmp_path):
    """By `previous` it can make a party forget: a place answered from another state is another release."""
    host = party(tmp_path / "north", corpus_of(TEXTS))
    answers = [ask(host, count, place=(0, 0)), ask(host, count, place=(0, 1), previous=(0, 0))]
    again = ask(host, count, place=(0, 1), previous=BEFORE_ALL)  # known: the stored bytes
    assert np.array_equal(again.reply.values, answers[1].reply.values)
    ask(host, count, place=(0, 2), previous=BEFORE_ALL)  # voids both; the state is new again
    rewound = ask(host, count, place=(0, 1), previous=BEFORE_ALL)  # counts times 0, under the hash and place of before
    counts = np.bincount([0, 1, 2, 3, 4, 2, 2, 3])
    assert not np.array_equal(answers[1].reply.values - rewound.reply.values, counts)
    assert len(host.ledger.releases()) == 4


def test_equal_data_repeat(tmp_path):
    first = party(tmp_path / "first", corpus_of(TEXTS))
    said = ask(first, tabulate).reply.values
    second = party(tmp_path / "second", corpus_of(TEXTS))
    assert np.array_equal(ask(second, tabulate).reply.values, said)
    assert len(second.ledger.releases()) == 1


def test_hybrid_answers_of_users_to_a_rewound_question_are_paid_for(tmp_path):
    """FedLDA's `hm`: a second answer to the same question was free, and differed only where users have words."""
    method = {"name": "fedlda", "topics": 2, "rounds": 4, "mode": "paper", "mechanism": "hm", "epsilon": 4.0}
    words = (*LIST, *(f"nobody{i}" for i in range(60)))  # in that many cells noise is never equal by chance
    server = Attacked(tmp_path, {**method, "vocabulary": {"mode": "public", "words": words}}, OPEN)
    broadcast = Broadcast(words, method_of(server).part(UserSettings), np.full((2, len(words)), 20.0), 0)

    def answer(place, previous):
        found = server.ask(local_sampling, broadcast, "sum", place=place, previous=previous)
        assert found.kind == "ok", server.log
        return found.reply.moved

    answer((0, 0), BEFORE_ALL)
    first = answer((0, 1), (0, 0))
    rows = len(server.host.ledger.releases())
    assert np.array_equal(answer((0, 1), (0, 0)), first)  # the stored bytes
    assert len(server.host.ledger.releases()) == rows
    answer((0, 2), BEFORE_ALL)  # voids both
    rows = len(server.host.ledger.releases())
    second = answer((0, 1), BEFORE_ALL)  # under the place and hash of before, of users who have reported nothing yet
    nobodys = [v for v, word in enumerate(words) if not any(word in note.split() for note in NOTES)]
    assert len(nobodys) >= 60
    assert (second - first)[:, nobodys].any()
    assert [release.charges for release in server.host.ledger.releases()[rows:]].count(True) == 1
