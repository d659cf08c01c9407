"""Vectors of words and documents, and the encoder of topics that are clusters."""

import numpy as np
import pytest

import tertulia as tt
from helpers.themes import themed
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.vocabulary import public
from tertulia.errors import FormatError, InputError
from tertulia.models.vectors.centroids import Centroids
from tertulia.models.vectors.documents import (
    fingerprint_or_none,
    kind_of,
    seconds_to_encode,
    vectors_of,
    vectors_of_words,
)
from tertulia.models.vectors.words import WIDTH, project, weights_of, word_table


def test_every_word_of_the_shipped_list_has_a_unit_vector_and_rare_words_weigh_more():
    words = public("english").words
    table = word_table(words)
    assert table.vectors.shape == (len(words), WIDTH)
    assert np.allclose(np.linalg.norm(table.vectors, axis=1), 1.0, atol=1e-5)
    assert np.all(np.diff(table.weights) > 0)
    assert 0 < table.weights[0] < 0.1 < 0.9 < table.weights[-1] < 1


def test_similar_words_are_near():
    near, far = (vectors_of_words(pair, "static") for pair in (("doctor", "physician"), ("doctor", "guitar")))
    assert near[0] @ near[1] > 0.4 > 0.15 > far[0] @ far[1]


def test_words_off_the_list_have_no_vector_and_no_weight():
    table = word_table(("doctor", "xqzzy"))
    assert table.vectors[0].any()
    assert not table.vectors[1].any()
    assert table.weights[1] == 0


def test_frequencies_of_lists_in_other_languages_are_by_place():
    assert np.all(np.diff(weights_of(("maison", "chien", "chat"))) > 0)


def test_a_document_is_the_weighted_mean_of_its_words_and_the_corpus_stays_as_it_is():
    corpus = Corpus.from_texts(["guitar doctor guitar", "xqzzy", "", "doctor"])
    before = corpus.words.copy()
    table = word_table(corpus.vocabulary.words)
    index = corpus.vocabulary.index
    g, d = index["guitar"], index["doctor"]
    mean = np.sqrt(2) * table.weights[g] * table.vectors[g] + table.weights[d] * table.vectors[d]
    found = vectors_of(corpus)
    assert np.allclose(found[0], mean / np.linalg.norm(mean), atol=1e-6)
    assert not found[1:3].any()
    assert np.allclose(found[3], table.vectors[d], atol=1e-6)
    assert np.array_equal(corpus.words, before)


def test_vectors_that_documents_come_with_are_used_at_unit_length():
    corpus = Corpus.from_texts(["one thing", "another"]).with_embeddings(np.array([[3.0, 4.0], [0.0, 0.0]]))
    assert vectors_of(corpus, "given").tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]
    with pytest.raises(InputError, match="come without vectors"):
        vectors_of(Corpus.from_texts(["one thing"]), "given")


