"""Rescoring of n-best lists by topics: (30) and (31) by hand, tuning, controls and comparison."""

import math
from itertools import chain

import numpy as np
import pytest

from tertulia.applications import speech
from tertulia.applications.speech import Grid, Hypothesis, NGrams, Utterance, Weights
from tertulia.applications.speech.rescoring import prepare, topic_shares
from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.models import Topics

WORDS = ("bonds", "market", "bones", "surgery")
LOG_LM = math.log(0.001)
FINANCE, MEDICINE = "the market for bonds", "the surgery of bones"


@pytest.fixture
def topics():
    return Topics(
        np.array([[0.6, 0.3, 0.08, 0.02], [0.05, 0.05, 0.5, 0.4]]), Vocabulary(WORDS), alpha=np.array([0.1, 0.3])
    )


def utterance(name="u", document="", reference=None, lm=LOG_LM):
    """Make an utterance whose acoustic score favours "bones" over "bonds"; the language model scores them equally."""
    readings = [("sell", "bones"), ("sell", "bonds")]
    hypotheses = tuple(Hypothesis(words, -10.0 - 0.1 * i, (math.log(0.01), lm)) for i, words in enumerate(readings))
    return Utterance(name, hypotheses, document, reference)


def call(name, subject, said):
    """Make two utterances of a document: one names the subject, the other is ambiguous."""
    clear = Utterance(
        f"{name}-0", (Hypothesis(tuple(subject.split()), -5.0, (-4.0,) * 4),), name, tuple(subject.split())
    )
    return [clear, utterance(f"{name}-1", name, ("sell", said))]


def test_rescoring_gives_what_31_gives_by_hand(topics):
    weights = Weights(mix=0.25, lm_weight=2.0, penalty=0.5, known_share=0.4)
    (theta,) = topics.transform([FINANCE])
    expected = {}
    for word, acoustic in (("bones", -10.0), ("bonds", -10.1)):
        p_topics = theta @ topics.topic_word[:, WORDS.index(word)]  # (30)
        mixed = 0.25 * 0.4 * p_topics + 0.75 * 0.001  # (31)
        expected[word] = acoustic + 2.0 * (math.log(0.01) + math.log(mixed) + 2 * 0.5)  # "sell" is not known
    assert expected["bonds"] > expected["bones"]
    (choice,) = speech.rescore([utterance()], topics, weights, context=[FINANCE])
    assert choice.words == ("sell", "bonds")
    assert choice.rank == 1
    assert choice.score == pytest.approx(expected["bonds"], abs=1e-12)


def test_the_context_decides(topics):
    found = speech.rescore([utterance(), utterance()], topics, context=[FINANCE, MEDICINE])
    assert [choice.words[1] for choice in found] == ["bonds", "bones"]


def test_lambda_0_is_the_language_model_alone(topics):
    several = [utterance(lm=-3.0), utterance(lm=-9.0)]
    with_topics = speech.rescore(several, topics, Weights(0.0, 3.0), context=[FINANCE, FINANCE])
    assert with_topics == speech.rescore(several, None, Weights(0.0, 3.0))
    assert [choice.rank for choice in with_topics] == [0, 0]


def test_lambda_1_leaves_known_words_to_the_topics(topics):
    weights = Weights(1.0, known_share=1.0)
    likely, unlikely = (
        speech.rescore([utterance(lm=lm)], topics, weights, context=[FINANCE])[0].score for lm in (-1.0, -50.0)
    )
    assert likely == unlikely  # P_LM of "bonds" counts no more
    (theta,) = topics.transform([FINANCE])
    assert likely == pytest.approx(-10.1 + math.log(0.01) + math.log(theta @ topics.topic_word[:, 0]))


def test_words_outside_the_vocabulary_keep_the_language_model(topics):
    unknown = Utterance("u", (Hypothesis(("of", "the"), -1.0, (-2.0, -3.0, -0.5)),))  # and the sentence's end
    for mix in (0.0, 0.3, 1.0):
        (choice,) = speech.rescore([unknown], topics, Weights(mix, 2.0), context=[FINANCE])
        assert choice.score == pytest.approx(-1.0 + 2.0 * -5.5)


def test_probabilities_add_up_to_one(topics):
    """With the share that the language model gives to the topics' words, (31) is a distribution."""
    sentence = (*WORDS, "the", "of")
    p_lm = np.array([0.1, 0.1, 0.05, 0.05, 0.5, 0.2])
    single = [Utterance(w, (Hypothesis((w,), 0.0, (math.log(p),)),)) for w, p in zip(sentence, p_lm, strict=True)]
    scores = prepare(single, topics, [FINANCE] * 6).scores(Weights(0.4, known_share=0.3))
    assert np.exp(scores).sum() == pytest.approx(1.0)


def test_known_share_is_that_of_the_first_pass(topics):
    assert prepare([utterance(), utterance()], topics, [FINANCE] * 2).known_share == 0.5


