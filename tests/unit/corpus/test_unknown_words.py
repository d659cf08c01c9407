"""Unknown words that keep their places, the English list, and lists from public documents."""

import numpy as np
import pytest

from tertulia.corpus import Corpus, TextOptions, Vocabulary, tokens
from tertulia.corpus.vocabulary import UNKNOWN, public, word_list
from tertulia.errors import InputError
from tertulia.methods.common.settings import VocabularySettings
from tertulia.runs.settings import load

CORPUS = Corpus.from_texts(["Rain fell. Rivers rose.", "", "Bridges held.\n\nRain."], ids=["a", "b", "c"])


def test_words_off_the_list_keep_their_places():
    coded = CORPUS.encode(Vocabulary(("rivers", "rain")), unknown=True)
    assert coded.vocabulary.words == ("rivers", "rain", UNKNOWN)
    assert coded.words.tolist() == [1, 2, 0, 2, 2, 2, 1]
    for name in ("documents", "sentences", "paragraphs"):
        assert np.array_equal(getattr(coded, name), getattr(CORPUS, name))


def test_a_list_that_knows_all_words_or_none():
    assert np.array_equal(CORPUS.encode(CORPUS.vocabulary, unknown=True).words, CORPUS.words)
    assert set(CORPUS.encode(Vocabulary(("plum",)), unknown=True).words.tolist()) == {1}
    assert Corpus.from_texts([""]).encode(Vocabulary(("plum",)), unknown=True).n_tokens == 0


def test_the_symbol_is_no_word():
    with pytest.raises(InputError, match="<unk>"):
        CORPUS.encode(Vocabulary(("rain", UNKNOWN)), unknown=True)
    assert UNKNOWN not in tokens.tokenize("<unk> rain", TextOptions(stop_words="none"))


def test_the_english_list_is_of_words_as_texts_are_cut_into_them():
    words = public("english").words
    assert len(words) == 30_000
    assert words[:3] == ("new", "home", "page")
    assert [word for word in words if tokens.tokenize(word) != [word]] == []


def test_settings_take_the_head_of_a_list(tmp_path):
    assert len(VocabularySettings(mode="public", words="english", max_words=8000).words) == 8000
    (tmp_path / "eng").write_text("rain\nriver\n")
    for name, words in (("english", 5), ("eng", 2)):
        (tmp_path / "run.toml").write_text(
            f'[method.vocabulary]\nmode = "public"\nmax_words = 5\nwords = "{name}"\n[data]\npath = "x.csv"\n'
        )
        assert len(load(tmp_path / "run.toml").method.vocabulary.words) == words


def test_a_list_from_public_documents_has_the_most_frequent_words_first():
    corpus = Corpus.from_texts([*["rain river"] * 3, *["rain bridge"] * 2, "rain lindqvist"])
    assert word_list(corpus, min_documents=2, max_share=1.0).words == ("rain", "river", "bridge")
    assert word_list(corpus, max_words=1, min_documents=2, max_share=1.0).words == ("rain",)
    assert word_list(corpus, min_documents=2).words == ("river", "bridge")


def test_a_command_writes_such_a_list(tertulia, tmp_path):
    (tmp_path / "notes.csv").write_text("text\n" + "rain river\n" * 6 + "bridge held\n" * 6 + "rare\n")
    code, _, err = tertulia("words", tmp_path / "notes.csv", "-o", tmp_path / "words.txt", "--max-words", 3)
    assert code == 0, err
    assert public(tmp_path / "words.txt").words == ("bridge", "held", "rain")
    assert "3 words written" in err
