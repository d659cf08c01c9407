"""Sums of clipped gradients: those of a loop over documents by autograd, and no document moves them beyond the clip."""

import numpy as np
import pytest
import torch

from benchmarks.neural import autograd
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import FormatError
from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.bags import Bags, Noise
from tertulia.models.neural.clipped import Clipping, clipped_sum
from tertulia.models.neural.network import Network

torch.set_num_threads(1)
V, K, D, BITS = 25, 4, 150, 16  # more documents than are computed together
NOISE = Noise(1, 2)
WORDS = tuple(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxy")


@pytest.fixture(scope="module")
def bags():
    random = np.random.default_rng(0)
    texts = [" ".join(WORDS[v] for v in random.integers(0, V, random.integers(1, 40))) for _ in range(D)]
    return Bags.of(Corpus.from_texts(texts).encode(Vocabulary(WORDS)))


def network(precision="float64", normalisation="layer", **sizes):
    made = Sizes(V, K, hidden=(7, 5), shifts=normalisation == "layer", **sizes)
    return Network("prodlda", made, normalisation, precision)


def by_autograd(net, flat, bags):
    """The gradient of each document's own loss, [D, n]."""
    rows = [autograd.gradient(net, flat, bags.select(np.array([d])), NOISE, autograd.layer_norm)[0] for d in range(D)]
    return np.array(rows)


@pytest.mark.parametrize("sizes", [{}, {"dropout": 0.0, "learn_prior": False}])
def test_a_sum_is_that_of_a_loop_over_documents(sizes, bags):
    net = network(**sizes)
    flat = net.initial_weights(3)
    gradients = by_autograd(net, flat, bags)
    norms = np.linalg.norm(gradients, axis=1)
    clip = float(np.median(norms))  # it clips half of them
    expected = (gradients * np.minimum(1.0, clip / norms)[:, None]).sum(axis=0)
    chosen = np.arange(D)
    found = clipped_sum(net, flat, bags, chosen, NOISE, Clipping(clip, BITS)) * (clip * 2.0**-BITS)
    step, margin = clip * 2.0**-BITS, 2.0**-20 * np.abs(gradients).sum(axis=0)
    assert np.all(np.abs(found - expected) <= D * step + margin + 1e-9)
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()
    some = clipped_sum(net, flat, bags, chosen[::3], NOISE, Clipping(clip, BITS))
    assert np.abs(some).sum() < np.abs(found / step).sum()  # only the chosen ones count


@pytest.mark.parametrize("clip", [1e-3, 1.0, 1e6])
def test_no_document_moves_a_sum_beyond_the_clip_and_none_moves_the_others_part(clip, bags):
    """In single precision too, and after rounding: exactly, as integers."""
    net, how = network("float32"), Clipping(clip, BITS)
    flat = net.initial_weights(3) * np.float32(3.0)
    alone = [clipped_sum(net, flat, bags, np.array([d]), NOISE, how) for d in range(D)]
    squares = [sum(int(x) ** 2 for x in one[one != 0]) for one in alone]
    assert max(squares) <= 4**BITS
    if clip <= 1.0:
        assert min(squares) > 0.99 * 4**BITS  # clipped, not dropped
    assert np.array_equal(clipped_sum(net, flat, bags, np.arange(D), NOISE, how), sum(alone))
    without = np.delete(np.arange(D), 7)
    assert np.array_equal(clipped_sum(net, flat, bags, without, NOISE, how), sum(alone) - alone[7])


@pytest.mark.parametrize("harm", [np.nan, np.inf, 1e30])
def test_gradients_that_are_not_finite_count_as_none(harm, bags):
    net = network("float32")
    flat = net.initial_weights(3)
    net.named(flat)["words"][4] = harm  # documents that have the word
    found = clipped_sum(net, flat, bags, np.arange(D), NOISE, Clipping(1.0, BITS))
    holders = np.array([4 in bags.select(np.array([d])).words for d in range(D)])
    others = clipped_sum(net, flat, bags, np.flatnonzero(~holders), NOISE, Clipping(1.0, BITS))
    assert 0 < holders.sum() < D
    assert np.abs(found - others).max() <= holders.sum() << BITS
    if not np.isfinite(harm):
        assert np.array_equal(found, others)


def test_networks_that_mix_documents_are_refused(bags):
    net = network(normalisation="batch")
    with pytest.raises(FormatError, match="normalisation 'layer'"):
        clipped_sum(net, net.initial_weights(3), bags, np.arange(3), NOISE, Clipping(1.0, BITS))
