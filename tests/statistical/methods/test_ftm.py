"""FTM on planted topics: together the parties find what no party could find alone."""

import numpy as np
import pytest

import tertulia as tt
from helpers.federations import BAR, K, recovered, three_parties
from helpers.marks import seeds

METHOD = {"topics": 4, "rounds": 4, "sweeps": 40, "alpha": 0.8, "vocabulary": {"max_share": 1.0}}


@pytest.mark.parametrize("seed", seeds(5, quick=2))
def test_planted_topics_are_recovered_from_all_parties(seed):
    model = tt.FTM(**METHOD).fit(three_parties(seed), seed=seed, workers=2)
    assert recovered(model) > BAR
    alone = tt.Alone(topics=K, sweeps=160, alpha=0.8, vocabulary={"max_share": 1.0}).fit(three_parties(seed))
    assert max(recovered(local) for local in alone.local.values()) < BAR  # nobody holds all topics


def test_thirty_percent_dropouts_still_converge():
    parties = three_parties(11)
    steady = tt.FTM(**METHOD).fit(parties, workers=2)
    shaky = tt.FTM(**{**METHOD, "rounds": 6}).fit(
        parties, workers=2, seed=2, federation={"dropouts": {"rate": 0.3}, "quorum": 0.3}
    )
    present = [len(facts["bytes"]) for facts in shaky.history[1:]]
    assert min(present) < 3  # somebody was away
    assert recovered(shaky) > BAR
    assert shaky.history[-1]["perplexity"] < 1.05 * steady.history[-1]["perplexity"]


def test_parties_with_their_own_numbers_of_topics_and_a_late_joiner():
    settings = {"a": {"topics": 3}, "b": {"topics": 5}, "c": {"topics": 4, "joins": 3}}
    model = tt.FTM(**METHOD).fit(three_parties(5), party_settings=settings)
    assert {name: local.n_topics for name, local in model.local.items()} == {"a": 3, "b": 5, "c": 4}
    assert [len(facts["bytes"]) for facts in model.history] == [2, 2, 2, 3, 3]


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not():
    fits = [
        tt.FTM(**{**METHOD, "rounds": 2}).fit(three_parties(0), seed=s, workers=w) for s, w in ((1, 1), (1, 3), (2, 1))
    ]
    assert fits[0].topic_word.tobytes() == fits[1].topic_word.tobytes()
    assert fits[0].topic_word.shape != fits[2].topic_word.shape or not np.array_equal(
        fits[0].topic_word, fits[2].topic_word
    )
