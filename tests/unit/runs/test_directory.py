"""A run's directory: written once, read with checks, and one folder below `parties` for every name."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.errors import ConfigError, FormatError
from tertulia.runs.directory import Run, directory_name
from tertulia.runs.settings import RunSettings

KEYS = {"north": "ab" * 32, "south": "cd" * 32}


def test_a_run_keeps_its_keys_and_is_not_resumed_without_its_server(tmp_path):
    settings = RunSettings(method={"name": "consensus"}).model_dump(mode="json")
    Run(tmp_path / "x" / "runs" / "r", "r", ("north", "south"), settings, keys=KEYS).save()
    run = Run.open(tmp_path / "x" / "runs" / "r")
    assert run.keys == KEYS
    with pytest.raises(ConfigError, match=f"`tertulia serve {tmp_path / 'x'}` goes on with this run"):
        run.transport("local", 1)
    path = run.directory / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "keys": {"north": 1}}))
    with pytest.raises(FormatError, match="damaged"):
        Run.open(run.directory)


def test_what_was_saved_is_opened(tmp_path):
    run = Run.new(tmp_path / "r", ("north", "south"), {"seed": 1}, durable=False)
    assert not run.directory.exists()
    run.save()
    assert Run.open(run.directory) == run
    with pytest.raises(ConfigError, match=r"holds a run already: `tertulia resume .*` goes on with it"):
        Run.new(run.directory, ("north",), {})


@pytest.mark.parametrize(
    "facts",
    [
        b"", b"{", b"[]", b"[" * 100_000, b"{}",
        *(json.dumps(facts).encode() for facts in (
            {"format": "1"}, {"format": 1, "id": 2}, {"format": 1, "id": "r", "parties": [1]},
        )),
    ],
)  # fmt: skip
def test_a_damaged_file_is_one_sentence(tmp_path, facts):
    (tmp_path / "run.json").write_bytes(facts)
    with pytest.raises(FormatError, match=r"run\.json is damaged") as caught:
        Run.open(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_party_that_is_named_twice_or_not_at_all_is_damage(tmp_path):
    for parties in (["north", "north"], ["north", ""]):
        Run(tmp_path, "r", tuple(parties), {}).save()
        with pytest.raises(FormatError, match="is damaged"):
            Run.open(tmp_path)


@given(st.text(min_size=1, max_size=300))
def test_every_name_is_one_folder(party):
    try:
        name = directory_name(party)
    except ConfigError:
        assert not party.strip() or not party.isprintable()
        return
    assert Path("parties", name).parent == Path("parties")
    assert not name.startswith(".")
    assert len(name.encode()) <= 255


def test_different_names_are_different_folders():
    names = ["north", "North", "nor/th", "nor%2Fth", ".north", "%2Enorth", "n" * 300, "n" * 301]
    assert len({directory_name(name) for name in names}) == len(names)
    with pytest.raises(ConfigError, match="empty name"):
        directory_name("  ")
    with pytest.raises(ConfigError, match="that is no text"):
        directory_name("\ud800")
