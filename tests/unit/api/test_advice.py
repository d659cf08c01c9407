"""Warnings ahead of training."""

import numpy as np
import pytest

import tertulia as tt
from tertulia._memory import available_bytes
from tertulia.api.advice import ManyTopicsWarning, MemoryWarning, warn_of_memory
from tertulia.errors import InputError


def test_more_topics_than_documents(worded):
    with pytest.warns(ManyTopicsWarning, match="40 topics for 30 documents: most will be noise"):
        tt.LDA(topics=40, sweeps=1).fit(worded(0, 30))
    parties = {"a": worded(0, 20), "b": worded(1, 15)}
    with (
        pytest.warns(ManyTopicsWarning, match="40 topics for 35 documents"),
        pytest.raises(InputError, match="topics = 40, but the start can find 12 at most"),
    ):
        tt.Consensus(topics=40, rounds=1, sweeps=1).fit(parties)
    with pytest.raises(InputError, match=r"topics = 16, but the start can find 12 at most.* set topics = 12 or less"):
        tt.Consensus(topics=16, rounds=1, sweeps=1).fit(parties)  # no warning: together there are more documents
    assert tt.Consensus(topics=12, rounds=1, sweeps=1).fit(parties).n_topics == 12


def test_memory_is_compared_with_what_there_is():
    available = available_bytes()
    assert available > 2**20
    warn_of_memory(2**20, 10, 100)
    with pytest.warns(MemoryWarning, match=r"^10 topics over 1,000 words need about \d+\.\d GB, where"):
        warn_of_memory(2 * available, 10, 1_000)


def test_memory_is_estimated_before_training(monkeypatch):
    from tertulia.api import advice

    monkeypatch.setattr(advice, "available_bytes", lambda: 1_000_000)  # a small machine
    with pytest.warns(MemoryWarning, match="200 topics over 400 words"):
        tt.LDA(topics=200, sweeps=1).fit(np.ones((300, 400), int))
    tt.LDA(topics=2, sweeps=1).fit(np.ones((300, 400), int))
