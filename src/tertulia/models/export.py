"""Export of models to other libraries: gensim and pyLDAvis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia.corpus.inputs import Documents
from tertulia.errors import InputError

if TYPE_CHECKING:
    from tertulia.models.topics import Topics

_CERTAINTY = 1e10  # pseudo-counts per topic: gensim stores counts; these give our topics to 7 digits


def to_gensim(model: Topics) -> Any:
    """Build the LdaModel whose topics, priors and dictionary are the model's."""
    try:
        from gensim.corpora import Dictionary
        from gensim.models import LdaModel
    except ModuleNotFoundError as error:
        raise InputError("to_gensim needs gensim: pip install 'tertulia[bench]'") from error
    dictionary = Dictionary()
    dictionary.token2id = dict(model.vocabulary.index)
    dictionary.id2token = dict(enumerate(model.vocabulary.words))
    eta = max(model.beta, 1e-12)  # gensim takes logarithms of it
    lda = LdaModel(id2word=dictionary, num_topics=model.n_topics, alpha=model.alpha, eta=eta, dtype=np.float64)
    lda.state.sstats[:] = model.topic_word * _CERTAINTY
    lda.sync_state()
    return lda


def to_pyldavis(model: Topics, documents: Documents) -> dict[str, Any]:
    """Make the arguments of `pyLDAvis.prepare`, without documents that have no known word, which it cannot draw."""
    corpus = model.encode(documents)
    corpus = corpus.select(corpus.lengths > 0)
    if corpus.n_documents == 0:
        raise InputError("no document holds a word that the model knows: there is nothing to draw")
    topic_word = model.topic_word.astype(np.float64)
    return {
        "topic_term_dists": topic_word / topic_word.sum(axis=1, keepdims=True),
        "doc_topic_dists": model.transform(corpus),
        "doc_lengths": corpus.lengths,
        "vocab": list(model.vocabulary.words),
        "term_frequency": np.bincount(corpus.words, minlength=len(model.vocabulary)),
    }
