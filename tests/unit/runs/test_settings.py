"""Settings in a TOML file: paths are relative to the file, errors name the file and the key."""

import pytest

from tertulia.errors import ConfigError
from tertulia.runs.settings import RunSettings, load, settings_from

TOML = """
directory = "runs/one"

[method]
name = "pctd"
vectors = "vectors.txt"

[parties.north]
path = ["a.jsonl", "more/*.jsonl"]
policy = "/etc/policy.toml"
home = "homes/north"

[parties.south]
path = "../b.jsonl"
embeddings = "b.npy"
"""


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    place = tmp_path / "study"
    place.mkdir()
    (place / "run.toml").write_text(TOML)
    (place / "vectors.txt").write_text("rain 1\n")
    monkeypatch.chdir(tmp_path)
    settings = load("study/run.toml")
    north, south = settings.parties["north"], settings.parties["south"]
    assert settings.directory == "study/runs/one"
    assert settings.method.vectors == "study/vectors.txt"
    assert north.path == ["study/a.jsonl", "study/more/*.jsonl"]
    assert north.policy == "/etc/policy.toml"
    assert north.home == str(place / "homes" / "north")  # absolute: a budget must not depend on the working directory
    assert (south.path, south.embeddings, south.home) == ("b.jsonl", "study/b.npy", None)


def test_a_word_list_of_the_package_is_no_path(tmp_path):
    method = {"name": "consensus", "vocabulary": {"mode": "public", "words": "english"}}
    assert len(settings_from({"method": method}, tmp_path).method.vocabulary.words) > 1000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"seed = ", "is not valid TOML"),
        (b"\xff", "is not valid TOML"),
        (b"seeds = 1", "unknown key 'seeds'"),
        (b"method = 3", "method"),
        (b"parties = 3", "parties"),
        (b"[parties.north]\npath = 3", "parties.north.path"),
        (b"[data]\npath = 'a.csv'\nshards = 2\nsplit = 'file'", "shards = 2 is a split of its own"),
        (b"[data]\npath = 'a.csv'\n[parties.north]\npath = 'b.csv'", "cannot have a source of its own"),
        (b"address = 'auto'", "goes with engine 'ray'"),
        (b"engine = 'carrier'", "carrier"),
        (b"heldout = 0.5\nvalidation = 0.5", "leave nothing to train on"),
        (b"start_from = 'x'\n[method]\nname = 'alone'", "cannot go on from an earlier model"),
    ],
)
def test_an_error_names_the_file_and_the_key(tmp_path, text, said):
    (tmp_path / "run.toml").write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "run.toml")
    assert str(caught.value).startswith(str(tmp_path / "run.toml"))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="there is no config file"):
        load(tmp_path / "run.toml")


def test_the_method_has_the_seed_of_the_run_unless_it_has_its_own():
    assert RunSettings(seed=3, method={"name": "pctd"}).method.seed == 3
    assert RunSettings(seed=3, method={"name": "pctd", "seed": 4}).method.seed == 4


def test_settings_survive_json():
    settings = RunSettings(
        method={"name": "consensus"}, text={"language": "de"}, parties={"north": {"path": "a.csv", "threads": 2}}
    )
    assert RunSettings(**settings.model_dump(mode="json")).model_dump() == settings.model_dump()
    assert settings.parties["north"].choices() == {"threads": 2}
