import sys

import numpy as np
import pytest

from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.models import Topics

WORDS = ("rain", "sun", "money", "bank")
PHI = np.array([[0.6, 0.3, 0.1, 0.0], [0.1, 0.0, 0.4, 0.5], [0.25, 0.25, 0.25, 0.25]])
MODEL = Topics(PHI, Vocabulary(WORDS), alpha=np.array([0.1, 0.2, 0.3]), beta=0.02)


def test_gensim_gets_the_same_topics_priors_and_words():
    pytest.importorskip("gensim", reason="gensim comes with the extra 'bench'")
    lda = MODEL.to_gensim()
    np.testing.assert_allclose(lda.get_topics(), PHI, atol=1e-7)
    np.testing.assert_allclose(lda.alpha, MODEL.alpha)
    np.testing.assert_allclose(lda.eta, 0.02)
    assert [word for word, _ in lda.show_topic(1, 2)] == ["bank", "money"]
    bow = lda.id2word.doc2bow(["sun", "rain", "rain"])
    assert lda.get_document_topics(bow, minimum_probability=0.0)[0][1] > 0.7


def test_without_gensim_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.corpora", None)
    with pytest.raises(InputError, match=r"pip install 'tertulia\[bench\]'"):
        MODEL.to_gensim()


def test_pyldavis_gets_distributions_that_fit_together():
    prepared = MODEL.to_pyldavis(["rain rain sun", "quux", "bank money money"])
    assert set(prepared) == {"topic_term_dists", "doc_topic_dists", "doc_lengths", "vocab", "term_frequency"}
    np.testing.assert_allclose(prepared["topic_term_dists"], PHI)
    np.testing.assert_allclose(prepared["doc_topic_dists"].sum(axis=1), 1.0)
    assert prepared["doc_topic_dists"].shape == (2, 3)  # the document without a known word cannot be drawn
    assert prepared["doc_lengths"].tolist() == [3, 3]
    assert prepared["vocab"] == list(WORDS)
    assert prepared["term_frequency"].tolist() == [2, 1, 2, 1]


def test_nothing_to_draw_is_an_error():
    with pytest.raises(InputError, match="nothing to draw"):
        MODEL.to_pyldavis(["quux"])
