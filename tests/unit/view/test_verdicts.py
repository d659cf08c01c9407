"""The verdict: amber for masked sums, if everything without noise was masked; presence decides where it is finite."""

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


def rows(document, user=None, replaced="900"):
    known = {"document": document, "user": user}
    presence = [(unit, "add-remove", e, f"a {unit}, there or not") for unit, e in known.items() if e is not None]
    others = [("token", "substitute", "8", "a word"), ("document", "substitute", replaced, "the longest document")]
    made = [(*one, 63 if one[0] == "document" else None) for one in (*others, *presence)]
    return [
        {"unit": unit, "adjacency": how, "real epsilon": e, "of": of, "words": n, "delta": 1e-6, "members": 1}
        for unit, how, e, of, n in made
    ]


@pytest.mark.parametrize(
    ("document", "user", "level", "says"),
    [("3", None, "good", "PROTECTED. Whether a document is there or not can be denied (epsilon 3, delta 1e-06; "
      "replaced by another: 900)."),
     ("3.01", None, "weak", "PROTECTED, WEAKLY. Whether a document is there or not can be denied to some degree"),
     ("10", None, "weak", "PROTECTED, WEAKLY. Whether a document is there or not"),
     ("10.1", None, "weak", "PROTECTED, WEAKLY. A single word can be denied (epsilon 8, delta 1e-06). A whole document "
      "of 63 words cannot (epsilon 900"),
     ("2", "20", "good", "PROTECTED. Whether a document is there or not can be denied (epsilon 2, delta 1e-06; "
      "replaced by another: 900; a user: 20)."),
     ("4", "2", "good", "PROTECTED. Whether a user is there or not can be denied (epsilon 2, delta 1e-06; a document: "
      "4)."),
     ("2", "2", "good", "PROTECTED. Whether a user is there or not")],
)  # fmt: skip
def test_presence_decides_where_it_is_finite(document, user, level, says):
    said = verdict(rows(document, user))
    assert said.startswith(says)
    assert level_of(said) == level


@pytest.mark.parametrize(
    ("here", "everywhere", "document", "level", "says"),
    [("1", "2.9", "6.5", "good", "PROTECTED. Whether a user is there or not, at all 3 parties, can be denied (epsilon "
      "2.9, delta 1e-06; replaced by another: 5.8; a user at this party: 1; a document: 6.5)."),
     ("3", "8.2", "9", "weak", "PROTECTED, WEAKLY. Whether a user is there or not, at all 3 parties, can be denied to "
      "some degree (epsilon 8.2, delta 1e-06;"),
     ("2", "20", "3", "good", "PROTECTED. Whether a document is there or not can be denied (epsilon 3, delta 1e-06; "
      "replaced by another: 900; a user at this party: 2; a user at all 3 parties: 20)."),
     ("2", "infinite (non-private)", "30", "weak", "PROTECTED, WEAKLY. A single word can be denied")],
)  # fmt: skip
def test_users_at_all_members_decide_for_users(here, everywhere, document, level, says):
    totals = rows(document, here)
    doubled = everywhere if everywhere.startswith("infinite") else f"{2 * float(everywhere):g}"
    of_all = {"unit": "user", "words": None, "delta": 1e-6, "members": 3}
    totals += [{**of_all, "of": "a user, at all 3 parties", "adjacency": "substitute", "real epsilon": doubled}]
    name = "a user, there or not, at all 3 parties"
    totals += [{**of_all, "of": name, "adjacency": "add-remove", "real epsilon": everywhere}]
    said = verdict(totals)
    assert said.startswith(says)
    assert level_of(said) == level
