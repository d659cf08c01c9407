"""Consensus rounds: parties with alike data end in one set of topics, as good as that of the pooled documents."""

import numpy as np
import pytest

import tertulia as tt
from helpers.federations import BAR, K, party, recovered, three_parties
from helpers.marks import seeds
from tertulia.corpus import Corpus
from tertulia.kernels.lda import blocked
from tertulia.methods.common.topic_clusters import cluster
from tertulia.metrics import completion

SETTINGS = {"topics": K, "alpha": 0.8, "vocabulary": {"max_share": 1.0}}


@pytest.mark.parametrize("seed", seeds(3, quick=1))
def test_alike_parties_come_within_three_percent_of_pooling(seed):
    rng = np.random.default_rng(seed)
    parties = {name: party(rng, list(range(K)), 50) for name in "abcd"}
    test = party(rng, list(range(K)), 60)
    shared = tt.Consensus(**SETTINGS, rounds=8).fit(parties, seed=seed)
    pooled = tt.Pooled(**SETTINGS, sweeps=60).fit(parties, seed=seed)
    scores = [completion(m.topic_word, m.alpha, m.encode(test)).perplexity for m in (shared, pooled)]
    assert shared.n_topics == K
    assert scores[0] < 1.03 * scores[1]


def test_planted_topics_are_recovered_from_parties_that_hold_different_ones():
    assert recovered(tt.Consensus(**SETTINGS, rounds=8).fit(three_parties(3))) > BAR


def test_dropouts_and_late_joiners_count_once():
    rng = np.random.default_rng(4)
    model = tt.Consensus(**SETTINGS, rounds=6).fit(
        {name: party(rng, list(range(K)), 60) for name in "abc"}, seed=1, party_settings={"c": {"joins": 4}},
        federation={"dropouts": {"script": {3: ["a"]}}, "quorum": 0.3},
    )  # fmt: skip
    assert [len(facts["bytes"]) for facts in model.history] == [2, 2, 2, 1, 3, 3, 3, 3]
    assert recovered(model) > BAR


def test_the_method_sees_only_sums_of_counts(tmp_path):
    from tertulia.runs.directory import Run
    from tertulia.view.tables import disclosure_rows

    tt.Consensus(**SETTINGS, rounds=2).fit(three_parties(0), directory=tmp_path / "run")
    rows = disclosure_rows(Run.open(tmp_path / "run"))
    assert {row["seen"] for row in rows if row["what"] == "topic-word counts"} == {
        "singly by the server's machine, as a sum by the method"
    }


def test_sweeping_beside_others_counts_every_token_once():
    corpus = Corpus.from_texts(party(np.random.default_rng(0), [0, 1], 20))
    V = len(corpus.vocabulary)
    z, own, _ = blocked.run_beside(
        corpus.words, corpus.documents, np.zeros(corpus.n_tokens, np.int32), np.zeros((V, 3), np.int32),
        np.full(3, 0.1), 0.01, keys=[1, 2, 3], adds_up=False,
    )  # fmt: skip
    assert own.sum() == corpus.n_tokens
    assert np.array_equal(np.bincount(z, minlength=3), own.sum(axis=0))


def test_clusters_are_weighted_means_and_keep_their_weight():
    M = np.array([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.0, 0.1, 0.9]])
    merged, weights = cluster(M, np.array([3.0, 1.0, 5.0]), 2)
    order = np.argsort(weights)
    assert np.allclose(merged[order], [[0.875, 0.125, 0.0], [0.0, 0.1, 0.9]])
    assert np.array_equal(weights[order], [4.0, 5.0])
    assert cluster(M, np.ones(3), 5)[0] is M