def test_an_empty_context_gets_the_prior(topics):
    np.testing.assert_allclose(topic_shares(topics, ["", "zebra"], 2), [[0.25, 0.75]] * 2)
    assert speech.rescore([utterance()], topics)[0].words == ("sell", "bones")  # the prior favours medicine


def test_contexts_are_the_other_utterances_of_a_document():
    several = [*call("a", FINANCE, "bonds"), *call("b", MEDICINE, "bones"), utterance("alone")]
    assert speech.contexts(several) == ["sell bones", FINANCE, "sell bones", MEDICINE, ""]
    assert speech.contexts(several, window=1) == ["", FINANCE, "", MEDICINE, ""]
    assert speech.contexts(several, window=0) == [""] * 5


def test_wrong_contexts_are_another_documents():
    several = [*call("a", FINANCE, "bonds"), *call("b", MEDICINE, "bones")]
    wrong = speech.wrong_contexts(several)
    assert [MEDICINE in context for context in wrong] == [True, True, False, False]
    with pytest.raises(InputError, match="same one"):
        speech.wrong_contexts(several, shift=2)


def test_tuning_finds_the_weights_that_work_and_the_smallest_of_equal_ones(topics):
    pytest.importorskip("jiwer")
    heldout = [*call("a", FINANCE, "bonds"), *call("b", MEDICINE, "bones")]
    weights = speech.tune(heldout, topics, grid=Grid((0.0, 0.05, 0.5), (1.0,), (0.0,)))
    assert weights.mix == 0.05  # 0 gets "bonds" wrong, 0.05 and 0.5 get all right
    assert speech.tune(heldout, None, grid=Grid((0.0, 0.5), (1.0,), (0.0,))).mix == 0.0
    assert speech.tune(heldout[1:], topics) == speech.tune(heldout[1:], topics)


def test_comparison_shows_controls_beside_topics(topics):
    pytest.importorskip("jiwer")
    calls = [call(f"{i}", *((FINANCE, "bonds") if i % 2 else (MEDICINE, "bones"))) for i in range(12)]
    heldout, test = [*chain(*calls[:4])], [*chain(*calls[4:])]
    control = speech.unigram(["bonds market bonds", "bones"], topics)
    np.testing.assert_allclose(control.topic_word, [[0.5, 0.25, 0.25, 0.0]], atol=0.01)
    found = speech.compare({"ours": topics}, heldout, test, control=control)
    assert list(found) == ["none", "unigram_control", "wrong_topic_control", "ours"]
    assert found["ours"].wer == (0.0, 0.0, 0.0)
    assert found["none"].wer.mean == pytest.approx(4 / 48)  # every "bonds"
    assert found["none"].wer.low < 4 / 48 < found["none"].wer.high
    assert found["ours"].difference.high < 0
    assert found["none"].difference == (0.0, 0.0, 0.0)
    assert found["wrong_topic_control"].wer.mean >= found["none"].wer.mean


def test_an_arpa_model_can_replace_the_decoders(topics):
    model = NGrams.train([["sell", "bonds"], ["sell", "bonds"]], order=2)
    bare = Utterance("u", tuple(Hypothesis(h.words, h.acoustic) for h in utterance().hypotheses))
    with pytest.raises(InputError, match="with_language"):
        speech.rescore([bare], topics)
    (found,) = speech.with_language([bare], model)
    assert found.hypotheses[1].language == model.log_probs(("sell", "bonds"))
    assert speech.rescore([found], None, Weights(0.0))[0].words == ("sell", "bonds")


def test_clear_errors(topics):
    with pytest.raises(InputError, match="lambda is a share"):
        Weights(1.5)
    with pytest.raises(InputError, match="at least one"):
        speech.rescore([], topics)
    with pytest.raises(InputError, match="2 contexts for 1"):
        speech.rescore([utterance()], topics, context=["", ""])
    with pytest.raises(InputError, match="no reference"):
        speech.tune([utterance()], topics)


def test_heldout_utterances_choose_among_several_models(topics):
    pytest.importorskip("jiwer")
    calls = [call(f"{i}", *((FINANCE, "bonds") if i % 2 else (MEDICINE, "bones"))) for i in range(8)]
    useless = Topics(np.full((2, 4), 0.25), Vocabulary(WORDS))
    heldout, test = [*chain(*calls[:4])], [*chain(*calls[4:])]
    control = speech.unigram(["bonds"], topics)
    found = speech.compare({"ours": [useless, topics]}, heldout, test, control=control, wrong={"two": 2})
    assert found["ours"].topics is topics
    assert list(found) == ["none", "unigram_control", "two", "ours"]


def test_the_first_of_equal_hypotheses_wins():
    same = Utterance("u", tuple(Hypothesis((word,), -1.0, (-1.0,)) for word in "abc"))
    louder = Utterance("v", (Hypothesis(("a",), -2.0, (-1.0,)), Hypothesis(("b",), -1.0, (-1.0,))))
    assert [choice.rank for choice in speech.rescore([same, louder, same], None)] == [0, 1, 0]
