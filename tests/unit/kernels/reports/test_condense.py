"""Laplace reports by their louder entries: the likelihood of what is left, by definition, and how it is kept."""

import dataclasses
import functools
import math

import numpy as np
import pytest

from tertulia.kernels.reports import Channel, reports
from tertulia.kernels.reports import condense as module
from tertulia.kernels.reports.condense import LOUD, condense, keep_above

V = 40
WORDS = np.random.default_rng(1).integers(0, V, 10_000).astype(np.int32)
LAPLACE = Channel("laplace", 3.0, V)


def source(channel):
    return functools.partial(reports, WORDS, channel, bytes(32), "corpus")


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
    sizes = np.diff(keep_above(source(LAPLACE)(0, len(WORDS)), louder).indptr)
    assert sizes.mean() == pytest.approx(louder.expected_support(), abs=4 * sizes.std() / math.sqrt(len(WORDS)))


def test_blocks_and_memory_change_nothing(monkeypatch):
    whole = condense(source(LAPLACE), LAPLACE, len(WORDS))
    monkeypatch.setattr(module, "_KEPT", 0)
    on_demand = condense(source(LAPLACE), LAPLACE, len(WORDS))
    assert callable(on_demand)
    part = on_demand(4000, 4200)
    first, last = whole.indptr[4000], whole.indptr[4200]
    assert np.array_equal(part.idx, whole.idx[first:last])
    assert np.array_equal(part.a, whole.a[first:last])
    assert np.array_equal(part.indptr, whole.indptr[4000:4201] - first)


def test_other_channels_stay_as_they_are_and_nothing_is_fine():
    krr = Channel("krr", 3.0, V)
    assert np.array_equal(condense(source(krr), krr, len(WORDS)).idx, source(krr)(0, len(WORDS)).idx)
    assert len(condense(source(LAPLACE), LAPLACE, 0).idx) == 0
    strict = dataclasses.replace(LAPLACE, tau=0.8)
    assert condense(source(strict), strict, 50).value.min() > 0.79
