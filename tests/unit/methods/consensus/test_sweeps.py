"""Where tokens begin: they look at their document, so that few sweeps are enough."""

from types import SimpleNamespace

import numpy as np

from tertulia.corpus import Corpus, Vocabulary
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.consensus.method import Shared
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.consensus.sweeps import sweep_words

WORDS = ("barley", "violin", "season")
TOPICS = np.array([[500, 0, 500], [0, 500, 500]], np.int32)  # as counts [K, V]
TEXTS = [" ".join([own] * 20 + ["season"] * 80) for own in WORDS[:2] * 40]


def test_tokens_without_a_topic_look_at_their_document():
    """After one sweep most tokens have the topic of their document, also those of words that both topics have."""
    corpus = Corpus.from_texts(TEXTS).encode(Vocabulary(WORDS))
    ask = Shared(WORDS, Training(topics=2, sweeps=1), TOPICS, np.full(2, 0.5), 0, adds_up=True)
    party = SimpleNamespace(seed=3, setting=lambda name, default: default)
    swept = sweep_words(party, corpus, None, np.ascontiguousarray(TOPICS.T), ask)
    assert np.array_equal(swept.added, swept.own)
    assert (swept.z == np.repeat(np.arange(80) % 2, 100)).mean() > 0.95


def test_a_run_that_goes_on_has_fewer_and_longer_rounds():
    method = ConsensusSettings(topics=4, more_rounds=4, continued_sweeps=6).continued()
    assert (method.rounds, method.sweeps) == (4, 6)
    assert method.start_sweeps < ConsensusSettings(topics=4).start_sweeps
