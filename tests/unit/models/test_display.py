"""A model as a sequence of topics, in a notebook, and by its measures."""

import re

import numpy as np
import pytest

import tertulia as tt
from tertulia import metrics
from tertulia.models.display import FewDocumentsWarning

MODEL = tt.Topics(
    np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), tt.Vocabulary(("rain", "sun", "money")), weights=np.array([1.0, 3.0])
)
TEXTS = ["rain rain sun rain", "money money sun money", "rain sun rain sun"] * 400


@pytest.mark.filterwarnings("ignore:800 of 1,200 documents hold no word")
def test_a_model_is_a_sequence_of_topics():
    assert len(MODEL) == len(list(MODEL)) == 2
    assert MODEL[1] == MODEL[-1]
    assert (MODEL[1].number, MODEL[1].weight) == (1, 0.75)
    assert [word for word, _ in MODEL[0].words] == MODEL.top_words()[0]
    assert repr(MODEL[0]) == "Topic(0 25.0%: rain sun money)"
    with pytest.raises(IndexError):
        _ = MODEL[2]
    assert [topic.number for topic in tt.LDA(topics=2, sweeps=3).fit(TEXTS)] == [0, 1]


def test_measures_are_those_of_the_metrics():
    corpus = tt.Corpus.from_texts(TEXTS).encode(MODEL.vocabulary)
    assert MODEL.coherence(TEXTS, top=2) == metrics.npmi(MODEL.top_words(2), corpus, top=2).mean
    assert MODEL.perplexity(TEXTS) == metrics.completion(MODEL.topic_word, MODEL.alpha, corpus).perplexity
    assert MODEL.diversity(top=2) == 0.75  # three words in four places
    with pytest.warns(FewDocumentsWarning, match="on 3 documents says more about these"):
        MODEL.perplexity(TEXTS[:3])


def test_a_notebook_shows_a_table_heaviest_first():
    shown = MODEL._repr_html_()
    assert re.findall(r"<tr><td>(\d)</td>", shown) == ["1", "0"]
    assert "75.0%" in shown
    assert "2 topics over 3 words" in shown


def test_hostile_words_are_text():
    words = ("<script>alert(1)</script>", "a\x1b[31mred", "b" * 10_000)
    shown = tt.Topics(np.ones((1, 3)) / 3, tt.Vocabulary(words), provenance={"method": "<b>"})._repr_html_()
    assert "<script" not in shown
    assert "\x1b" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;" in shown
    assert len(shown) < 3_000
