"""Every measure against a slow version of its definition, written with sets and loops."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.corpus import Corpus, TextOptions
from tertulia.errors import ConfigError, InputError
from tertulia.metrics import _windows, c_v, npmi, topic_coherence, topic_diversity, umass, umass_gensim

EPSILON = 1e-12
LETTERS = "abcdefgh"
plain = TextOptions(min_length=1, stop_words="none")
documents = st.lists(st.lists(st.sampled_from(LETTERS), max_size=20), min_size=1, max_size=8)
topics = st.lists(st.permutations(LETTERS).map(lambda word: list(word[:4])), min_size=1, max_size=3)


def corpus_of(lists):
    return Corpus.from_texts([" ".join(words) for words in lists], options=plain)


def virtual(lists, window):
    """Return the virtual documents as sets of words."""
    if window is None:
        return [set(words) for words in lists]
    return [set(words[i : i + window]) for words in lists for i in range(max(len(words) - window + 1, 1))]


def p(sets, *words):
    return sum(set(words) <= part for part in sets) / len(sets)


def literal_npmi_pair(sets, a, b):
    if p(sets, a) * p(sets, b) == 0:
        return 0.0
    joint = p(sets, a, b) + EPSILON
    return math.log(joint / (p(sets, a) * p(sets, b))) / -math.log(joint)


def literal_npmi(topic, lists, window):
    sets = virtual(lists, window)
    return np.mean([literal_npmi_pair(sets, a, b) for a, b in combinations(topic, 2)])


def literal_umass(topic, lists):
    sets, total = virtual(lists, None), 0.0
    for better, worse in combinations(topic, 2):
        d_i, d_ij = (sum({*words} <= part for part in sets) for words in ((better,), (better, worse)))
        total += math.log((d_ij + 1) / d_i) if d_i else 0.0
    return total


def literal_umass_gensim(topic, lists):
    sets = virtual(lists, None)
    return np.mean(
        [math.log((p(sets, a, b) + EPSILON) / p(sets, a)) if p(sets, a) else 0.0 for a, b in combinations(topic, 2)]
    )


def literal_c_v(topic, lists, window):
    sets = virtual(lists, window)
    vectors = np.array([[literal_npmi_pair(sets, a, b) for b in topic] for a in topic])
    whole, cosines = vectors.sum(axis=0), []
    for vector in vectors:
        size = np.linalg.norm(vector) * np.linalg.norm(whole)
        cosines.append(vector @ whole / size if size else 0.0)
    return np.mean(cosines)


@settings(max_examples=60)
@given(documents, topics, st.sampled_from([1, 2, 5, 110, None]))
def test_each_measure_equals_its_definition(lists, tops, window):
    corpus = corpus_of(lists)
    checks = (
        (npmi(tops, corpus, window=window), [literal_npmi(topic, lists, window) for topic in tops]),
        (umass(tops, corpus), [literal_umass(topic, lists) for topic in tops]),
        (umass_gensim(tops, corpus), [literal_umass_gensim(topic, lists) for topic in tops]),
        (c_v(tops, corpus, window=window), [literal_c_v(topic, lists, window) for topic in tops]),
    )
    for found, expected in checks:
        np.testing.assert_allclose(found.per_topic, expected, atol=1e-6)
        assert found.mean == pytest.approx(np.mean(expected), abs=1e-6)
        assert found.absent == sum(word not in set().union(*lists) for topic in tops for word in topic)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=20), st.integers(1, 120), st.integers(0, 2**32 - 1))
def test_counts_are_right_across_blocks(lengths, window, seed):
    rng = np.random.default_rng(seed)
    lists = [rng.integers(0, 6, size=n).tolist() for n in lengths]
    words = np.array([w for part in lists for w in part], np.int32)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    slot_of, pairs = np.array([0, 1, 2, 3, 3, 3], np.uint32), np.array([[0, 1], [2, 0], [1, 1]], np.int32)
    total, single, joint = _windows.count(words, offsets, slot_of, 3, pairs, window, 256)  # blocks of 256 bits
    sets = virtual(lists, window)
    assert total == len(sets)
    assert single.tolist() == [sum(w in part for part in sets) for w in range(3)]
    assert joint.tolist() == [sum({a, b} <= part for part in sets) for a, b in pairs.tolist()]


def test_hand_made_values():
    corpus = corpus_of([list("ab"), list("ab"), list("a"), list("c")])
    assert umass([["a", "b"]], corpus).per_topic == pytest.approx([math.log(3 / 3)])
    assert umass([["b", "a"]], corpus).per_topic == pytest.approx([math.log(3 / 2)])  # the better word divides
    assert umass_gensim([["a", "c"]], corpus).per_topic == pytest.approx([math.log(1e-12 / 0.75)])
    assert npmi([["a", "b"]], corpus).per_topic == pytest.approx([math.log(0.5 / (0.75 * 0.5)) / -math.log(0.5)])


def test_a_word_that_occurs_twice_in_a_window_stays_when_its_first_leaves():
    corpus = corpus_of([list("abxax")])  # windows abx, bxa, xax
    joint, single_a, single_b = 2 / 3, 1.0, 2 / 3
    expected = math.log(joint / (single_a * single_b)) / -math.log(joint)
    assert npmi([["a", "b"]], corpus, window=3).per_topic == pytest.approx([expected], abs=1e-9)


def test_topics_may_be_matrices_lists_of_different_lengths_or_models():
    corpus = corpus_of([list("abc"), list("abd"), list("acd"), list("b")])
    matrix = np.array([[4.0, 3.0, 2.0, 0.0], [0.0, 0.0, 3.0, 4.0]])

    class Model:
        def top_words(self, n=10):
            return [["a", "b", "c"][:n], ["d", "c", "a"][:n]]

    for measure in ("npmi", "umass", "umass_gensim", "c_v"):
        by_list = topic_coherence([["a", "b", "c"], ["d", "c", "a"]], corpus, measure)
        for form in (matrix, Model()):
            np.testing.assert_array_equal(topic_coherence(form, corpus, measure, top=3).per_topic, by_list.per_topic)
        ragged = topic_coherence([["a", "b", "c"], ["d", "c"]], corpus, measure)
        alone = topic_coherence([["d", "c"]], corpus, measure)
        np.testing.assert_allclose(ragged.per_topic, [by_list.per_topic[0], alone.per_topic[0]], atol=1e-12)


def test_topic_diversity_is_the_share_of_unique_top_words():
    assert topic_diversity([list("abcd"), list("cdef")]) == 6 / 8
    assert topic_diversity([list("abcd"), list("cdef")], top=2) == 1.0
    assert topic_diversity(np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), top=2) == 0.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda corpus: npmi([["a"]], corpus), "topic 0 has 1 words"),
        (lambda corpus: npmi([["a", "b", "a"]], corpus), "topic 0 lists 'a' twice"),
        (lambda corpus: npmi(["ab"], corpus), "topic 0 is not a list of words"),
        (lambda corpus: npmi([], corpus), "no topic"),
        (lambda corpus: npmi([["a", "b"]], corpus, top=1), "2 top words"),
        (lambda corpus: c_v([["a", "b"]], corpus, window=0), "window = 0"),
        (lambda corpus: npmi(np.ones((2, 5)), corpus), "topic_word has 5 words, the vocabulary 2"),
        (lambda corpus: npmi([["a", "b"]], corpus.select([])), "reference corpus is empty"),
        (lambda corpus: topic_diversity([["a"]], top=0), "top = 0"),
        (lambda corpus: topic_diversity([[]]), "hold no word"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call(corpus_of([["a", "b"]]))


def test_an_unknown_measure_is_refused_with_the_known_names():
    with pytest.raises(ConfigError, match="'pmi' is unknown: write one of npmi, umass, umass_gensim, c_v"):
        topic_coherence([["a", "b"]], corpus_of([["a"]]), "pmi")
