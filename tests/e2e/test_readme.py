"""README runs as printed, fits on a page, names only what exists; the engineers' guide shows every command."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import typer

import tertulia as tt
from tertulia.api.federated import Options
from tertulia.cli.main import app
from tertulia.corpus import demo_corpus

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()
FIRST, MASKED, SOUND = re.findall(r"```python\n(.*?)```", TEXT, re.S)
OUTPUT = re.search(r"```\n(Topics\(.*?)```", TEXT, re.S)[1].splitlines()
PROSE = re.sub(r"```.*?```", "", TEXT, flags=re.S)
GUIDE = (ROOT / "docs" / "guides" / "engineer.md").read_text()
COMMANDS = re.findall(r"^tertulia (.*?)(?: +#.*)?$", GUIDE, re.M)


def small_parties():
    """Eight parties with documents of twenty subjects, each with eight words of its own."""
    random = np.random.default_rng(0)
    words = [[f"word{subject}{letter}" for letter in "abcdefgh"] for subject in range(20)]
    words[0][:3] = "eigenvalues", "symmetric", "matrix"
    return {f"team {number}": [" ".join(random.choice(words[d % 20], 20)) for d in range(60)] for number in range(1, 9)}


@pytest.fixture
def names(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_corpus, "demo_teams", small_parties)
    words = tuple(sorted({word for texts in small_parties().values() for text in texts for word in text.split()}))
    return {"tt": tt, "parties": small_parties(), "words": words}


def test_it_fits_on_a_page():
    assert len(PROSE.split()) <= 600
    (picture,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", TEXT)
    assert (ROOT / picture).stat().st_size <= 150_000


def test_ten_lines(names, tmp_path, capsys):
    assert len([line for line in FIRST.splitlines() if line]) == 10
    exec(FIRST, names)
    head, *lines, strongest, left = capsys.readouterr().out.splitlines()
    assert re.sub(r"[\d,]+ words", "", head) == re.sub(r"[\d,]+ words", "", OUTPUT[0])
    assert len(lines) == len(OUTPUT) - 3
    assert lines[-1] == OUTPUT[-3]  # how many topics are not shown
    assert all(re.fullmatch(r" +\d+ +[\d.]+%  \w+( \w+){7}", line) for line in (*lines[:-1], *OUTPUT[1:-3]))
    assert re.sub(r"[\d.]+", "", left) == re.sub(r"[\d.]+", "", OUTPUT[-1])
    topic, share = strongest.split()
    assert "matrix" in names["model"].top_words(8)[int(topic)]
    assert float(share) > 0.2
    assert (tmp_path / "shared-topics").is_dir()
    assert "<html" in (tmp_path / "topics.html").read_text()


@pytest.mark.slow
def test_output_is_what_the_ten_lines_print(monkeypatch, tmp_path):
    """Other versions of Python, NumPy and SciPy have other docstrings: topics must be alike, not equal."""
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(FIRST, names)
    found = [set(words) for words in names["model"].top_words(8)]
    for line in OUTPUT[1:-3]:
        printed = set(line.split()[2:])
        assert len(printed) == 8
        assert max(len(printed & words) for words in found) >= 5, line
    assert "matrix" in found[names["shares"].argmax()]


def test_masked_sums(names):
    names["parties"] = {team: 2 * texts for team, texts in names["parties"].items()}  # words in five documents each
    model = eval(MASKED, names)
    assert model.n_topics == 20
    assert "matrix" in model.vocabulary.words


def test_sound_mode(names):
    model = eval(SOUND, names)
    assert model.n_topics == 20
    assert model.vocabulary.words == names["words"]


def test_every_command_is_shown_to_engineers():
    known = set(typer.main.get_command(app).commands)
    assert {line.split()[0] for line in COMMANDS} == known - {"demo"}


def test_commands_in_the_text_exist_with_their_options():
    known = typer.main.get_command(app).commands
    mentioned = re.findall(r"`tertulia ([^`]+)`", PROSE.replace("\n", " "))
    assert len(mentioned) >= 3
    for line in mentioned:
        name, *arguments = line.split()
        options = {flag for parameter in known[name].params for flag in parameter.opts}
        assert {argument for argument in arguments if argument.startswith("--")} <= options, line


def test_everything_else_that_it_names_exists():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    blocks = "".join(re.findall(r"```.*?```", TEXT, re.S))
    assert {"demo", "test"} <= set(re.findall(r"^make ([a-z]+)", blocks, re.M)) <= set(targets)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for named in re.findall(r"pip install '\.\[([a-z,]+)\]'", TEXT):
        assert set(named.split(",")) <= set(extras)
    table = re.findall(r"^\| (`[a-z`, ]+) \|", PROSE, re.M)
    assert {name for row in table for name in re.findall(r"`(\w+)`", row)} == set(extras) - {"docs", "dev", "all"}
    for name in set(re.findall(r"`tt\.(\w+)", PROSE)):
        assert hasattr(tt, name), name
    assert set(re.findall(r"\bmodel\.(\w+)", TEXT)) <= set(dir(tt.FederatedTopics))


def test_options_of_fit_that_it_mentions_exist():
    mentioned = re.findall(r"`fit\(parties, ([^`]*?)\)`", PROSE)
    assert mentioned
    for arguments in mentioned:
        assert set(re.findall(r"(\w+)=", arguments)) <= set(Options.__annotations__)
