"""Participation: conversion of histories to ranges of rounds, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.metrics.history import Participation, participation, participation_in

MEMBERS = ("north", "south", "east")


def stored(rounds):
    """Make a history as the server stores it: parties are listed only in rounds where they change."""
    before, history = None, []
    for here in rounds:
        history.append({} if here == before else {"took_part": here})
        before = here
    return history


@given(st.lists(st.lists(st.sampled_from(MEMBERS), unique=True), min_size=1, max_size=40))
def test_ranges_hold_just_the_rounds_of_a_party(rounds):
    found = participation(stored(rounds), MEMBERS)
    for member in MEMBERS:
        one = found[member]
        expected = [number for number, here in enumerate(rounds, 1) if member in here]
        assert [n for first, last in one.rounds for n in range(first, last + 1)] == expected
        assert one.missed() == [n for n in range(1, len(rounds) + 1) if n not in expected]
        assert all(a[1] + 1 < b[0] for a, b in zip(one.rounds, one.rounds[1:], strict=False))  # none touch
        assert one.count == len(expected)
        assert one.is_complete == (len(expected) == len(rounds) == one.of)
    assert participation_in({"participation": {p: one.to_dict() for p, one in found.items()}}) == found


@pytest.mark.parametrize(
    ("rounds", "of", "text"),
    [
        (((1, 22),), 121, "rounds 1-22 of 121"),
        (((1, 121),), 121, "all 121 rounds"),
        (((1, 1),), 1, "the only round"),
        ((), 121, "never"),
        (((5, 5),), 9, "round 5 of 9"),
        (((1, 3), (5, 5), (8, 9)), 9, "rounds 1-3, 5, 8-9 of 9"),
        (tuple((n, n) for n in range(1, 20, 2)), 20, "10 of 20 rounds"),
    ],
)
def test_a_text_says_it(rounds, of, text):
    assert str(Participation(rounds, of)) == text


def test_more_than_a_tenth_is_many():
    assert not Participation(((1, 9),), 10).missed_many
    assert Participation(((1, 8),), 10).missed_many
    assert Participation((), 1).missed_many


def test_an_earlier_version_said_nothing():
    assert participation([{"round": 1}, {"took_part": ["north"]}], MEMBERS) == {}
    assert participation([], MEMBERS) == {}
    assert participation_in({}) == {}


@pytest.mark.parametrize(
    "said",
    [
        "x", ["x"], {"north": 3}, {"north": {"of": 3}}, {"north": {"rounds": [[1, 2, 3]], "of": 3}},
        {"north": {"rounds": [[2, 1]], "of": 3}}, {"north": {"rounds": [[1, 4]], "of": 3}},
        {"north": {"rounds": [[1, 2], [2, 3]], "of": 3}}, {"north": {"rounds": [[0, 2]], "of": 3}},
        {"north": {"rounds": [[1, True]], "of": 3}}, {"north": {"rounds": [["1", "2"]], "of": 3}},
        {"north": {"rounds": [], "of": 1e400}}, {"north": {"rounds": None, "of": 3}},
    ],
)  # fmt: skip
def test_what_another_sent_may_be_nonsense(said):
    assert participation_in({"participation": said}) == {}
