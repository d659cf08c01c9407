"""Warnings about documents: another language, and copies."""

import warnings

import numpy as np
import pytest

import tertulia as tt
from tertulia.corpus.advice import CopiesWarning, LanguageWarning, warn_of_copies

GERMAN = """Der Regen fiel in der Nacht und die Flüsse stiegen, aber die Brücken über den Strom hielten noch. Wir haben
das nicht erwartet, denn es war ein sehr trockener Sommer gewesen. Als die Leute am Morgen aus ihren Häusern kamen,
sahen sie, dass das Wasser auf den Wiesen stand und dass keine Straße mehr frei war."""
ENGLISH = """The rain fell at night and the rivers rose, but the bridges over the stream still held. We had not expected
that, because it had been a very dry summer. When the people came out of their houses in the morning, they saw that the
water stood on the meadows and that no road was open any more."""
CHINESE = "夜里下了雨河水上涨了。但是桥梁仍然没有倒塌。人们早上从家里出来看见草地上都是水。没有一条路可以走。"


def test_a_forgotten_language_is_named():
    with pytest.warns(LanguageWarning, match=r"^\d\d% of tokens are German stop words: language = 'de'\?$"):
        tt.Corpus.from_texts([GERMAN] * 20)
    with pytest.warns(LanguageWarning, match="English stop words: language = 'en'"):
        tt.Corpus.from_texts([ENGLISH] * 20, options=tt.TextOptions(language="de"))
    with pytest.warns(LanguageWarning, match=r"script without spaces between words: language = 'zh'\?"):
        tt.Corpus.from_texts([CHINESE] * 150)


def test_the_right_language_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tt.Corpus.from_texts([ENGLISH] * 20)
        tt.Corpus.from_texts([GERMAN] * 20, options=tt.TextOptions(language="de"))
        tt.Corpus.from_texts([CHINESE] * 150, options=tt.TextOptions(language="zh"))
        tt.Corpus.from_texts([GERMAN] * 20, options=tt.TextOptions(stop_words="none"))  # the user chose to keep them
        tt.Corpus.from_texts([GERMAN])  # too few tokens to judge


def test_texts_that_are_read_from_files_are_looked_at(tmp_path):
    (tmp_path / "notes.txt").write_text(GERMAN * 20)
    with pytest.warns(LanguageWarning, match="language = 'de'"):
        tt.read(str(tmp_path / "notes.txt"))


def documents(n, copies, length=12):
    """Make n documents, of which some have the first one's words in another order."""
    random = np.random.default_rng(0)
    rows = random.integers(0, 500, (n, length))
    rows[n - copies :] = rows[0, ::-1]
    return tt.Corpus.from_texts([" ".join(f"word{v}x" for v in row) for row in rows])


def test_copies_are_counted():
    with pytest.warns(CopiesWarning, match="25% of documents have exactly the words of another one"):
        warn_of_copies(documents(1200, 300))
    with pytest.warns(CopiesWarning):
        tt.LDA(topics=2, sweeps=1).fit(documents(1200, 300))
    with pytest.warns(CopiesWarning):
        tt.Consensus(topics=2, rounds=1, sweeps=1).fit({"a": documents(1200, 300), "b": documents(50, 0)})


def test_few_copies_few_documents_and_short_ones_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_copies(documents(1200, 100))
        warn_of_copies(documents(900, 300))
        warn_of_copies(documents(1200, 300, length=6))
