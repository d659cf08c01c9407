"""The bit-packed form of tuples: what goes in comes out, in few bytes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.errors import FormatError
from tertulia.kernels.fedlda.packing import pack, packed_bytes, ranks, unpack

V, K, MOST = 60, 7, 20
TOPIC_AT, RANK = ranks(np.random.default_rng(0).gamma(0.2, size=(V, K)))
TUPLES = st.lists(st.tuples(st.integers(0, V - 1), st.integers(-1, K - 1), st.integers(0, K - 1)), max_size=MOST)


def columns(tuples):
    return tuple(np.array([t[i] for t in tuples], dtype=int) for i in range(3))


@given(TUPLES)
@settings(max_examples=200, deadline=None)
def test_what_is_packed_comes_out_sorted(tuples):
    word, origin, target = unpack(pack(*columns(tuples), RANK, MOST), TOPIC_AT, MOST)
    assert sorted(zip(word, origin, target, strict=True)) == sorted(tuples)
    assert list(word) == sorted(word)


def test_all_messages_together_are_as_long_as_each_packed_alone():
    rng = np.random.default_rng(1)
    users = {0: 3, 2: 20, 5: 1}  # users 1, 3, 4 have nothing to say, and send a header
    tuples = {
        u: columns([(rng.integers(V), rng.integers(-1, K), rng.integers(K)) for _ in range(n)])
        for u, n in users.items()
    }
    alone = sum(len(pack(*tuples[u], RANK, MOST)) for u in users) + 3 * len(pack([], [], [], RANK, MOST))
    user = np.repeat(list(users), list(users.values()))
    together = [np.concatenate([tuples[u][i] for u in users]) for i in range(3)]
    assert packed_bytes(user, *together, RANK, MOST, users=6) == alone
    assert len(pack([], [], [], RANK, MOST)) == 2


def test_likely_topics_cost_less():
    words = np.arange(0, V, 3)
    best, worst = (TOPIC_AT[words, r] for r in (0, K - 1))
    none = np.full(len(words), -1)
    assert len(pack(words, none, best, RANK, MOST)) < len(pack(words, none, worst, RANK, MOST))
    assert len(pack(words, none, best, RANK, MOST)) < len(pack(words, worst, best, RANK, MOST))


def test_even_tuples_at_random_take_a_quarter_of_three_numbers_each():
    rng = np.random.default_rng(3)
    _, rank = ranks(rng.gamma(0.2, size=(3309, 30)))
    columns = rng.integers(0, 3309, 105), rng.integers(0, 30, 105), rng.integers(0, 30, 105)
    bits = 105 * (np.log2(3309) + 2 * np.log2(30)) - np.log2(np.arange(1, 106)).sum()  # their order need not be sent
    assert len(pack(*columns, rank, 105)) < min(105 * 12 / 4, 1.15 * bits / 8)


def test_ranks_are_inverse_to_each_other():
    assert np.array_equal(np.take_along_axis(RANK, TOPIC_AT.astype(int), axis=1), np.tile(np.arange(K), (V, 1)))


@pytest.mark.parametrize("data", [b"", b"\xff", b"\xff" * 40])
def test_what_is_no_message(data):
    if data == b"":
        assert len(unpack(data, TOPIC_AT, MOST)[0]) == 0
        return
    with pytest.raises(FormatError, match="are no user's tuples"):
        unpack(data, TOPIC_AT, MOST)
