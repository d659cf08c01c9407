"""The first topics of Consensus: what parties send, what stays with them, and what their staff read."""

from types import SimpleNamespace

import numpy as np
import pytest

from tertulia.corpus import Corpus
from tertulia.errors import FormatError, InputError
from tertulia.federation import fields
from tertulia.methods.consensus import start
from tertulia.methods.consensus.settings import ConsensusSettings

WORDS = ("barley", "violin", "season")
TEXTS = ["barley season barley", "violin season", "violin violin season"] * 4


class Party(SimpleNamespace):
    """A party that releases everything and keeps its notices."""

    def __init__(self, texts=TEXTS, least=1):
        corpus = Corpus.from_texts(texts)
        super().__init__(id="north", seed=3, place=(0, 0), counted=None, notices=[], min_documents_per_word=1,
                         min_documents_per_topic=least, release=lambda x, mechanism: x,
                         setting=lambda name, default: default)  # fmt: skip
        self.documents = lambda words=None: corpus if words is None else corpus.encode(words)
        self.notice = self.notices.append


def test_words_of_few_documents_are_not_counted():
    seen = start.count_tokens(Party(), None, start.WordTask(WORDS))[1]
    assert (seen.documents.tolist(), seen.tokens.tolist()) == ([4, 8, 12], [8, 12, 12])
    seen = start.count_tokens(Party(least=5), None, start.WordTask(WORDS))[1]
    assert (seen.documents.tolist(), seen.tokens.tolist()) == ([0, 8, 12], [0, 12, 12])


def test_a_party_with_too_few_documents_stays_out():
    with pytest.raises(InputError, match="'north' has 3 documents to train on, and with secure sums nothing of fewer"):
        start.count_tokens(Party(TEXTS[:3], least=5), None, start.WordTask(WORDS))
    start.count_tokens(Party(TEXTS[:3]), None, start.WordTask(WORDS))


def test_the_staff_reads_of_a_list_that_hardly_meets_the_documents():
    party = Party([f"barley {'oats rye wheat '}" for _ in range(6)])
    start.count_tokens(party, None, start.WordTask(WORDS))
    assert party.notices == [
        "75% of its words are not on the agreed list and are left out: are its language and its subject those of the "
        "others? A longer list, or vocabulary mode 'union', keeps more"
    ]
    well = Party()
    start.count_tokens(well, None, start.WordTask(WORDS))
    assert well.notices == []


@pytest.mark.parametrize("chosen", [[0, 0], [1, 0], [0, 3]])
def test_places_off_the_list_are_refused(chosen):
    with pytest.raises(FormatError, match="places on the word list"):
        start.profile_words(Party(), None, start.ProfileTask(WORDS, np.array(chosen)))


def test_expected_counts_go_as_changes():
    party, alpha = Party(), np.full(2, 0.1)
    first = start.SoftTask(WORDS, 0, np.array([[900, 1, 500], [1, 900, 500]], np.int32), alpha)
    state, reply = start.expect(party, None, first)
    assert reply.counts.sum() == pytest.approx(32 * start.FRACTION, abs=3)
    assert reply.counts[0, 0] > 7.9 * start.FRACTION
    party.counted, party.place = (0, 0), (0, 1)
    again = start.SoftTask(WORDS, 1, np.array([[1, 900, 500], [900, 1, 500]], np.int32), alpha)
    later, change = start.expect(party, state, again)
    assert np.array_equal(state.latest.counts + change.counts, later.latest.counts)
    assert np.array_equal(later.counted.counts, state.latest.counts)


def test_large_counts_fit_into_a_question():
    counts = start._within_bounds(np.array([[fields.MOST_COUNT * 3, 9]]))
    assert counts.dtype == np.int32
    assert counts[0, 0] <= fields.MOST_COUNT
    assert counts[0, 1] == 2


def test_the_start_is_planned():
    planned = {row.step.__name__: row.times for row in start.plan_start(ConsensusSettings(start_rounds=4))}
    assert planned == {"count_tokens": 1, "profile_words": 1, "expect": 4}
    assert all(row.verb == "sum" for row in start.plan_start(ConsensusSettings()))