def test_a_file_of_word_vectors_takes_the_place_of_the_shipped_ones(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("maison 1 0\nchien 0 1\n")
    found = vectors_of(Corpus.from_texts(["maison maison", "chien", "oiseau"]), str(path))
    assert np.allclose(found, [[1, 0], [0, 1], [0, 0]])
    assert fingerprint_or_none(str(path)) != fingerprint_or_none("static")
    before = fingerprint_or_none(str(path))
    other = tmp_path / "other.txt"
    other.write_text("maison 1 0\nchien 0 2\n")
    assert fingerprint_or_none(str(other)) != before
    assert fingerprint_or_none(str(tmp_path / "missing.txt")) is None


def test_an_embedding_of_texts_needs_texts():
    assert kind_of("minilm") == "sentences"
    with pytest.raises(InputError, match="keep_text=True"):
        vectors_of(Corpus.from_texts(["no text is kept"]), "minilm")


def test_the_time_to_embed_texts_is_estimated():
    corpus = Corpus.from_texts(["a" * 2_200] * 100, keep_text=True)
    assert seconds_to_encode(corpus, "minilm") == pytest.approx(6.0)
    assert seconds_to_encode(corpus, "static") == 0.0


@pytest.mark.slow
def test_the_sentence_model_embeds_texts():
    pytest.importorskip("sentence_transformers")
    corpus = Corpus.from_texts(["the doctor cured him", "a physician healed him", "", "loud guitars"], keep_text=True)
    found = vectors_of(corpus, "minilm")
    assert found[0] @ found[1] > 0.5 > found[0] @ found[3]
    assert not found[2].any()


def test_the_table_is_made_the_same_whatever_the_signs_of_its_components():
    x = np.random.default_rng(0).normal(size=(50, 6))
    flipped = x * np.array([1, -1, 1, -1, 1, 1])
    assert np.abs(project(x, 4)).max() == 127
    assert np.array_equal(np.abs(project(x, 4)), np.abs(project(flipped, 4)))


# --- the encoder ------------------------------------------------------------------------------------------------------


def encoder(least=(0.3, 0.3)):
    vectors = vectors_of_words(("doctor", "guitar"), "static")
    return Centroids.of(
        np.zeros(WIDTH), vectors, np.array(least), np.array([3.0, 1.0]), 4, "static", fingerprint_or_none("static")
    )


def model(**given):
    words = Vocabulary(("doctor", "guitar", "hospital", "concert"))
    return tt.Topics(np.full((2, 4), 0.25), words, encoder=encoder(**given))


def test_documents_belong_to_the_nearest_centroid_or_to_none():
    texts = ["a doctor in the hospital", "guitar at a concert", "unknownish", ""]
    assert model().assign(texts).tolist() == [0, 1, -1, -1]
    assert model(least=(0.999, 0.1)).assign(texts).tolist() == [-1, 1, -1, -1]
    with pytest.warns(UserWarning, match="2 of 4 documents hold no word"):
        theta = model().transform(texts)
    assert theta[0, 0] > 0.9 < theta[1, 1]
    assert np.allclose(theta[2:], [0.75, 0.25])


def test_a_saved_model_is_the_same(tmp_path):
    model().save(tmp_path / "m")
    loaded = tt.Topics.load(tmp_path / "m")
    assert loaded == model()
    assert isinstance(loaded.encoder, Centroids)


def test_perplexity_is_refused_in_a_plain_sentence():
    with pytest.raises(InputError, match=r"clusters of documents give words no probabilities: use its `coherence`"):
        model().perplexity(["doctor guitar"])


def test_vectors_of_another_width_are_refused():
    other = Corpus.from_texts(["doctor"]).with_embeddings(np.ones((1, 7)))
    with pytest.raises(InputError, match="100 numbers by 'static'"):
        model().assign(other)


def test_damaged_encoders_are_refused():
    good = encoder()
    bad = Centroids(good.architecture, good.weights[:-1], good.statistics, good.embedding)
    with pytest.raises(FormatError, match="damaged"):
        tt.Topics(np.full((2, 4), 0.25), Vocabulary(("a", "b", "c", "d")), encoder=bad)
    with pytest.raises(FormatError, match="not for 3 topics"):
        tt.Topics(np.full((3, 4), 0.25), Vocabulary(("a", "b", "c", "d")), encoder=good)


def test_of_a_model_of_words_documents_without_known_words_have_no_topic():
    words = tt.Topics(np.array([[0.9, 0.1], [0.1, 0.9]]), Vocabulary(("rain", "money")))
    assert words.assign(["rain rain", "money", "unheard"]).tolist() == [0, 1, -1]


def test_texts_of_one_subject_are_near_each_other():
    texts, subjects = themed(60, 1)
    vectors = vectors_of(Corpus.from_texts(texts))
    same = np.equal.outer(subjects, subjects)
    cosines = vectors @ vectors.T
    assert cosines[same].mean() > cosines[~same].mean() + 0.3
