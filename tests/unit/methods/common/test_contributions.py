"""Which of a party's contributions a total holds, by what the server says and by what the party remembers."""

from types import SimpleNamespace

import pytest

from tertulia.errors import LostContribution
from tertulia.methods.common.contributions import counted_or_none


def at(*place):
    return SimpleNamespace(place=place)


def counting(*place):
    return SimpleNamespace(counted=place or None)


def kept(latest, counted):
    return SimpleNamespace(latest=latest, counted=counted)


def test_a_new_party_has_contributed_nothing():
    assert counted_or_none(counting(), None) is None


def test_an_answer_that_was_never_counted_is_no_contribution():
    assert counted_or_none(counting(), kept(at(3, 0), None)) is None


def test_the_total_holds_the_last_contribution_or_the_one_before():
    latest, counted = at(5, 0), at(3, 0)
    assert counted_or_none(counting(5, 0), kept(latest, counted)) is latest
    assert counted_or_none(counting(3, 0), kept(latest, counted)) is counted


@pytest.mark.parametrize(
    ("server", "latest", "counted"),
    [
        (counting(3, 0), None, None),  # the party's directory is gone
        (counting(4, 0), at(5, 0), at(3, 0)),  # no contribution of this party
        (counting(), at(5, 0), at(3, 0)),  # a server that forgot would count the party twice
        (
            counting(5, 1),
            at(5, 0),
            at(3, 0),
        ),  # the last answer of any kind, such as a score, in place of the last counted
    ],
)
def test_a_wrong_place_counts_nothing_twice(server, latest, counted):
    with pytest.raises(LostContribution, match="sits out"):
        counted_or_none(server, kept(latest, counted) if latest else None)
