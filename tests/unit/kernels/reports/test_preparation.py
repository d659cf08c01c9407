"""Reports as samplers read them: the likelihood of what is left by definition, and the estimated share of UNK."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest

from tertulia.kernels import noise_aware
from tertulia.kernels.reports import Reports, preparation, reports
from tertulia.kernels.reports.channel import Channel
from tertulia.kernels.reports.preparation import LOUD, condense, keep_above, listed_reports

V, KEY = 30, b"k" * 32
CHANNELS = [Channel("krr", 3.0, V + 1), Channel("subset", 2.0, V + 1), Channel("laplace", 3.0, V + 1)]
N = 40
LISTED = np.random.default_rng(1).integers(0, N, 10_000).astype(np.int32)
LAPLACE = Channel("laplace", 3.0, N)


def source(channel):
    return partial(reports, LISTED, channel, bytes(32), "corpus")


def density(x, centre, epsilon):
    return 0.5 * epsilon * math.exp(-epsilon * abs(x - centre))


def test_what_is_left_has_the_likelihood_ratio_of_a_channel_with_the_larger_threshold():
    louder = dataclasses.replace(LAPLACE, tau=LOUD)
    r = keep_above(source(LAPLACE)(0, 500), louder)
    assert r.value.min() > LOUD
    below = 1 - 0.5 * math.exp(-3.0 * LOUD)  # of an entry without the word
    own_below = 0.5 * math.exp(-3.0 * (1 - LOUD))
    assert r.r0 == pytest.approx(own_below / below)
    for value, a in zip(r.value[:200], r.a[:200], strict=True):
        ratio = density(value, 1.0, 3.0) / density(value, 0.0, 3.0)
        assert a + r.r0 == pytest.approx(ratio, rel=0.01)  # values are rounded to a grid


def test_louder_entries_are_as_many_as_their_channel_would_tell():
    louder = dataclasses.replace(LAPLACE, tau=LOUD)
    sizes = np.diff(keep_above(source(LAPLACE)(0, len(LISTED)), louder).indptr)
    assert sizes.mean() == pytest.approx(louder.expected_support(), abs=4 * sizes.std() / math.sqrt(len(LISTED)))


def test_blocks_and_memory_change_nothing(monkeypatch):
    whole = condense(source(LAPLACE), LAPLACE, len(LISTED))
    monkeypatch.setattr(preparation, "_KEPT", 0)
    on_demand = condense(source(LAPLACE), LAPLACE, len(LISTED))
    assert callable(on_demand)
    part = on_demand(4000, 4200)
    first, last = whole.indptr[4000], whole.indptr[4200]
    assert np.array_equal(part.idx, whole.idx[first:last])
    assert np.array_equal(part.a, whole.a[first:last])
    assert np.array_equal(part.indptr, whole.indptr[4000:4201] - first)


def test_other_channels_stay_as_they_are_and_nothing_is_fine():
    krr = Channel("krr", 3.0, N)
    assert np.array_equal(condense(source(krr), krr, len(LISTED)).idx, source(krr)(0, len(LISTED)).idx)
    assert len(condense(source(LAPLACE), LAPLACE, 0).idx) == 0
    strict = dataclasses.replace(LAPLACE, tau=0.8)
    assert condense(source(strict), strict, 50).value.min() > 0.79


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
    seen = preparation._leave_out(whole, V, pi)
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
    channel, words = CHANNELS[2], tokens(0.3, 500)
    source = partial(reports, words, channel, KEY, "corpus")
    whole = listed_reports(source, channel, len(words))
    monkeypatch.setattr(preparation, "_KEPT", 0)
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
