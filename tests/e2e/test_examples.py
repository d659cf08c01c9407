"""Every example runs as it stands, and shows what its first line says."""

import re
import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import tertulia as tt
from tertulia.corpus import demo_corpus
from tertulia.corpus.vocabulary import public

FOLDER = Path(__file__).parents[2] / "examples"
WARDS = {"heart": 0, "fracture": 1, "inhaler": 2, "insulin": 3, "pregnancy": 4}  # a word of each


def finds_wards(model):
    """Whether each ward's word is the likeliest in a topic of its own."""
    return len({int(model.topic_word[:, model.vocabulary.index[word]].argmax()) for word in WARDS}) == len(WARDS)


def hospitals(names, out):
    assert finds_wards(names["model"])
    assert re.findall(r"^(\w+): takes \w+", out, re.M) == ["north", "south", "west"]


def private(names, out):
    assert names["model"].vocabulary == public(FOLDER / "words.txt")
    assert "north, a word: real epsilon 8 in this run" in out
    notes = [float(found) for found in re.findall(r"longest document \(\d+ words\): real epsilon (\d+)", out)]
    assert len(notes) == 3
    assert min(notes) > 100


def different_sizes(names, out):
    assert {name: own.n_topics for name, own in names["model"].local.items()} == {"north": 4, "south": 6, "west": 3}
    assert "matched" in out


def neural(names, out):
    assert names["model"].provenance["method"] == "gfedntm"
    assert names["alone"].n_topics == 5
    assert "rounds, diversity" in out


def next_quarter(names, out):
    states = [topic["state"] for topic in names["winter"].provenance["drift"]]
    assert states == ["kept"] * 4 + ["new"]
    assert names["winter"].ids[:4] == names["autumn"].ids
    assert {"baby", "pregnancy"} <= set(out.splitlines()[-1].split())


def compare_parties(names, out):
    maternity = names["model"].topic_word[:, names["model"].vocabulary.index["pregnancy"]].argmax()
    shares = names["found"].table().row(int(maternity), named=True)
    assert shares["west"] > shares["north"]
    assert names["found"].names == ("north", "south", "west")
    assert "2026-Q1" in out


def own_tokens(names, out):
    words = names["model"].vocabulary.words
    assert {"heart", "heart_attack"} <= set(words)
    assert all(len(part) >= 5 for word in words for part in word.split("_"))
    lists, texts = out.splitlines()[-2:]
    assert lists == texts


def pipeline(names, out):
    assert names["search"].best_params_["lda__topics"] == 5
    assert names["search"].best_score_ > 0.6
    assert names["shares"].shape == (3, 5)


def features(names, out):
    tfidf, topics = (int(share) for share in re.findall(r": (\d+)% of wards", out))
    assert topics > tfidf


def choose_topics(names, out):
    assert names["found"].why in out
    assert Path("topic-numbers.png").read_bytes().startswith(b"\x89PNG")


def topics(names, out):
    assert all(names["model"].names)
    assert f"{names['model'].names[0]}: " in out
    assert names["smaller"].n_topics == 3
    assert names["smaller"].names[0] == "the two together"
    assert "the two together" in out
    assert "[{'of': 4, 'groups': [[0, 1]]}]" in out
    assert {"planets", "gardens"} <= set(names["model"].by_label(names["notes"])["label"])
    assert names["found"].why in out


def plots(names, out):
    written = out.split()
    assert len(written) == 7
    assert all(Path(name).read_bytes().startswith(b"\x89PNG") for name in written)


CHECKS = (
    *(hospitals, private, different_sizes, neural, next_quarter, compare_parties, own_tokens, pipeline, features),
    *(choose_topics, topics, plots),
)


def small_parties():
    """Instead of docstrings, which take long to collect."""
    random = np.random.default_rng(0)
    words = [[f"word{subject}{letter}" for letter in "abcdefgh"] for subject in range(4)]
    words[0][:3] = "samples", "normal", "distribution"
    return {party: [" ".join(random.choice(words[d % 4], 20)) for d in range(40)] for party in ("stdlib", "numpy")}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_example_runs(check, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_corpus, "demo_parties", small_parties)
    monkeypatch.setattr(sys, "argv", [f"{check.__name__}.py", "pictures"])
    plt.switch_backend("agg")
    try:
        names = runpy.run_path(str(FOLDER / f"{check.__name__}.py"), run_name="__main__")
        check(names, capsys.readouterr().out)
    finally:
        plt.close("all")


def test_examples_are_listed_and_short():
    scripts = sorted(path.name for path in FOLDER.glob("*.py"))
    assert scripts == sorted(f"{check.__name__}.py" for check in CHECKS)
    page = (FOLDER / "README.md").read_text()
    listed = re.findall(r"^\| \[(.*?)\]\((.*?)\) \| (.+) \|$", page, re.M)
    assert all(shown == target for shown, target, _ in listed)
    assert sorted(target for _, target, _ in listed) == sorted([*scripts, *(p.name for p in FOLDER.glob("*.toml"))])
    for name in scripts:
        lines = (FOLDER / name).read_text().splitlines()
        assert 10 <= len(lines) <= 40, name
        assert lines[0].startswith('"""'), name
    assert tt.read(FOLDER / "hospitals.csv").n_documents == 240
