"""The first topics of Consensus: what parties send, what stays with them, and what their staff read."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tertulia.corpus import Corpus
from tertulia.errors import FormatError, InputError
from tertulia.kernels.lda import word_profiles
from tertulia.methods.consensus import start
from tertulia.methods.consensus.settings import ConsensusSettings

WORDS = ("barley", "violin", "season")
SETTINGS = start.FirstTopics(topics=2)
TEXTS = ["barley season barley", "violin season", "violin violin season"] * 4


class Party(SimpleNamespace):
    """A party that releases everything and keeps its notices."""

    def __init__(self, texts=TEXTS, least=1):
        corpus = Corpus.from_texts(texts)
        super().__init__(id="north", seed=3, place=(0, 0), counted=None, notices=[], min_documents_per_word=1,
                         min_documents_per_topic=least, release=lambda x, mechanism: x,
                         setting=lambda name, default: default, sum_tag=lambda name, *x: np.zeros(2, np.int64),
                         check_sum=lambda name, tag, *x: None)  # fmt: skip
        self.documents = lambda words=None, **how: corpus if words is None else corpus.encode(words, **how)
        self.notice = self.notices.append


def test_words_of_few_documents_are_not_counted():
    seen = start.count_tokens(Party(), None, start.WordTask(WORDS, SETTINGS))[1]
    assert (seen.documents.tolist(), seen.tokens.tolist()) == ([4, 8, 12], [8, 12, 12])
    seen = start.count_tokens(Party(least=5), None, start.WordTask(WORDS, SETTINGS))[1]
    assert (seen.documents.tolist(), seen.tokens.tolist()) == ([0, 8, 12], [0, 12, 12])


def test_a_party_with_too_few_documents_stays_out():
    with pytest.raises(InputError, match="'north' has 3 documents to train on, and with secure sums nothing of fewer"):
        start.count_tokens(Party(TEXTS[:3], least=5), None, start.WordTask(WORDS, SETTINGS))
    start.count_tokens(Party(TEXTS[:3]), None, start.WordTask(WORDS, SETTINGS))


def test_the_staff_reads_of_a_list_that_hardly_meets_the_documents():
    party = Party([f"barley {'oats rye wheat '}" for _ in range(6)])
    start.count_tokens(party, None, start.WordTask(WORDS, SETTINGS))
    assert party.notices == [
        "75% of its words are not on the agreed list and are left out: are its language and its subject those of the "
        "others? A longer list, or vocabulary mode 'union', keeps more"
    ]
    masked = Party([f"barley {'oats rye wheat '}" for _ in range(6)], least=5)
    start.count_tokens(masked, None, start.WordTask(WORDS, SETTINGS))
    assert masked.notices[0].endswith("those of the others? A longer list keeps more")
    well = Party()
    start.count_tokens(well, None, start.WordTask(WORDS, SETTINGS))
    assert well.notices == []


NO_TAG = np.zeros(2, np.int64)


def soft_task(round_, counts):
    settings = start.FirstTopics(topics=2, alpha=0.2, seed=1)
    return start.SoftTask(WORDS, round_, settings, start.FRACTION, None, start.SoftCounts(counts, NO_TAG))


def test_expected_counts_go_as_changes():
    party = Party()
    first = soft_task(0, np.array([[900, 1, 500], [1, 900, 500]], np.int32))
    state, reply = start.expect(party, None, first)
    assert reply.counts.sum() == pytest.approx(32 * start.FRACTION, abs=3)
    assert reply.counts[0, 0] > 7.9 * start.FRACTION
    party.counted, party.place = (0, 0), (0, 1)
    again = soft_task(1, np.array([[1, 900, 500], [900, 1, 500]], np.int32))
    later, change = start.expect(party, state, again)
    assert np.array_equal(table_of(state.latest) + change.counts, table_of(later.latest))
    assert np.array_equal(table_of(state.latest), reply.counts)
    assert np.all(later.latest.counts > 0)
    assert np.array_equal(later.counted.counts, state.latest.counts)


def table_of(expected):
    table = np.zeros((2, len(WORDS)), np.int32)
    table.reshape(-1)[expected.cells] = expected.counts
    return table


def test_a_party_without_some_words_expects_none_of_them():
    party = Party(["violin season"] * 3)
    counts = np.array([[900, 1, 500], [1, 900, 500]], np.int32)
    _, reply = start.expect(party, None, soft_task(0, counts))
    assert reply.counts[:, 0].tolist() == [0, 0]
    assert reply.counts.sum() == pytest.approx(6 * start.FRACTION, abs=2)


@pytest.mark.parametrize("counts", [np.ones((3, 3), np.int32), -np.ones((2, 3), np.int32)])
def test_counts_of_other_topics_or_below_zero_are_refused(counts):
    with pytest.raises((FormatError, InputError), match=r"shape|below zero"):
        start.expect(Party(), None, soft_task(0, counts))


def test_a_round_of_em_needs_counts_or_profiles():
    with pytest.raises(FormatError, match="the counts of the round before, or profiles"):
        start.expect(Party(), None, replace(soft_task(0, np.ones((2, 3), np.int32)), counts=None))


def test_parties_find_the_first_topics_themselves():
    """From the totals of words and of profiles, which are all that the first question of EM holds."""
    parties = [Party(), Party(TEXTS[::-1] * 2)]
    seen = [start.count_tokens(party, None, start.WordTask(WORDS, SETTINGS))[1] for party in parties]
    words = start.WordTotals(*(sum(getattr(x, name) for x in seen) for name in ("documents", "tokens")), NO_TAG)
    sums = sum(start.profile_words(party, None, start.ProfileTask(WORDS, SETTINGS, words))[1].sums for party in parties)
    found = start.FoundProfiles(words, start.Profiles(sums, NO_TAG))
    ask = start.SoftTask(WORDS, 0, start.FirstTopics(topics=2, seed=1), start.FRACTION, found, None)
    sent = start.expect(parties[0], None, ask)[1].counts
    chosen = word_profiles.most_frequent(words.documents)
    first = word_profiles.topics_of_profiles(sums / 32, words.documents[chosen], chosen, words.tokens, 2, np.uint64(1))
    same = soft_task(0, np.rint(first * start.FRACTION).astype(np.int32))
    same = replace(same, settings=ask.settings)
    assert np.array_equal(sent, start.expect(parties[0], None, same)[1].counts)
    assert sent.any()


def test_the_start_is_planned():
    planned = {row.step.__name__: row.times for row in start.plan_start(ConsensusSettings(start_rounds=4))}
    assert planned == {"count_tokens": 1, "profile_words": 1, "expect": 4}
    assert all(row.verb == "sum" for row in start.plan_start(ConsensusSettings()))
