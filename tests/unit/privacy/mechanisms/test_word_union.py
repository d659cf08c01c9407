"""Words chosen under noise: one document moves the weights by 1 at most, and what the choice costs."""

import math
from functools import cache
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.corpus import Corpus
from tertulia.privacy.accounting import cost
from tertulia.privacy.adjacency import Bounds
from tertulia.privacy.mechanisms import Adjacency, Unit, word_union
from tertulia.privacy.mechanisms.word_union import BITS, WordUnion, word_weights
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.releases import Release

ADD_REMOVE, SUBSTITUTE = Adjacency.ADD_REMOVE, Adjacency.SUBSTITUTE
DOCUMENTS = st.lists(st.lists(st.sampled_from("abcdefghijklmnop"), max_size=12), max_size=8)
CHOICE = WordUnion("words", epsilon=3.0, delta=1e-6, words_per_document=100)
LARGE = WordUnion("words", epsilon=1.0, delta=0.1, words_per_document=4)  # of which the chances are easily seen


def weights_of(documents, most) -> dict[str, int]:
    """The weight of each word, as a party computes it."""
    corpus = Corpus.from_texts([list(words) for words in documents])
    found = word_weights(corpus.words, corpus.documents, len(corpus.vocabulary), most)
    return dict(zip(corpus.vocabulary.words, found.tolist(), strict=True))


def looped_weights(documents, most) -> dict[str, int]:
    """The same, document by document and word by word."""
    found = dict.fromkeys((word for words in documents for word in words), 0)
    for words in documents:
        counted = list(dict.fromkeys(words))[:most]
        for word in counted:
            found[word] += math.floor(2**BITS / math.sqrt(len(counted)))
    return found


@given(DOCUMENTS, st.lists(st.sampled_from("abcdefghijklmnop"), max_size=30), st.integers(0, 8), st.integers(1, 5))
def test_a_document_moves_the_weights_by_one_at_most(documents, added, place, most):
    """Wherever it stands: a document that comes first gives other numbers to all words."""
    before, after = weights_of(documents, most), weights_of([*documents[:place], added, *documents[place:]], most)
    moved = [after.get(word, 0) - before.get(word, 0) for word in {*before, *after}]
    assert sum(step**2 for step in moved) <= 4**BITS


@given(DOCUMENTS, st.integers(1, 20), st.integers(1, 60))
def test_weights_are_those_of_a_loop_over_documents(documents, most, cells):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_union, "_CELLS", cells)  # a few documents at a time, or all
        assert weights_of(documents, most) == looped_weights(documents, most)


def test_the_first_words_of_a_document_count():
    assert weights_of(["banana", "abc"], 3) == {"b": 2 * 605395, "a": 2 * 605395, "n": 605395, "c": 605395}
    assert weights_of(["cab", "aab"], 2) == {"c": 741455, "a": 2 * 741455, "b": 741455}
    assert not weights_of([], 3)
    assert not weights_of(["", ""], 3)


# --- what it costs ----------------------------------------------------------------------------------------------------


def releases(*mechanisms) -> list[Release]:
    occasion = {"party": "north", "round": 0, "step": "m:s", "verb": "each", "message_hash": "", "x": np.zeros(3, int)}
    return [Release.of(mechanism, id=str(i), **occasion) for i, mechanism in enumerate(mechanisms)]


def gaussian_delta(epsilon: float, mu: float) -> float:
    normal = NormalDist()
    return normal.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * normal.cdf(-epsilon / mu - mu / 2)


def test_a_document_is_charged_the_epsilon_that_is_asked_for():
    found = cost(releases(CHOICE), Unit.DOCUMENT, ADD_REMOVE, 1e-6)
    assert found.epsilon == pytest.approx(3.0, abs=2e-3)
    assert (found.delta, found.tight) == (1e-6, False)
    more = cost(releases(CHOICE), Unit.DOCUMENT, ADD_REMOVE, 1e-3)
    assert gaussian_delta(more.epsilon, 1 / CHOICE.sigma) == pytest.approx(1e-3 - 5e-7, rel=5e-3)


def test_two_choices_add_up_their_noise_and_their_chances():
    found = cost(releases(CHOICE, CHOICE), Unit.DOCUMENT, ADD_REMOVE, 1e-5)
    assert gaussian_delta(found.epsilon, math.sqrt(2) / CHOICE.sigma) == pytest.approx(1e-5 - 2 * 5e-7, rel=5e-3)


