"""Shards of users: who takes part, what they keep, and what their noise and its charge depend on."""

import dataclasses

import numpy as np
import pytest

from tertulia.corpus import Corpus, Vocabulary
from tertulia.kernels.fedlda import tuples
from tertulia.methods.fedlda.answers import Answers, charge_of, report_perturbed, report_truth, users_after
from tertulia.methods.fedlda.settings import UserSettings
from tertulia.methods.fedlda.shard import Shard, Users, count_arrived, draw_participants, initial_users, shard_of

V = 8


def test_the_first_m_words_of_a_user_count():
    texts = ["", "sun rain sun unknown rain", "unknown", "rain " * 9]
    corpus = Corpus.from_texts(texts).encode(Vocabulary(("rain", "sun")))
    short = shard_of(corpus, 3)
    assert short.documents.tolist() == [0, 0, 3, 3, 6]
    assert short.words.tolist() == [1, 0, 1, 0, 0, 0]
    assert shard_of(corpus, 9).words is corpus.words


def test_users_arrive_are_asked_and_drop():
    late = UserSettings(paper={"arrival_rounds": 4})
    assert [count_arrived(10, r, late) for r in (0, 1, 3, 9)] == [3, 5, 10, 10]
    assert count_arrived(10, 0, UserSettings()) == 10
    asked, answering = draw_participants(
        20_000, 1, UserSettings(users_per_round=0.3, user_dropout=0.25, paper={"arrival_rounds": 4}), key=9
    )
    assert not asked[10_000:].any()
    assert asked.sum() == pytest.approx(3000, abs=250)
    assert answering.sum() == pytest.approx(2250, abs=250)
    assert not (answering & ~asked).any()


@pytest.mark.parametrize(
    ("settings", "once"),
    [
        ({"mechanism": "rrp"}, True),
        ({"mechanism": "krr"}, True),
        ({"mechanism": "tkrr"}, True),
        ({"mechanism": "hm"}, False),
        ({"mechanism": "rrp", "paper": {"bookkeeping": "paper"}}, False),
        ({"mechanism": "rrp", "paper": {"bookkeeping": "frequencies"}}, False),
    ],
)
def test_users_keep_a_word_for_each_token_only_where_it_is_drawn_once(settings, once):
    asked = UserSettings(mode="paper", epsilon=5.0, **settings)
    assert asked.drawn_once == once
    assert initial_users(asked, 9, V).word.tolist() == [-1] * 9 * once
    assert initial_users(UserSettings(), 9, V).word.size == 0  # without noise the word is the true one
    assert [initial_users(asked, 1, n).word.dtype.itemsize for n in (100, 32_768, 32_769)] == [1, 2, 4]


def test_a_shards_own_epsilon_can_only_be_stricter():
    asked = UserSettings(mode="paper", epsilon=5.0)
    assert asked.limit_epsilon(3.0).epsilon == 3.0
    assert asked.limit_epsilon(7.0) is asked
    assert asked.limit_epsilon(None) is asked
    assert UserSettings().limit_epsilon(3.0).epsilon is None


def answers_of(settings, z, reported, number=1):
    """Three users of four words each."""
    words, documents = np.arange(12, dtype=np.int32) % V, np.arange(0, 13, 4)
    everyone, phi = np.ones(3, dtype=bool), np.full((2, V), 1 / V)
    sent = tuples.choose(words, documents, z, reported, everyone, 4, settings.sampled, number)
    users = Users(z, reported, initial_users(settings, 12, V).word)
    return Answers(settings, Shard(words, documents), users, everyone, sent, phi, np.full(2, 0.5))


@pytest.mark.parametrize("mechanism", ["rrp", "hm"])
def test_other_answers_are_another_charge(mechanism):
    """The charge's id is the seed of the noise: two answers under the same noise would show their difference."""
    settings = UserSettings(mode="paper", epsilon=2.0, max_words=4, mechanism=mechanism)
    z, none = np.arange(12, dtype=np.int16) % 2, np.full(12, -1, dtype=np.int16)
    shares = np.array([0.5, 0.5])
    before = answers_of(settings, z, none)
    same = charge_of(before, 3, shares)
    assert charge_of(answers_of(settings, z, none), 3, shares).params() == same.params()
    moved, known = z.copy(), none.copy()
    moved[0], known[0] = 1, 1
    others = [
        charge_of(answers_of(settings, moved, none), 3, shares),
        charge_of(answers_of(settings, z, known), 3, shares),
        charge_of(answers_of(settings, z, none, number=2), 3, shares),
        charge_of(before._replace(answering=np.array([True, True, False])), 3, shares),
        charge_of(before._replace(phi=before.phi[:, ::-1] * [1, 1, 1, 1, 1, 1, 1, 0.5]), 3, shares),
        charge_of(before, 4, shares),
    ]
    assert len({same.params()["question"], *(charge.params()["question"] for charge in others)}) == 7


def test_a_word_that_the_server_has_is_not_drawn_again():
    settings = UserSettings(mode="paper", epsilon=1.0, max_words=4, mechanism="krr", sample_ratio=1.0)
    z, none = np.zeros(12, dtype=np.int16), np.full(12, -1, dtype=np.int16)
    answers = answers_of(settings, z, none)
    kept = np.full(12, 5, dtype=np.int8)
    kept[3:] = -1
    answers = answers._replace(users=dataclasses.replace(answers.users, word=kept))
    drawn = [report_perturbed(answers, bytes([key]) * 32).word for key in range(20)]
    assert all((word[:3] == 5).all() for word in drawn)
    assert len({word[3:].tobytes() for word in drawn}) == 20
    assert (report_truth(answers).word == answers.shard.words).all()


def test_frequencies_are_the_words_under_each_new_topic_of_this_rounds_tuples():
    """The other reading of algorithm 2, lines 6-7: nothing is taken back from k1, and all tuples count as sent."""
    settings = UserSettings(max_words=4, sample_ratio=1.0, paper={"bookkeeping": "frequencies"})
    z, reported = np.arange(12, dtype=np.int16) % 2, np.zeros(12, dtype=np.int16)
    answers = answers_of(settings, z, reported)
    moved = report_truth(answers).moved
    changed = np.flatnonzero(z)  # the tokens of topic 1, which were reported under topic 0
    assert moved[0].tolist() == [0] * V
    assert moved[1].tolist() == np.bincount(answers.shard.words[changed], minlength=V).tolist()
    assert users_after(answers, answers.sent.word).reported.tolist() == z.tolist()
    moves = report_truth(answers_of(settings.replace(paper={"bookkeeping": "paper"}), z, reported)).moved
    assert moves[0].tolist() == (-moved[1]).tolist()


def test_the_hybrid_mechanism_has_no_frequencies():
    with pytest.raises(ValueError, match=r"hm.*bookkeeping"):
        UserSettings(mode="paper", epsilon=5.0, mechanism="hm", paper={"bookkeeping": "frequencies"})
