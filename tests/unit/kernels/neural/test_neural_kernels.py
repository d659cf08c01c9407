"""The kernels of the neural models against plain torch: values and gradients, both precisions, empty documents."""

import numpy as np
import pytest
import torch

from benchmarks.neural.autograd import batch_norm, divergence, layer_norm
from tertulia.kernels.neural import bag_products, decoder, encoder
from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.backprop import EPS, BatchNorm, BatchNormDecoder, LayerNorm, LayerNormDecoder
from tertulia.models.neural.network import Network
from tertulia.models.neural.optimiser import Adam, Moments, adam_step
from tertulia.models.neural.sparse import Bow, Rows

torch.set_num_threads(1)
PRECISIONS = [(np.float64, 1e-11), (np.float32, 2e-4)]
V, K = 37, 5


def bags(documents, dtype, seed=0):
    """Bags of words of which every third document has none, as arrays and as a dense matrix."""
    dense = np.random.default_rng(seed).poisson(0.3, (documents, V)).astype(dtype)
    dense[::3] = 0
    rows, words = np.nonzero(dense)
    offsets = np.concatenate(([0], np.cumsum((dense > 0).sum(axis=1))))
    return Bow(words, dense[rows, words], offsets, V), dense


def leaf(array):
    return torch.from_numpy(array.copy()).requires_grad_()


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.parametrize("documents", [1, 2, 16, 33])
@pytest.mark.parametrize(("decode", "norm"), [(BatchNormDecoder, batch_norm), (LayerNormDecoder, layer_norm)])
def test_the_decoder_is_a_softmax_of_a_norm(decode, norm, documents, dtype, tolerance):
    random = np.random.default_rng(documents)
    bow, dense = bags(documents, dtype)
    theta, beta = random.dirichlet(np.ones(K), documents).astype(dtype), random.normal(size=(K, V)).astype(dtype)
    found = decode(theta, torch.from_numpy(beta), bow)
    t, b = leaf(theta), leaf(beta)
    product = t @ b
    mean, variance = product.mean(dim=0), product.var(dim=0, correction=0)
    normed = (product - mean) / torch.sqrt(variance + EPS) if norm is batch_norm else norm(1, product)
    loss = -(torch.from_numpy(dense) * torch.log_softmax(normed, dim=1)).sum()
    expected = torch.autograd.grad(loss, [t, b])
    scale = max(1.0, expected[0].abs().max().item()) if documents > 1 else 300.0  # of one, rounding errors / EPS
    assert found.loss == pytest.approx(loss.item(), rel=tolerance)
    if decode is BatchNormDecoder:
        assert np.abs(found.statistics - torch.stack((mean, variance)).detach().numpy()).max() < tolerance
    for mine, theirs in zip(found.back(), expected, strict=True):
        assert np.abs(mine - theirs.numpy()).max() < tolerance * scale


def test_one_document_far_off_thousands_leaves_the_loss_finite():
    documents = 9000  # whose root, 95, is the logit of the one: its exponential is beyond float32
    bow, dense = bags(documents, np.float32)
    theta, beta = np.full((documents, K), 1 / K, np.float32), np.random.default_rng(0).normal(size=(K, V)) * 10
    theta[1] = np.eye(K)[0]
    found = BatchNormDecoder(theta, torch.from_numpy(beta.astype(np.float32)), bow)
    t, b = leaf(theta.astype(np.float64)), leaf(beta)
    logits = batch_norm(1, t @ b)
    assert logits.max() > 90
    loss = -(torch.from_numpy(dense) * torch.log_softmax(logits, dim=1)).sum()
    (by_theta,) = torch.autograd.grad(loss, [t])
    assert found.loss == pytest.approx(loss.item(), rel=1e-4)
    assert np.abs(found.back()[0][1] - by_theta[1].numpy()).max() < 1e-2 * by_theta[1].abs().max().item()


