"""Heads of ledgers: who can read and make one, which of them a chain must contain, and where they are stored."""

import shutil

import numpy as np
import pytest

from tertulia.errors import FormatError
from tertulia.privacy.head_store import FILE, HEAD_BYTES, KEPT, NO_HEAD, HeadStore
from tertulia.privacy.home import open_home
from tertulia.privacy.ledger_heads import compare, open_head, seal_head
from tertulia.privacy.lost_entries import Missing
from tertulia.privacy.mechanisms import Adjacency, DiscreteLaplace, Unit
from tertulia.privacy.releases import Release

NOISY = DiscreteLaplace("counts", sensitivity=1, epsilon=0.5)
OF_A_WORD = (Unit.TOKEN, Adjacency.ADD_REMOVE, 0.0)


def charge(home, *names):
    for name in names:
        occasion = {"id": name, "party": "p", "round": 0, "step": "s", "verb": "sum", "message_hash": name}
        home.ledger.record(Release.of(NOISY, np.zeros(3), **occasion))


@pytest.fixture
def home(tmp_path):
    found = open_home(tmp_path / "home", durable=False)
    charge(found, "one")
    return found


@pytest.fixture
def put_back(home, tmp_path):
    """A function that puts a home back to where it is now."""
    home.ledger.close()
    shutil.copytree(tmp_path / "home", tmp_path / "backup")

    def reopen(name):
        shutil.copytree(tmp_path / "backup", tmp_path / name)
        return open_home(tmp_path / name, durable=False)

    return reopen


def test_a_head_has_a_constant_size_and_shows_nothing_to_others(home, tmp_path):
    first, again = seal_head(home), seal_head(home)
    charge(home, *map(str, range(300)))
    later = seal_head(home)
    assert len(first) == len(later) == HEAD_BYTES
    assert first != again  # nobody sees whether anything was charged in between
    assert open_head(open_home(tmp_path / "other", durable=False).key, later) is None
    assert (open_head(home.key, again).entry, open_head(home.key, later).entry) == (1, 301)
    changed = bytes([*later[:-1], later[-1] ^ 1])
    assert open_head(home.key, changed) is None


def test_every_head_of_a_chain_that_only_grew_is_contained(home):
    heads = []
    for name in "abcd":
        heads.append(seal_head(home))
        charge(home, name)
    assert compare(home, {"south": [*heads, NO_HEAD], "east": [NO_HEAD] * KEPT}) == ((), ())


def test_a_chain_that_was_put_back_lacks_the_later_head_however_it_goes_on(put_back):
    present = put_back("present")
    before = seal_head(present)
    charge(present, "two", "three")
    later, old = seal_head(present), put_back("old")
    for more in ((), ("four",), ("five", "six", "seven")):
        charge(old, *more)
        found = compare(old, {"south": [before, later], "east": [before, NO_HEAD], "west": [later]})
        assert found == ((Missing(3, ("south", "west")),), ())
    assert compare(present, {"south": [before, later]}) == ((), ())


def test_a_member_cannot_make_a_head_of_another_ledger(home, tmp_path):
    other = open_home(tmp_path / "other", durable=False)
    charge(other, *map(str, range(9)))
    lies = {"south": [seal_head(other)], "east": [bytes(range(HEAD_BYTES))], "west": [seal_head(home)]}
    assert compare(home, lies) == ((), ("south", "east"))


def test_an_accepted_loss_covers_what_was_made_before_it_and_nothing_later(put_back):
    present = put_back("present")
    charge(present, "two", "three")
    lost = seal_head(present)
    charge(present, "four")
    held_back = seal_head(present)  # by a member that shows it only after the loss was accepted
    old = put_back("old")
    old.ledger.accept_loss(compare(old, {"south": [lost]}).missing)
    assert compare(old, {"south": [lost], "east": [held_back]}) == ((), ())
    charge(old, "six")
    after = seal_head(old)
    assert compare(old, {"south": [after, lost]}) == ((), ())
    again = put_back("again")  # to before the loss was accepted
    assert compare(again, {"south": [after]}).missing == (Missing(3, ("south",)),)
    (loss,) = old.ledger.losses()
    assert loss.missing == (Missing(3, ("south",)),)
    assert "up to number 3" in loss.text
    assert any("up to number 3" in said for said in old.ledger.cost(*OF_A_WORD).assumptions)
    assert not any("lost" in said for said in present.ledger.cost(*OF_A_WORD).assumptions)
    old.ledger.verify()


def test_a_head_made_after_an_accepted_loss_is_not_covered_by_it(put_back, tmp_path):
    old = put_back("old")
    old.ledger.accept_loss([Missing(3, ("south",))])
    old.ledger.close()
    shutil.copytree(tmp_path / "old", tmp_path / "older")
    old, older = (open_home(tmp_path / name, durable=False) for name in ("old", "older"))
    charge(old, "two")
    assert compare(older, {"south": [seal_head(old)]}).missing == (Missing(3, ("south",)),)


def test_a_loss_of_another_home_covers_heads_of_other_keys(home, tmp_path):
    earlier = seal_head(open_home(tmp_path / "earlier", durable=False))
    home.ledger.accept_loss([Missing(None, ("south", "east"))])
    assert compare(home, {"south": [earlier]}) == ((), ())
    assert "an earlier ledger was lost" in home.ledger.losses()[0].text


def test_a_store_keeps_the_last_heads_of_each_member(tmp_path):
    heads = [bytes([number]) * HEAD_BYTES for number in range(1, 8)]
    for head in heads:
        HeadStore(tmp_path, durable=False).keep({"a": head})
    HeadStore(tmp_path, durable=False).keep({"b": heads[0], "a": heads[-1]})  # a repeat pushes nothing out
    store = HeadStore(tmp_path, durable=False)
    assert store.held("a") == heads[::-1][:KEPT]
    assert store.held("b") == [heads[0], *[NO_HEAD] * (KEPT - 1)]
    assert store.held("c") == [NO_HEAD] * KEPT
    store.note_missing([Missing(3, ("b",)), Missing(None, ("a", "b"))])
    assert store.missing() == [Missing(3, ("b",)), Missing(None, ("a", "b"))]
    assert store.held("b")[0] == heads[0]
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "damage", ["{", "[]", '{"held": {"a": ["00"]}, "missing": []}', '{"held": {}, "missing": [1]}']
)
def test_a_damaged_store_is_an_error_that_names_the_remedy(damage, tmp_path):
    (tmp_path / FILE).write_text(damage)
    with pytest.raises(FormatError, match="restore it from a backup, or delete it"):
        HeadStore(tmp_path).held("a")
