"""The noise key and stream: determinism, secrecy of the file, and that floats never decide a draw."""

import decimal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tertulia.privacy import noise
from tertulia.privacy.noise import NoiseKey, NoiseStream

KEY = NoiseKey.fixed(bytes(range(32)))
QUESTION = ("run", "run/north/0.1/abcd/0", "5f" * 32)


def stream(salt: str = "") -> NoiseStream:
    return KEY.stream("run", "id" + salt, "hash")


def test_the_same_question_gets_the_same_bits():
    once, again = (KEY.stream(*QUESTION).laplace(1000, Fraction(1, 10)) for _ in range(2))
    np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("changed", range(3))
def test_a_changed_question_gets_other_bits(changed):
    other = list(QUESTION)
    other[changed] += "x"
    assert not np.intersect1d(KEY.stream(*QUESTION).words(1000), KEY.stream(*other).words(1000)).size


def test_parts_of_a_question_cannot_be_shifted_into_each_other():
    assert KEY.stream("ab", "c", "d").words(1) != KEY.stream("a", "bc", "d").words(1)


def test_another_key_gets_other_bits():
    other = NoiseKey.fixed(bytes(32))
    assert not np.intersect1d(KEY.stream(*QUESTION).words(1000), other.stream(*QUESTION).words(1000)).size


def test_draws_are_frozen():
    """These bits are a promise: a run resumed by a later version must repeat the noise of an earlier one."""
    assert stream().words(2).tolist() == [11023485733390717274, 16481501152621477603]
    assert stream().laplace(8, Fraction(1, 10)).tolist() == [-4, -23, 29, -1, -6, 11, 10, -1]


@pytest.mark.parametrize("rounding", [2.0**-46, 2.0**-12, 2.0**-6])
def test_floating_point_never_decides(monkeypatch, rounding):
    """However many draws are taken for doubtful and settled by exact arithmetic, they come out the same."""
    n = 2000
    expected = stream().geometric(n, Fraction(1, 7)), stream().laplace(n, Fraction(2, 7))
    settled = []
    settle = NoiseStream._settle
    monkeypatch.setattr(noise, "_ROUNDING", rounding)
    monkeypatch.setattr(NoiseStream, "_settle", lambda *a: settled.append(1) or settle(*a))
    np.testing.assert_array_equal(stream().geometric(n, Fraction(1, 7)), expected[0])
    np.testing.assert_array_equal(stream().laplace(n, Fraction(2, 7)), expected[1])
    assert bool(settled) == (rounding > 2**-20)


def test_draws_at_an_edge_are_settled_exactly(monkeypatch):
    """Words next to 2^64 exp(-k): the one in which the edge lies needs more bits, its neighbours are sure."""
    k = np.arange(1, 41)
    with decimal.localcontext(prec=60):
        edges = [int(decimal.Decimal(2**64) * decimal.Decimal(-int(i)).exp()) for i in k]
    settled = []
    settle = NoiseStream._settle
    monkeypatch.setattr(NoiseStream, "_settle", lambda self, word, *a: settled.append(word) or settle(self, word, *a))

    def reaches(shift: int) -> list[bool]:
        """Whether -ln U >= k."""
        words = np.array([edge + shift for edge in edges], dtype=np.uint64)
        monkeypatch.setattr(NoiseStream, "words", lambda self, n: words)
        return (stream().geometric(len(k), Fraction(1)) >= k).tolist()

    assert all(reaches(-1))
    assert not any(reaches(1))
    assert 0 < sum(reaches(0)) < len(k)  # decided by bits that no float has seen
    assert set(edges) <= set(settled)


def test_sixty_four_zero_bits_are_settled_by_reading_on(monkeypatch):
    monkeypatch.setattr(NoiseStream, "words", lambda self, n: np.zeros(n, dtype=np.uint64))
    k = stream().geometric(3, Fraction(1))
    assert (k >= 44).all()  # -ln 2^-64 = 44.4
    assert (k < 60).all()


def test_chunks_do_not_show(monkeypatch):
    n = 1000
    whole = stream().words(n)
    parts = stream()
    np.testing.assert_array_equal(whole, np.concatenate([parts.words(300), parts.words(n - 300)]))
    monkeypatch.setattr(noise, "_CHUNK", 64)
    assert len(stream().laplace(n, Fraction(1))) == n


def test_a_mac_names_contents_and_depends_on_the_key():
    x = np.arange(6)
    assert KEY.mac_of_array(x) == KEY.mac_of_array(np.arange(6))
    others = [x + 1, x.reshape(2, 3), x.astype(np.int32), x.astype(float), x[::-1]]
    names = {KEY.mac_of_array(other) for other in [x, *others]} | {NoiseKey.fixed(bytes(32)).mac_of_array(x)}
    assert len(names) == 7
    assert KEY.mac(b"a", b"bc") != KEY.mac(b"ab", b"c")


def test_a_sparse_mac_tells_every_number_and_place_apart():
    x = np.zeros((20, 30), np.int32)
    x[3, 4], x[5, 6] = 7, -2
    moved, other, wider = np.roll(x, 1), x.copy(), x.astype(np.int64)
    other[5, 6] = -3
    swapped = x.copy()
    swapped[3, 4], swapped[5, 6] = -2, 7
    full = x + 1  # most numbers are not 0: in full, as ever
    names = {KEY.mac_of_array(one, sparse=True) for one in (x, moved, other, wider, swapped, x.T, 0 * x, full)}
    assert len(names) == 8
    assert KEY.mac_of_array(x, sparse=True) == KEY.mac_of_array(np.asfortranarray(x.copy()), sparse=True)
    assert KEY.mac_of_array(x) not in names
    assert KEY.mac_of_array(full, sparse=True) == KEY.mac_of_array(full)
    assert KEY.mac_of_array(0.0 * x, sparse=True) == KEY.mac_of_array(0.0 * x)  # -0.0 is another number than 0.0


def test_a_fixed_key_says_that_it_is_no_secret():
    assert not KEY.secret


def test_noise_needs_no_slow_import():
    code = "import sys, tertulia.privacy.ledger, tertulia.privacy.noise; sys.exit('dp_accounting' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path.cwd()).returncode == 0