@pytest.mark.parametrize(("copies", "delta"), [(1, 5e-7), (1, 1e-7), (1, 0.0), (2, 1e-6), (4, 2e-6)])
def test_a_delta_below_the_chance_of_a_lone_word_gives_no_guarantee(copies, delta):
    found = cost(releases(*[CHOICE] * copies), Unit.DOCUMENT, ADD_REMOVE, delta)
    assert found.epsilon == math.inf
    assert found.assumptions[-1] == f"mechanisms fail with probability {copies * 5e-7:.2g} in all"


def test_users_of_several_documents_get_no_guarantee():
    """Two documents of a user may share a word that is in no other: the threshold is for one."""
    one, three = (cost(releases(CHOICE), Unit.USER, ADD_REMOVE, 1e-6, Bounds(None, n)) for n in (1, 3))
    assert one.epsilon == pytest.approx(3.0, abs=2e-3)
    assert three.epsilon == math.inf


@pytest.mark.parametrize("asked", [(Unit.DOCUMENT, SUBSTITUTE), (Unit.TOKEN, SUBSTITUTE)])
def test_a_document_that_becomes_another_moves_twice_as_far_and_fails_once(asked):
    found = cost(releases(CHOICE), *asked, 1e-6)
    assert gaussian_delta(found.epsilon, 2 / CHOICE.sigma) == pytest.approx(5e-7, rel=5e-3)


# --- exactly, for a few words -----------------------------------------------------------------------------------------


@cache
def law(documents, words: str) -> np.ndarray:
    """The probability of every set of words that may be named [2^n]; words of no document never are."""
    weights = looped_weights(documents, 4)
    least = math.ceil(LARGE.threshold * 2**BITS) / 2**BITS
    passes = [
        1 - NormalDist(weights[word] / 2**BITS, LARGE.sigma).cdf(least) if word in weights else 0.0 for word in words
    ]
    outcomes = product((0, 1), repeat=len(words))
    return np.array(
        [math.prod(p if named else 1 - p for p, named in zip(passes, one, strict=True)) for one in outcomes]
    )


def delta_between(one, two, epsilon: float) -> float:
    """The least delta for which the choice among these documents, and among those, is (epsilon, delta)-private."""
    words = "".join(sorted({*"".join(one), *"".join(two)}))
    p, q = (law(documents, words) for documents in (one, two))
    return max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))


BASE = ("ab", "abc", "a", "bd")
ADDED = ("a", "e", "ef", "efgh", "abef", "abcd", "aefgh")


@pytest.mark.parametrize("added", ADDED)
def test_with_and_without_a_document_the_choice_is_as_private_as_charged(added):
    epsilon = cost(releases(LARGE), Unit.DOCUMENT, ADD_REMOVE, 0.1).epsilon
    for base in (BASE, ()):
        assert delta_between(base, (*base, added), epsilon) <= 0.1


@pytest.mark.parametrize("other", ADDED)
def test_with_another_document_the_choice_is_as_private_as_charged(other):
    epsilon = cost(releases(LARGE), Unit.DOCUMENT, SUBSTITUTE, 0.1).epsilon
    for base in (BASE, ()):
        assert max(delta_between((*base, one), (*base, other), epsilon) for one in ADDED) <= 0.1


def test_with_a_lower_threshold_it_would_not_be(monkeypatch):
    epsilon = cost(releases(LARGE), Unit.DOCUMENT, ADD_REMOVE, 0.1).epsilon
    law.cache_clear()
    monkeypatch.setitem(LARGE.__dict__, "threshold", LARGE.threshold - LARGE.sigma)
    assert delta_between(BASE, (*BASE, "efgh"), epsilon) > 0.1
    law.cache_clear()


def test_a_repeat_draws_the_same_noise():
    weights = np.arange(50) * 2**BITS // 2
    key = NoiseKey.fixed(bytes(range(32)))
    one, again, other = (CHOICE.apply(weights, key.stream("run", name, "hash")) for name in ("id", "id", "other"))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert set(np.flatnonzero(one != other)) <= set(range(5, 45))  # near the threshold of 9.2
