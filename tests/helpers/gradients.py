"""Documents read off the gradients of ProdLDA, as a server gets them: of one batch, or summed over parties by masks.

The first layer's gradient is X^T D, X the bags of words and D [B, H] the derivative at the first layer. Rows of absent
words are zero, so the vocabulary of the batch is exact. A row of a word that only one document holds is a multiple of
that document's D: such rows are the extreme rays of the cone of all rows. Found, they give D, and least squares give X.
A sum over parties is the gradient of all their documents, as long as these are no more than H.
"""

import numpy as np
from scipy.optimize import nnls

from tertulia.methods.gfedntm.private import BITS, mechanism_of
from tertulia.methods.gfedntm.settings import DocumentNoise
from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.bags import Bags, Noise
from tertulia.models.neural.clipped import Clipping, clipped_sum
from tertulia.models.neural.network import Network
from tertulia.privacy.noise import NoiseKey

V, H, B = 400, 50, 8
PARTIES = 4  # 32 documents: fewer than H
EPSILON = 3.0  # of a document in mode `doc`, for a single step


def documents(random, number=B):
    """Bags in which every document has a few words of its own."""
    bags = np.zeros((number, V))
    for b in range(number):
        bags[b, random.choice(300, 25, replace=False)] = random.integers(1, 4, 25)
        bags[b, 300 + 3 * b : 303 + 3 * b] = 1
    return bags


def bags_of(true):
    """The bags of a batch as the network reads them."""
    rows, words = np.nonzero(true)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rows))))
    return Bags(words, true[rows, words].astype(np.float32), offsets, np.arange(len(true), dtype=np.uint64), None)


def attack(gradient):
    """Bags of words [B, V] from the gradient [V, H] of a mean loss, up to the order of documents and their scale."""
    present = np.flatnonzero(np.abs(gradient).max(axis=1) > 0)
    rank = np.linalg.matrix_rank(gradient[present], rtol=1e-6)
    rows = gradient[present] / np.linalg.norm(gradient[present], axis=1, keepdims=True)
    rows = rows[np.unique((rows / 1e-6).round(), axis=0, return_index=True)[1]]  # each direction once
    basis = np.linalg.svd(rows, full_matrices=False)[2][:rank].T
    flat = rows @ basis
    rays = [i for i in range(len(flat)) if nnls(np.delete(flat, i, axis=0).T, flat[i])[1] > 1e-5]
    found = np.linalg.lstsq(rows[rays].T, gradient[present].T, rcond=None)[0]  # [rays, present]
    bags = np.zeros((len(rays), len(gradient)))
    least = np.array([np.min(row[row > 1e-3 * row.max()], initial=np.inf) for row in found])  # a word that occurs once
    bags[:, present] = (found / least[:, None]).round()
    return present, bags


def read_off(mode, parties=1, seed=4):
    """Return the share of documents that are read without an error, in `clear` or `doc`."""
    random = np.random.default_rng(seed)
    true = documents(random, B * parties)
    batches = [true[first : first + B] for first in range(0, len(true), B)]
    kind = "batch" if mode == "clear" and parties == 1 else "layer"  # in mode `doc` documents are not mixed
    network = Network("prodlda", Sizes(V, 10, hidden=(H, H), shifts=kind == "layer"), kind, "float64")
    weights = network.initial_weights(0)
    if mode == "clear":
        sent = [network.gradient(weights, bags_of(own).select(np.arange(B)), Noise(0, 0)).flat for own in batches]
    else:
        noise = DocumentNoise(epsilon=EPSILON, delta=1e-6, clip=1.0, sampling_rate=1.0, rounds=1)
        mechanism = mechanism_of(noise, shares=parties)
        sent = [_noisy(network, weights, bags_of(own), mechanism, (seed, i)) for i, own in enumerate(batches)]
    gradient = network.named(np.sum(sent, axis=0))["words"]
    if mode == "doc":  # no row is zero any more: the attacker takes as many words as documents can have
        strength = np.linalg.norm(gradient, axis=1)
        gradient = np.where((strength >= np.sort(strength)[-28 * parties])[:, None], gradient, 0.0)
    present, found = attack(gradient)
    assert mode == "doc" or set(present) == set(np.flatnonzero(true.sum(axis=0)))  # the vocabulary of the batch
    return float(np.mean([any(np.array_equal(own, guess) for guess in found) for own in true]))


def _noisy(network, weights, bags, mechanism, key):
    total = clipped_sum(network, weights, bags, np.arange(B), Noise(0, 0), Clipping(1.0, BITS))
    stream = NoiseKey.fixed(bytes([*key, *range(30)])).stream("run", "release", "message")
    return np.ldexp(mechanism.apply(total, stream).astype(np.float64), -BITS)
