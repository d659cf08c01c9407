"""Sentence embeddings and their cache."""

import numpy as np
import pytest

import tertulia as tt
from tertulia.corpus import Corpus
from tertulia.errors import InputError
from tertulia.models.neural import embeddings

TEXTS = ["The river rose after the rain.", "Stocks fell in early trading.", "The river rose after the rain."]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_cache_hit_equals_a_miss(tmp_path, monkeypatch):
    missed = embeddings.embed(TEXTS, cache=tmp_path)
    assert missed.shape == (3, 384)
    assert np.array_equal(missed[0], missed[2])
    monkeypatch.setattr(embeddings, "_encoder", lambda path: pytest.fail("the cache was not used"))
    assert np.array_equal(embeddings.embed(TEXTS, cache=tmp_path), missed)
    assert b"river" not in (tmp_path / "embeddings.sqlite").read_bytes()


def test_given_vectors_travel_with_their_documents():
    corpus = Corpus.from_texts(["winter letter", "bridge market"]).with_embeddings(np.eye(2, 3))
    assert embeddings.embeddings_of(corpus.select([1])).tolist() == [[0, 1, 0]]
    with pytest.raises(InputError, match="a row for each of 2 texts"):
        corpus.with_embeddings(np.ones((3, 2)))


def test_a_corpus_without_texts_says_what_to_do():
    with pytest.raises(InputError, match="keep_text=True"):
        embeddings.embeddings_of(Corpus.from_texts(["winter letter"]))
    with pytest.raises(InputError, match=r"no modules\.json"):
        embeddings.embed(["x"], "nowhere")


def test_texts_are_kept_only_if_asked(tmp_path):
    (tmp_path / "notes.csv").write_text("text\nwinter letter\n")
    assert tt.read(tmp_path / "notes.csv").table.columns == ["id"]
    kept = tt.read(tmp_path / "notes.csv", keep_text=True, directory=tmp_path / "corpus")
    assert kept.table["text"].to_list() == ["winter letter"]
    assert Corpus.load(tmp_path / "corpus").table["text"].to_list() == ["winter letter"]
