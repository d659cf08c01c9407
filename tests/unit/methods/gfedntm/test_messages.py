"""The words that parties are sent: any other value is an error of ours, before any check."""

import dataclasses

import numpy as np
import pytest

from tertulia.errors import FormatError
from tertulia.federation.checks import check_question, word_lists
from tertulia.methods.gfedntm.agreement import count_documents
from tertulia.methods.gfedntm.compression import BLOCK, check_blocks
from tertulia.methods.gfedntm.messages import Agreement, agreement_of, check_known
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.privacy.policy import Policy

WORDS = ("rain", "sun", "öl")
SOUND = agreement_of(GFedNTMSettings(), WORDS)


def test_the_words_come_back():
    SOUND.check()
    assert SOUND.words == WORDS


@pytest.mark.parametrize(
    "changes",
    [
        {"offsets": SOUND.offsets.astype(np.int8)},
        {"offsets": SOUND.offsets.astype(np.float64)},
        {"offsets": SOUND.offsets[::-1].copy()},
        {"offsets": SOUND.offsets[:-1]},
        {"offsets": SOUND.offsets[None]},
        {"offsets": np.zeros(0, np.int64)},
        {"offsets": np.array([0, 4, 3, 9])},
        {"offsets": np.array([0, 4, 2**62, 9])},
        {"text": SOUND.text.astype(np.uint64)},
        {"text": SOUND.text[:-1]},
        {"text": SOUND.text[None]},
        {"text": np.full_like(SOUND.text, 0xFF)},
        {"text": 3.0},
        {"text": np.frombuffer(b"abab", np.uint8), "offsets": np.array([0, 2, 4])},
    ],
)
def test_what_is_no_word_list_is_refused_wherever_it_is_read(changes):
    damaged: Agreement = dataclasses.replace(SOUND, **changes)
    with pytest.raises(FormatError):
        damaged.check()
    with pytest.raises(FormatError):
        list(word_lists(damaged))
    with pytest.raises(FormatError):
        check_question(count_documents, damaged, Policy())


def test_blocks_beyond_a_gradient_are_refused():
    gradient = np.zeros(BLOCK + 1)
    check_blocks(gradient, np.array([0, 1]))
    check_blocks(gradient, np.array([], np.int64))
    with pytest.raises(FormatError, match="beyond"):
        check_blocks(gradient, np.array([0, 2]))


def test_questions_that_come_too_early_or_too_late_are_refused():
    pair = np.ones((2, 3))
    check_known((pair, pair), 2)
    check_known((), 0, 1)
    for found in ((pair,), (pair, pair, pair)):
        with pytest.raises(FormatError, match="more or fewer"):
            check_known(found, 0, 2)
