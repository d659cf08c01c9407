"""Attacks that read words and documents: they succeed where nothing is promised, and guess where something is.

Each guess is about 100 things, half of which are true, for each of three seeds: its standard error is 3 to 4 points.
"""

import numpy as np
import pytest

from helpers import gradients, membership, reading, steering, steering_private

SEEDS = (0, 1, 2)
GUESS, FAR = 0.5, 0.15  # four standard errors


def mean(attack, mode):
    return np.mean([attack(mode, seed) for seed in SEEDS])


def test_normalised_topics_show_exact_counts_and_those_from_reports_do_not():
    assert mean(reading.normalisation, "paper") == 1.0
    assert abs(mean(reading.normalisation, "sound") - 0.25) < FAR


@pytest.mark.parametrize("mode", ["clear", "paper"])
def test_lone_words_and_planted_documents_are_found_without_noise(mode):
    assert mean(reading.lone, mode) == 1.0
    assert mean(reading.planted, mode) == 1.0


@pytest.mark.parametrize("mode", ["sound", "doc"])
def test_lone_words_are_guessed_under_noise(mode):
    assert abs(mean(reading.lone, mode) - GUESS) < FAR


def test_planted_documents_are_guessed_in_topics_that_are_private_for_documents():
    assert abs(mean(reading.planted, "doc") - GUESS) < FAR


def test_reports_that_are_drawn_again_in_each_round_are_averaged():
    assert mean(reading.averaged, "paper") > 0.75
    assert abs(mean(reading.averaged, "sound") - GUESS) < FAR


@pytest.mark.parametrize("parties", [1, gradients.PARTIES])
def test_documents_are_read_off_gradients_also_summed_under_masks(parties):
    assert gradients.read_off("clear", parties) == 1.0
    assert gradients.read_off("doc", parties) == 0.0


def test_made_up_topics_read_documents_of_sums_without_noise():
    corpora = steering.corpora_of_notes()
    words = tuple(sorted({word for corpus in corpora.values() for word in corpus.vocabulary.words}))
    found, guess = steering_private.words_read("clear", corpora, words)
    assert found > 4 * guess
    found, guess = steering_private.words_read("doc", corpora, words)
    assert abs(found - guess) < 0.05


@pytest.mark.parametrize(("mode", "members_show"), [("clear", True), ("sound", False), ("doc", False)])
def test_members_are_recognised_by_shadow_models(mode, members_show):
    found = membership.attacked(mode, documents=160, models=10)
    assert (found.accuracy > 0.7) if members_show else abs(found.accuracy - 0.5) < 0.06