def test_one_word_far_off_thousands_leaves_the_loss_finite():
    words = 20_000  # whose root, 141, is near the logit of the one word that theta favours
    bow = Bow(np.array([0, 7]), np.ones(2, np.float32), np.array([0, 2]), words)
    beta = np.zeros((K, words), np.float32)
    beta[0, 7] = 50.0
    theta = np.eye(K, dtype=np.float32)[:1]
    found = LayerNormDecoder(theta, torch.from_numpy(beta), bow)
    t = leaf(theta.astype(np.float64))
    logits = layer_norm(1, t @ torch.from_numpy(beta).double())
    assert logits.max() > 90
    loss = -torch.log_softmax(logits, dim=1)[0, [0, 7]].sum()
    (by_theta,) = torch.autograd.grad(loss, [t])
    assert found.loss == pytest.approx(loss.item(), rel=1e-4)
    assert np.abs(found.back()[0] - by_theta.numpy()).max() < 1e-3


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.parametrize("documents", [1, 7])
@pytest.mark.parametrize(("norm", "reference"), [(BatchNorm, batch_norm), (LayerNorm, layer_norm)])
def test_the_draw_of_theta_is_that_of_torch(norm, reference, documents, dtype, tolerance):
    random = np.random.default_rng(3)
    shapes = (documents, 2 * K), (documents, K), (K,), (K,), (documents, K)
    raw, normal, mean, log_variance, weight = (random.normal(size=shape).astype(dtype) for shape in shapes)
    keep = (random.random((documents, K)) > 0.2).astype(dtype) / dtype(0.8)
    found = norm(raw)
    drawn = encoder.draw(found.normed, normal, keep, mean, log_variance)
    slopes = encoder.draw_back(drawn, found.normed, normal, keep, mean, log_variance, weight)
    found.back(slopes.normed)
    r, m, v = leaf(raw), leaf(mean), leaf(log_variance)
    normed = reference(0, r) if documents > 1 or norm is LayerNorm else (r - r.mean(dim=0)) / EPS**0.5
    a, b = normed.chunk(2, dim=1)
    theta = torch.softmax(a + torch.exp(0.5 * b) * torch.from_numpy(normal), dim=1) * torch.from_numpy(keep)
    kl = divergence(a, b, m, v).sum()
    expected = torch.autograd.grad((theta * torch.from_numpy(weight)).sum() + kl, [r, m, v])
    assert drawn.kl == pytest.approx(kl.item(), rel=tolerance)
    assert np.abs(drawn.theta - theta.detach().numpy()).max() < tolerance
    for mine, theirs in zip(slopes, expected, strict=True):
        assert np.abs(mine - theirs.numpy()).max() < tolerance * (300.0 if documents == 1 else 1.0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 3e-7)])
def test_softplus_and_its_slope_hold_everywhere(dtype, tolerance):
    x = np.concatenate((np.linspace(-60, 60, 2001), [-1e4, 1e4])).astype(dtype)[None]
    values, slopes = x.copy(), np.ones_like(x)
    encoder.activate(values, np.zeros(x.shape[1], dtype))
    exact = np.logaddexp(0, x.astype(float))
    assert np.abs(values - exact).max() <= tolerance * 60 or np.allclose(values, exact, rtol=2 * tolerance, atol=0)
    assert np.allclose(values, exact, rtol=2 * tolerance, atol=tolerance)
    sums = encoder.activate_back(slopes, values)
    with np.errstate(over="ignore"):
        assert np.abs(slopes - 1 / (1 + np.exp(-x.astype(float)))).max() < tolerance
    assert np.array_equal(sums, slopes[0])
    broken = np.array([[np.nan, 1.0]], dtype)
    encoder.activate(broken, np.zeros(2, dtype))
    assert np.isnan(broken).tolist() == [[True, False]]


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_bags_times_a_table_are_a_matrix_product(dtype, tolerance):
    bow, dense = bags(9, dtype)
    table = np.random.default_rng(1).normal(size=(V, 11)).astype(dtype)
    product = bow.times(torch.from_numpy(table)).numpy()
    slopes = np.random.default_rng(2).normal(size=product.shape).astype(dtype)
    assert np.abs(product - dense @ table).max() < tolerance
    assert np.abs(bow.times_slopes(torch.from_numpy(slopes)).whole(V) - dense.T @ slopes).max() < tolerance
    assert np.array_equal(bow.tokens, dense.sum(axis=1))
    assert np.array_equal(bow.by_word.words, np.flatnonzero(dense.any(axis=0)))


