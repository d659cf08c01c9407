import math

import numpy as np
import pytest

from tertulia.corpus import Corpus, TextOptions
from tertulia.errors import ConfigError, InputError
from tertulia.kernels.lda import fold_in
from tertulia.metrics import Completion, completion, perplexity_plugin, unigram

plain = TextOptions(min_length=1, stop_words="none")
PHI = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])


def corpus_of(*texts):
    """Make a corpus with the vocabulary a, b, c in this order."""
    return Corpus.from_texts(["a b c", *texts], options=plain).select(np.arange(1, len(texts) + 1))


def literal_completion(phi, alpha, corpus):
    """Fold in on the first half of each document, score the second, one token at a time."""
    total = 0.0
    for start, end in zip(corpus.documents[:-1], corpus.documents[1:], strict=True):
        tokens = corpus.words[start:end]
        if len(tokens) >= 2:
            half = len(tokens) // 2
            theta = fold_in.theta(tokens[:half], np.array([0, half]), phi, alpha)[0]
            total += sum(math.log(theta @ phi[:, w]) for w in tokens[half:])
    return total


def test_completion_folds_in_the_first_half_and_scores_the_second():
    corpus = corpus_of("a a b c c", "c", "", "b c")
    found = completion(PHI, 0.1, corpus)
    assert found.log_likelihood == pytest.approx(literal_completion(PHI, 0.1, corpus), rel=1e-9)
    assert (found.tokens, found.documents, found.skipped) == (4, 2, 2)
    assert found.perplexity == pytest.approx(math.exp(-found.log_likelihood / 4))


def test_with_one_topic_the_value_is_exact():
    found = completion(np.array([[0.5, 0.3, 0.2]]), 0.1, corpus_of("a b b", "c a"))
    assert found.log_likelihood == pytest.approx(math.log(0.3 * 0.3 * 0.5))


def test_the_second_half_never_leaks_into_theta():
    one, other = completion(PHI, 0.1, corpus_of("a a c c")), completion(PHI, 0.1, corpus_of("c c c c"))
    assert one.perplexity > 2 * other.perplexity


def test_a_foreign_matrix_is_scored_by_the_same_estimator_whatever_its_scale():
    corpus = corpus_of("a a b c c", "b c a a")
    scale = np.array([[17.0], [0.5]])  # as in scikit-learn's components_, rows have any sum
    for foreign in (PHI * scale, (PHI * scale).astype(np.float32)):
        found = completion(foreign, np.array([0.1, 0.1]), corpus)
        assert found.log_likelihood == pytest.approx(completion(PHI, 0.1, corpus).log_likelihood, rel=1e-5)


def test_smoothing_mixes_topics_with_the_uniform_distribution():
    phi, corpus = np.array([[0.5, 0.5, 0.0]]), corpus_of("a c", "a b")
    assert completion(phi, 0.1, corpus).perplexity == math.inf
    found = completion(phi, 0.1, corpus, smoothing=0.3)
    assert found.log_likelihood == pytest.approx(math.log(0.1) + math.log(0.35 + 0.1))
    assert completion(phi, 0.1, corpus, smoothing=1.0).perplexity == pytest.approx(3.0)


def test_completions_of_parties_add_up_to_that_of_all():
    everyone = corpus_of("a a b c c", "b c a a", "c c")
    parts = [completion(PHI, 0.1, everyone.select([k])) for k in range(3)]
    total = sum(parts[1:], parts[0])
    assert total.log_likelihood == pytest.approx(completion(PHI, 0.1, everyone).log_likelihood)
    assert total.tokens == 6
    assert Completion(-1e6, 10, 1, 0).perplexity == math.inf


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(1)
    corpus = corpus_of(*(" ".join(rng.choice(list("abc"), size=9)) for _ in range(50)))
    assert completion(PHI, 0.1, corpus, threads=3) == completion(PHI, 0.1, corpus)


def test_plugin_perplexity_is_the_papers_formula():
    corpus, theta = corpus_of("a c", "", "b"), np.array([[0.3, 0.7], [0.5, 0.5], [1.0, 0.0]])
    likelihood = (0.3 * 0.5 + 0.7 * 0.1) * (0.3 * 0.2 + 0.7 * 0.8) * 0.3
    assert perplexity_plugin(PHI, theta, corpus) == pytest.approx(likelihood ** (-1 / 3))


def test_unigram_is_the_distribution_of_words():
    np.testing.assert_allclose(unigram(corpus_of("a a b")), [[3 / 6, 2 / 6, 1 / 6]])
    np.testing.assert_allclose(unigram(corpus_of("a a b"), pseudo_count=0.0), [[2 / 3, 1 / 3, 0.0]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda corpus: completion(np.ones((2, 5)), 0.1, corpus),
            "5 words, the corpus's vocabulary 3: use corpus.encode",
        ),
        (lambda corpus: completion(PHI * [[1], [0]], 0.1, corpus), "topic 1 of topic_word has no mass"),
        (lambda corpus: completion(PHI - 0.2, 0.1, corpus), "negative"),
        (lambda corpus: completion(PHI, 0.1, corpus_of("a", "")), "none of 2 documents has 2 tokens"),
        (lambda corpus: perplexity_plugin(PHI, np.ones((1, 3)), corpus), r"theta has shape \(1, 3\)"),
        (lambda corpus: perplexity_plugin(PHI, np.ones((1, 2)), corpus), "sum 1"),
        (lambda corpus: perplexity_plugin(PHI, np.full((1, 2), 0.5), corpus_of("")), "nothing to score"),
        (lambda corpus: unigram(corpus, pseudo_count=-1.0), "pseudo_count = -1.0"),
        (lambda corpus: unigram(corpus_of(""), pseudo_count=0.0), "with 0 tokens"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call(corpus_of("a b c c"))


def test_smoothing_is_a_share():
    with pytest.raises(ConfigError, match=r"smoothing = 1.5: it is a share"):
        completion(PHI, 0.1, corpus_of("a b"), smoothing=1.5)
