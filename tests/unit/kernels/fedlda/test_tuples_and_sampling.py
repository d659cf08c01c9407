"""Kernels of users: topics are redrawn, tuples chosen and added up, wrong input is refused."""

import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.kernels.fedlda import tuples
from tertulia.kernels.fedlda.sampling import broadcast_phi, resample

K, V = 3, 8
PHI = broadcast_phi(np.random.default_rng(0).gamma(0.5, size=(K, V)) * 30, 0.1)
ALPHA = np.full(K, 0.4)


def shard(*lengths, seed=1):
    words = np.random.default_rng(seed).integers(0, V, sum(lengths)).astype(np.int32)
    return words, np.concatenate(([0], np.cumsum(lengths)))


def unset(n):
    return np.full(n, -1, dtype=np.int16)


@pytest.mark.parametrize("sampler", ["gibbs", "mh"])
def test_topics_do_not_depend_on_threads_and_only_move_for_who_is_asked(sampler):
    words, documents = shard(5, 0, 7, 150, 1, 9)
    asked = np.array([True, True, False, True, True, False])
    z = resample(words, documents, unset(len(words)), asked, PHI, ALPHA, 7, 2, sampler)
    assert np.array_equal(z, resample(words, documents, unset(len(words)), asked, PHI, ALPHA, 7, 2, sampler, threads=3))
    mine = np.repeat(asked, np.diff(documents))
    assert np.all(z[~mine] == -1)
    assert z[mine].min() >= 0
    assert z.dtype == np.int16


def test_no_more_than_l_of_m_are_sent_and_only_changes():
    words, documents = shard(0, 3, 40)
    z, reported = np.zeros(43, dtype=np.int16), unset(43)
    reported[:10] = 0  # user 1 and part of user 2 have nothing new
    everyone = np.ones(3, dtype=bool)
    sent = tuples.choose(words, documents, z, reported, everyone, 40, 40, 5)
    assert sent.token.tolist() == list(range(10, 43))
    assert sent.user.tolist() == [2] * 33
    few = tuples.choose(words, documents, z, reported, everyone, 40, 4, 5)
    assert 0 < len(few.token) <= 4
    assert len(tuples.choose(words, documents, z, reported, np.zeros(3, dtype=bool), 40, 40, 5).token) == 0


def test_each_tuple_is_sent_with_probability_l_over_m():
    words, documents = shard(*[6] * 4000)
    z = np.zeros(len(words), dtype=np.int16)
    sent = tuples.choose(words, documents, z, unset(len(words)), np.ones(4000, dtype=bool), 10, 4, 3)
    per_place = np.bincount(sent.token % 6, minlength=6)
    assert np.all(np.abs(per_place - 1600) < 5 * np.sqrt(4000 * 0.4 * 0.6))
    pairs = np.bincount(sent.user, minlength=4000)  # hypergeometric: 4 of 10, of which 6 are real
    assert pairs.mean() == pytest.approx(2.4, abs=0.06)
    assert pairs.var() == pytest.approx(4 * 0.6 * 0.4 * 6 / 9, abs=0.06)


def test_moves_add_up():
    moved = tuples.add_up([2, 2, 5], np.array([-1, 0, 1], np.int16), np.array([0, 1, 2], np.int16), K, V)
    expected = np.zeros((K, V), dtype=int)
    expected[1, 2] = 1  # 0 gains a word 2 and loses it
    expected[1, 5], expected[2, 5] = -1, 1
    assert np.array_equal(moved, expected)


def test_wrong_input_is_refused_before_compiled_code_sees_it():
    words, documents = shard(4)
    with pytest.raises(InputError, match="sampler = 'warp'"):
        resample(words, documents, unset(4), [True], PHI, ALPHA, 1, 1, "warp")
    with pytest.raises(InputError, match="topics: users take up to"):
        resample(words, documents, unset(4), [True], PHI, np.ones(40), 1)
    with pytest.raises(InputError, match="4 tokens need a topic of"):
        resample(words, documents, unset(3), [True], PHI, ALPHA, 1)
    with pytest.raises(InputError, match=r"outside 0\.\.7"):
        resample(words + 8, documents, unset(4), [True], PHI, ALPHA, 1)