def test_chosen_documents_are_taken_whole():
    bow, dense = bags(9, np.float32)
    chosen = np.array([8, 0, 4, 4])
    words, counts, offsets = bag_products.select(bow.words, bow.counts, bow.offsets, chosen)
    again = np.zeros((4, V), np.float32)
    again[np.repeat(np.arange(4), np.diff(offsets)), words] = counts
    assert np.array_equal(again, dense[chosen])
    nothing = bag_products.select(bow.words, bow.counts, bow.offsets, np.empty(0, np.int64))
    assert [len(part) for part in nothing] == [0, 0, 1]


def test_documents_that_fill_whole_vectors_leave_room_for_the_mean():
    theta = np.random.default_rng(0).random((16, K))
    turned = decoder.centre(theta, 32)
    assert np.allclose(turned[:, :16], (theta - theta.mean(axis=0)).T)
    assert np.allclose(turned[:, 16], theta.mean(axis=0))
    assert not turned[:, 17:].any()


@pytest.mark.parametrize("betas", [(0.99, 0.99), (0.9, 0.999), (0.0, 0.9)])
@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-15), ("float32", 3e-7)])
@pytest.mark.parametrize("size", [1e-2, 1e-7])  # of gradients; with the second, epsilon counts
def test_rows_that_wait_end_where_adam_takes_them(size, precision, tolerance, betas):
    net = Network("prodlda", Sizes(50, 3, 0, (9, 4)), "batch", precision)
    flat, random = net.initial_weights(0), np.random.default_rng(1)
    theirs = {name: leaf(part) for name, part in net.named(flat).items()}
    reference = torch.optim.Adam(list(theirs.values()), 2e-3, betas)
    mine = Adam(net, flat, 2e-3, betas)
    for _ in range(150):  # longer than the window
        rows = np.sort(random.choice(40, 4, replace=False))  # ten words never occur
        slopes = {name: (size * random.normal(size=part.shape)).astype(precision) for name, part in theirs.items()}
        table = np.zeros((50, 9), precision)
        table[rows] = slopes["words"][rows]
        mine.catch_up(rows)
        assert np.abs(net.named(flat)["words"][rows] - theirs["words"].detach().numpy()[rows]).max() < tolerance
        mine.step({**slopes, "words": Rows(rows, table[rows])}, 0.5)
        for name, part in theirs.items():
            part.grad = torch.from_numpy(0.5 * (table if name == "words" else slopes[name]))
        reference.step()
    mine.finish()
    for name, part in net.named(flat).items():
        assert np.abs(part - theirs[name].detach().numpy()).max() < tolerance


def test_a_step_of_the_whole_gradient_is_torch_s():
    random, betas = np.random.default_rng(2), (0.9, 0.99)
    weights = random.normal(size=30)
    theirs = leaf(weights)
    reference, moments = torch.optim.Adam([theirs], 3e-3, betas), Moments.initial(weights)
    for _ in range(20):
        gradient = random.normal(size=30)
        before = weights.copy()
        moved, moments = adam_step(weights, gradient, moments, 3e-3, betas)
        assert np.array_equal(weights, before)  # nothing that was given changes
        theirs.grad = torch.from_numpy(gradient)
        reference.step()
        weights = moved
    assert moments.steps == 20
    assert np.abs(weights - theirs.detach().numpy()).max() < 1e-14


def test_a_row_of_a_vectors_width_is_normalised():
    logits = np.random.default_rng(0).normal(size=(3, 16))
    logits[:, 15] = [1.0, 2.0, 3.0]  # the means
    logits[:, :15] -= logits[:, :15].mean(axis=1, keepdims=True)
    expected = batch_norm(1, torch.from_numpy(logits[:, :15].T.copy()))
    found = decoder.normalise(logits, 15, np.empty((2, 0)), 15.0, EPS)
    assert np.allclose(logits[:, :15], expected.numpy().T)
    assert np.array_equal(found.statistics[0], [1.0, 2.0, 3.0])
    assert np.allclose(found.totals[:15], expected.exp().sum(dim=1).numpy())
