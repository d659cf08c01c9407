"""The verdict on masked sums: amber, and only if everything without noise was masked."""

from types import SimpleNamespace

import pytest

from tertulia.view.tables import who_learns
from tertulia.view.verdicts import is_masked, level_of, masked_over, verdict

CLEAR = [{"unit": "token", "words": 1, "real epsilon": "infinite (non-private)", "delta": 1e-6}]


def release(*, hidden, non_private=True):
    return SimpleNamespace(hidden=hidden, non_private=non_private)


def test_masked_sums_alone_are_amber():
    said = verdict(CLEAR, masked=masked_over([release(hidden=True), release(hidden=False, non_private=False)], 3))
    assert said.startswith("MASKED. Only sums over at least 3 parties left, without noise")
    assert "a server that follows the protocol" in said
    assert level_of(said) == "weak"
    assert is_masked(said)


def test_one_release_in_clear_is_red():
    said = verdict(CLEAR, masked=masked_over([release(hidden=True), release(hidden=False)], 3))
    assert said.startswith("NOT PROTECTED")
    assert level_of(said) == "bad"
    assert not is_masked(said)


@pytest.mark.parametrize(
    ("members", "words"),
    [(3, "one member, learns totals over at least 3 of the 3 parties, and words that 2"),
     (10, "up to 3 members, learns totals over at least 7 of the 10 parties, and words that 3")],
)  # fmt: skip
def test_who_learns_what(members, words):
    assert words in who_learns(members, 3)
    assert "only noise protects" in who_learns(members, 3)
