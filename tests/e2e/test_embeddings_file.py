"""Vectors computed elsewhere, in a file beside a party's documents: through TOML to a trained model."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import tertulia as tt
from helpers.marks import slow
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import load

CONFIG = """
directory = "runs"
engine = "{engine}"
heldout = 0.0
[method]
name = "gfedntm"
model = "zeroshottm"
topics = 3
hidden = [8, 6]
rounds = 3
vocabulary = {{max_share = 1.0}}
[parties.north]
path = "north.jsonl"
embeddings = "{file}"
[parties.south]
path = "south.jsonl"
embeddings = "south.npz"
"""


@pytest.fixture
def folder(tmp_path, worded):
    """Two parties; the third row of the north has no text, and vectors tell the number of their row."""
    for number, name in enumerate(("north", "south")):
        rows = [{"text": f"{text} n{i}x"} for i, text in enumerate(worded(number, 20))]
        rows[2]["text"] = "" if name == "north" else rows[2]["text"]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    vectors = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    vectors[:, 0] = np.arange(20)
    np.save(tmp_path / "north.npy", vectors)
    np.savez(tmp_path / "south.npz", embeddings=vectors, other=vectors[:3])
    save_file({"any": vectors}, tmp_path / "north.safetensors")
    return tmp_path


def run(folder, file, engine="local"):
    (folder / "run.toml").write_text(CONFIG.format(file=file, engine=engine))
    return finish(begin(load(folder / "run.toml").replace(directory=str(folder / "runs" / file / engine))))


def test_rows_without_a_text_do_not_shift_vectors(folder):
    corpus = tt.read(folder / "north.jsonl", embeddings=folder / "north.npy")
    assert corpus.table["embedding"].to_numpy()[:, 0].tolist() == [0, 1, *range(3, 20)]
    corpus = tt.read(folder / "north.jsonl", embeddings=folder / "north.npy", directory=folder / "disk")
    assert tt.Corpus.load(folder / "disk").table["embedding"].to_numpy()[2, 0] == 3


def test_a_split_source_gives_each_party_its_vectors(folder):
    from tertulia.corpus.splits import at_random

    split = at_random({"a": 1.0, "b": 1.0}, 0)
    options = {"embeddings": folder / "north.npy", "parties": split}
    found = [tt.read(folder / "north.jsonl", party=p, **options).table["embedding"].to_numpy()[:, 0] for p in "ab"]
    assert sorted(np.concatenate(found).tolist()) == [0, 1, *range(3, 20)]


@pytest.mark.parametrize(("file", "engine"), [("north.safetensors", "local"), slow("north.npy", "processes")])
def test_every_format_and_engine_gives_the_same_model(file, engine, folder):
    assert run(folder, "north.npy").topic_word.tobytes() == run(folder, file, engine).topic_word.tobytes()


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda path: np.save(path, np.zeros((19, 5))), "has 19 rows, but .* has 20"),
        (lambda path: np.save(path, np.zeros(20)), r"holds float64 \(20,\)"),
        (lambda path: np.save(path, np.full((20, 5), np.nan)), "must be finite"),
        (lambda path: path.write_bytes(b"no array"), "cannot be read"),
        (lambda path: None, "cannot be read"),
    ],
)
def test_a_wrong_file_is_named(write, says, folder):
    write(folder / "bad.npy")
    with pytest.raises(tt.TertuliaError, match=says):
        tt.read(folder / "north.jsonl", embeddings=folder / "bad.npy")


def test_vectors_of_different_width_are_refused(folder):
    np.save(folder / "wide.npy", np.zeros((20, 9), np.float32))
    with pytest.raises(tt.TertuliaError, match="different width"):
        run(folder, "wide.npy")


def test_an_unknown_kind_of_file_is_refused(folder):
    with pytest.raises(tt.TertuliaError, match=r"must be .npy, .npz or .safetensors"):
        tt.read(folder / "north.jsonl", embeddings=folder / "north.txt")
