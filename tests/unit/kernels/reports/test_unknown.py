"""Reports with one symbol for all words off the list: their likelihood, and the share that is found from them."""

from functools import partial

import numpy as np
import pytest

from tertulia.kernels import noise_aware
from tertulia.kernels.reports import Reports, reports
from tertulia.kernels.reports import unknown as module
from tertulia.kernels.reports.channel import Channel
from tertulia.kernels.reports.unknown import listed_reports

V, KEY = 30, b"k" * 32
CHANNELS = [Channel("krr", 3.0, V + 1), Channel("subset", 2.0, V + 1), Channel("laplace", 3.0, V + 1)]


def tokens(share: float, n: int = 20_000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < share, V, rng.integers(0, V, n)).astype(np.int32)


def likelihood(report: Reports, i: int, topic: np.ndarray) -> float:
    """Of report i, for a token whose word is drawn from a topic over all symbols."""
    here = slice(report.indptr[i], report.indptr[i + 1])
    return report.r0 + float((report.a[here] * topic[report.idx[here]]).sum())


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda c: c.kind)
def test_what_samplers_see_is_the_likelihood_of_listed_words_and_unk_together(channel):
    words, rng = tokens(0.4, 300), np.random.default_rng(1)
    whole = reports(words, channel, KEY, "corpus")
    pi, topics = 0.4, rng.dirichlet(np.ones(V), 2)
    seen = module._leave_out(whole, V, pi)
    assert seen.idx.max() < V
    unk = np.eye(V + 1)[V]
    for i in range(len(words)):
        listed = [likelihood(whole, i, np.append(topic, 0.0)) for topic in topics]
        truth = [pi * likelihood(whole, i, unk) + (1 - pi) * one for one in listed]
        found = [likelihood(seen, i, topic) for topic in topics]
        assert found[0] / found[1] == pytest.approx(truth[0] / truth[1], rel=1e-5)
        # and the chance that it is background, or UNK, given topic 0
        background = pi * likelihood(whole, i, unk) + (1 - pi) * whole.r0
        assert seen.r0 / found[0] == pytest.approx(background / truth[0], rel=1e-5)


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda c: c.kind)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_the_share_of_unk_is_found_from_reports(channel, share):
    words = tokens(share)
    found = listed_reports(partial(reports, words, channel, KEY, "corpus"), channel, len(words))
    assert found.unknown == pytest.approx((words == V).mean(), abs=0.03)


def test_tokens_that_name_no_listed_word_are_left_out_and_put_back():
    channel, words = Channel("krr", 8.0, V + 1), tokens(0.5, 1000)
    found = listed_reports(partial(reports, words, channel, KEY, "corpus"), channel, len(words))
    documents = np.array([0, 300, 300, 1000])
    ends = found.offsets(documents)
    assert ends[1] == ends[2] == found.heard[:300].sum()
    state = noise_aware.init(found.source, ends, V, 2, 0.1, 0.1, key=1)
    for sampler in ("dense", "gibbs", "mh", "warp"):
        state, _ = noise_aware.run(found.source, ends, state, 2, key=2, sampler=sampler)
    z = found.put_back(state.z)
    assert len(z) == len(words)
    assert np.all(z[~found.heard] == -1)
    assert np.array_equal(found.take(z), state.z)
    assert np.all(words[z >= 0] < V) or (words[z >= 0] == V).mean() < 0.05


def test_on_demand_and_whole_reports_say_the_same(monkeypatch):
    from tertulia.kernels.reports import condense

    channel, words = CHANNELS[2], tokens(0.3, 500)
    source = partial(reports, words, channel, KEY, "corpus")
    whole = listed_reports(source, channel, len(words))
    monkeypatch.setattr(condense, "_KEPT", 0)
    demanded = listed_reports(source, channel, len(words))
    assert demanded.heard is None
    assert demanded.unknown == whole.unknown
    assert np.array_equal(demanded.source(0, 500).idx, whole.source.idx)
    assert np.allclose(demanded.source(0, 500).a, whole.source.a)


def test_nothing_but_unk_leaves_no_tokens():
    channel, words = Channel("krr", 20.0, V + 1), np.full(50, V, dtype=np.int32)
    found = listed_reports(partial(reports, words, channel, KEY, "corpus"), channel, 50)
    assert 0.9 < found.unknown < 1
    ends = found.offsets(np.array([0, 50]))
    state = noise_aware.init(found.source, ends, V, 2, 0.1, 0.1, key=1)
    state, _ = noise_aware.run(found.source, ends, state, 2, key=2)
    assert state.cwk.sum() == 0
    assert np.all(found.put_back(state.z) == -1)
