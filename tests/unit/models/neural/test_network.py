"""The neural models: gradients, closed forms, read-out, batches and noise."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch

import tertulia as tt
from benchmarks.neural import autograd
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import FormatError
from tertulia.models.neural import sync_batch_norm
from tertulia.models.neural.architecture import Sizes, architecture_of, network_of
from tertulia.models.neural.bags import Bags, Batch, Noise, Schedule, document_key
from tertulia.models.neural.network import Network
from tertulia.models.neural.prodlda import laplace_prior
from tertulia.models.neural.training import Progress, train, validation_loss

torch.set_num_threads(1)
KINDS = ["prodlda", "combinedtm", "zeroshottm"]
V, K, E = 25, 4, 6


@pytest.fixture
def bags():
    random = np.random.default_rng(0)
    texts = [" ".join(f"word{'abcdefghijklmnopqrstuvwxy'[v]}" for v in random.integers(0, V, 12)) for _ in range(20)]
    words = Vocabulary(tuple(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxy"))
    return Bags.of(Corpus.from_texts(texts).encode(words), random.normal(size=(20, E)).astype(np.float32))


def network(kind, normalisation="batch", literal=False, precision="float64", **sizes):
    made = Sizes(V, K, E, (7, 5), literal_adapter=literal, shifts=normalisation == "layer", **sizes)
    return Network(kind, made, normalisation, precision)


@pytest.mark.parametrize("normalisation", ["batch", "layer"])
@pytest.mark.parametrize(("kind", "literal"), [(k, False) for k in KINDS] + [("combinedtm", True)])
def test_gradients_are_those_of_finite_differences(kind, literal, normalisation, bags):
    net, noise, batch = network(kind, normalisation, literal), Noise(1, 2), bags.select(np.arange(20))
    flat = net.initial_weights(3)
    found = net.gradient(flat, batch, noise).flat
    places = np.random.default_rng(1).choice(len(flat), 60, replace=False)

    def loss(move):
        return net.gradient(flat + move, batch, noise).loss

    for place in places:
        move = np.zeros_like(flat)
        move[place] = 1e-5
        assert found[place] == pytest.approx((loss(move) - loss(-move)) / 2e-5, abs=1e-7)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("normalisation", ["batch", "layer"])
@pytest.mark.parametrize(("kind", "literal"), [(k, False) for k in KINDS] + [("combinedtm", True)])
def test_gradients_by_hand_are_those_of_autograd(kind, literal, normalisation, dropout, bags):
    net, noise, batch = network(kind, normalisation, literal, dropout=dropout), Noise(1, 2), bags.select(np.arange(20))
    found = net.gradient(net.initial_weights(3), batch, noise)
    norm = autograd.layer_norm if normalisation == "layer" else autograd.batch_norm
    expected, loss = autograd.gradient(net, net.initial_weights(3), batch, noise, norm)
    assert found.loss == pytest.approx(loss, rel=1e-13)
    assert np.abs(found.flat - expected).max() < 1e-10


def test_a_long_document_among_thousands_of_short_ones_leaves_loss_and_gradient_finite():
    random, documents = np.random.default_rng(0), 9000
    words = random.integers(0, V, (documents, 2))
    words[:, 1] = (words[:, 0] + 1 + words[:, 1] % (V - 1)) % V  # another one
    counts = np.ones((documents, 2), np.float32)
    counts[7] = 20_000
    keys = np.arange(documents, dtype=np.uint64)
    whole = Batch(np.sort(words, axis=1).ravel(), counts.ravel(), np.arange(0, 2 * documents + 1, 2), keys, None)
    narrow, wide = (network("prodlda", precision=precision) for precision in ("float32", "float64"))
    found = narrow.gradient(narrow.initial_weights(3), whole, Noise(1, 2))
    exact = wide.gradient(wide.initial_weights(3), whole, Noise(1, 2))
    assert found.loss == pytest.approx(exact.loss, rel=1e-3)
    assert np.linalg.norm(found.flat - exact.flat) < 0.05 * np.linalg.norm(exact.flat)
    _, loss = autograd.gradient(wide, wide.initial_weights(3), whole, Noise(1, 2), autograd.batch_norm)
    assert exact.loss == pytest.approx(loss, rel=1e-10)


@pytest.mark.parametrize(("kind", "literal"), [(k, False) for k in KINDS] + [("combinedtm", True)])
def test_five_questions_equal_one_batch(kind, literal, bags):
    net, noise, n = network(kind, literal=literal), Noise(1, 2), 20.0
    flat = net.initial_weights(3)
    whole = net.gradient(flat, bags.select(np.arange(20)), noise)
    parts = [bags.select(np.arange(*span)) for span in ((0, 12), (12, 13), (13, 20), (0, 0))]  # one holds one, one none
    statistics, means = (), ()
    for _ in range(2):
        sums = sum(sync_batch_norm.sum_moments(net, flat, part, noise, statistics) for part in parts)
        statistics = (*statistics, sync_batch_norm.statistics_of(sums, n))
    for _ in range(2):
        found = sum(sync_batch_norm.slope_means(net, flat, part, noise, statistics, means, n) for part in parts)
        means = (*means, found)
    found = [sync_batch_norm.gradient(net, flat, part, noise, statistics, means, n) for part in parts]
    gradient, loss = (sum(p.size * f[i] for p, f in zip(parts, found, strict=True)) / n for i in range(2))
    assert np.abs(gradient - whole.flat).max() < 1e-12
    assert np.abs(gradient - autograd.five_questions(net, flat, parts, noise)).max() < 1e-12
    assert np.abs(np.concatenate(statistics, axis=1) - whole.statistics).max() < 1e-12
    assert loss == pytest.approx(whole.loss, rel=1e-13)
    losses = [sync_batch_norm.loss(net, flat, part, noise, statistics, n) for part in parts if part.size]
    assert sum(losses) / n == pytest.approx(loss, rel=1e-13)


@pytest.mark.parametrize("normalisation", ["batch", "layer"])
def test_validation_and_inference_are_those_of_torch(normalisation, bags):
    net, statistics = network("combinedtm", normalisation), network("combinedtm").initial_statistics()
    statistics[0] += 0.1
    flat, batch = net.initial_weights(3), bags.select(np.arange(20))
    norm = autograd.layer_norm if normalisation == "layer" else autograd.batch_norm
    _, loss = autograd.gradient(net, flat, batch, Noise(1, -1), norm)
    assert validation_loss(net, flat, bags, 1) == pytest.approx(loss, rel=1e-12)
    given = autograd.given_norm([torch.from_numpy(part) for part in net.split(statistics)])
    with torch.no_grad():
        raw = autograd.encode(net.tensors(flat), net.inputs(batch, None))
        mean, _ = (norm if normalisation == "layer" else given)(0, raw).chunk(2, dim=1)
    assert np.abs(net.theta(flat, statistics, batch) - torch.softmax(mean, dim=1).numpy()).max() < 1e-14


def test_the_laplace_prior_and_its_divergence_have_closed_forms():
    alpha = np.array([0.5, 1.0, 4.0])
    mean, variance = laplace_prior(alpha)
    assert mean == pytest.approx(np.log(alpha) - np.log(alpha).mean())
    assert variance[0] == pytest.approx(2.0 * (1 - 2 / 3) + (2.0 + 1.0 + 0.25) / 9)
    m, s2 = torch.tensor([[0.3, -0.2, 0.1]]), torch.tensor([[0.5, 1.5, 0.7]])
    p, q2 = torch.from_numpy(mean).float(), torch.from_numpy(variance).float()
    exact = torch.distributions.kl_divergence(
        torch.distributions.Normal(m, s2.sqrt()), torch.distributions.Normal(p, q2.sqrt())
    ).sum()
    assert autograd.divergence(m, s2.log(), p, q2.log()).item() == pytest.approx(exact.item(), rel=1e-5)
    assert autograd.divergence(p[None], q2.log()[None], p, q2.log()).item() == pytest.approx(0, abs=1e-6)


def test_topics_are_read_out_through_the_norm():
    net = network("prodlda")
    flat, statistics = net.initial_weights(0), net.initial_statistics()
    statistics[0, 2 * K :], statistics[1, 2 * K :] = 0.1, 4.0
    beta = net.named(flat)["beta"]
    scaled = (beta - 0.1) / math.sqrt(4.0 + 1e-5)
    expected = np.exp(scaled) / np.exp(scaled).sum(axis=1, keepdims=True)
    assert np.allclose(net.topic_word(flat, statistics), expected, atol=1e-12)


def test_a_network_without_layers_is_none():
    architecture = architecture_of(Network("prodlda", Sizes(3, 2, hidden=(4, 4))))
    with pytest.raises(FormatError, match="sizes"):
        network_of({**architecture, "sizes": {**architecture["sizes"], "hidden": []}})


def test_batches_and_noise_belong_to_documents(bags):
    schedule = Schedule(5, 4)
    batches = [schedule.batch(bags, step) for step in range(4)]
    assert sorted(np.concatenate([b.keys for b in batches])) == sorted(bags.keys)
    half = Bags(*bags.select(np.arange(10)))
    assert set(schedule.batch(half, 2).keys) == set(batches[2].keys) & set(half.keys)
    keys = np.array([document_key("a"), document_key("b")], np.uint64)
    one, both = Noise(1, 7).normal(keys[1:], 3, 0), Noise(1, 7).normal(keys, 3, 0)
    assert np.array_equal(one[0], both[1])
    many = Noise(2, 0).normal(np.arange(20000, dtype=np.uint64), 4, 0)
    assert abs(many.mean()) < 0.02
    assert abs(many.std() - 1) < 0.02
    mask = Noise(2, 0).mask(np.arange(20000, dtype=np.uint64), 5, 1, 0.2)
    assert mask.mean() == pytest.approx(1, abs=0.02)
    assert set(np.unique(mask)) == {np.float32(0), np.float32(1.25)}


def test_training_lowers_the_loss_and_a_single_document_is_passed_over(bags):
    net = network("prodlda", precision="float32")
    start = Progress.initial(net, 0)
    first = train(net, start, bags, Schedule(0, 2), range(2), 0.01)
    last = train(net, start, bags, Schedule(0, 2), range(200), 0.01)
    assert last.loss < first.loss
    alone = Bags(*bags.select(np.arange(1)))
    assert np.array_equal(train(net, start, alone, Schedule(0, 1), range(3), 0.01).weights, start.weights)


@pytest.mark.parametrize("normalisation", ["batch", "layer"])
@pytest.mark.parametrize("kind", KINDS)
def test_training_in_two_parts_is_training_in_one(kind, normalisation, bags):
    net = network(kind, normalisation)
    start = Progress.initial(net, 0)
    whole = train(net, start, bags, Schedule(0, 4), range(11), 0.01)
    half = train(net, start, bags, Schedule(0, 4), range(5), 0.01)
    again = train(net, half, bags, Schedule(0, 4), range(5, 11), 0.01)
    assert np.abs(again.weights - whole.weights).max() < 1e-14
    assert again.moments.steps == whole.moments.steps > half.moments.steps


def test_divergence_of_training_is_reported(bags):
    net = network("prodlda", precision="float32")
    with pytest.raises(tt.TertuliaError, match="lower `learning_rate`"):
        train(
            net,
            Progress(net.initial_weights(0) * np.nan, net.initial_statistics(), 0.0),
            bags,
            Schedule(0, 1),
            range(2),
            0.01,
        )


def test_without_torch_the_extra_is_named():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from tertulia.errors import InputError\n"
        "try:\n    import tertulia.methods.gfedntm.method\n"
        "except InputError as error:\n    print(error)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "pip install 'tertulia[neural]'" in said
