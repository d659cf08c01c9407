"""A new run replaces one without commits; ledgers with entries are moved aside."""

import numpy as np
import pytest

import tertulia as tt
from tertulia.errors import FormatError
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Clear
from tertulia.privacy.releases import Release
from tertulia.runs.one_machine import load, make_room


@pytest.fixture
def begun(tmp_path):
    """A run of one party that has been laid out."""
    directory = tmp_path / "run"
    for place in ("server", "parties/north"):
        (directory / place).mkdir(parents=True)
    (directory / "lock").touch()
    (directory / "run.json").write_text("{}")
    Ledger(directory / "parties" / "north" / "ledger.sqlite").close()
    return directory


def charge(directory):
    ledger = Ledger(directory / "parties" / "north" / "ledger.sqlite")
    occasion = {"id": "a", "party": "north", "round": 0, "step": "m:s", "verb": "sum", "message_hash": "ff"}
    ledger.record(Release.of(Clear("counts"), np.zeros(4), **occasion))
    ledger.close()


def test_a_run_of_which_nothing_left_is_removed(begun):
    said = []
    make_room(begun, False, said.append)
    assert [path.name for path in begun.iterdir()] == ["lock"]
    assert "nothing has left" in said[0]
    assert list(begun.parent.iterdir()) == [begun]


def test_what_has_left_is_kept_aside(begun):
    charge(begun)
    said = []
    make_room(begun, False, said.append)
    assert [path.name for path in begun.iterdir()] == ["lock"]
    aside = begun.with_name("run.1")
    assert str(aside) in said[0]
    assert len(Ledger(aside / "parties" / "north" / "ledger.sqlite").releases()) == 1


def test_a_run_with_a_commit_is_left_alone_unless_asked(begun):
    (begun / "server" / "commit-00000001.safetensors").touch()
    before = sorted(begun.rglob("*"))
    make_room(begun, False, pytest.fail)
    assert sorted(begun.rglob("*")) == before
    begun.with_name("run.1").mkdir()  # taken
    make_room(begun, True, str)
    assert (begun.with_name("run.2") / "server" / "commit-00000001.safetensors").exists()


def test_a_folder_without_a_run_stays_as_it_is(tmp_path):
    (tmp_path / "notes.txt").touch()
    make_room(tmp_path, True, pytest.fail)
    assert (tmp_path / "notes.txt").exists()


def test_load_takes_a_model_a_run_or_a_party_of_a_run(tmp_path):
    texts = [f"rain river water flood {i % 7}" for i in range(30)] + [
        f"money bank loan debt {i % 5}" for i in range(30)
    ]
    parties = {"north": texts[::2], "south": texts[1::2]}
    model = tt.Consensus(topics=2, rounds=2).fit(parties, directory=tmp_path / "run", validation=0.2)
    for place in (model.save(tmp_path / "saved"), str(tmp_path / "run")):
        assert load(place) == load(tmp_path / "run" / "model")
        np.testing.assert_array_equal(load(place).topic_word, model.topic_word)
    assert load(tmp_path / "run" / "parties" / "north") == tt.best_for(tmp_path / "run", "north")
    with pytest.raises(FormatError, match="cannot read"):
        load(tmp_path)
