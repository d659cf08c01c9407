"""What a gradient discloses: from one gradient of a mini-batch the server reads off its documents.

The first layer's gradient is X^T D, X the bags of words and D [B, H] the derivative at the first layer. Rows of absent
words are zero, so the batch's vocabulary is exact. A row of a word that only one document holds is a multiple of that
document's D: such rows are the extreme rays of the cone of all rows. Found, they give D, and least squares give X.
"""

import numpy as np
import torch
from scipy.optimize import nnls

from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.bags import Bags, Noise
from tertulia.models.neural.network import Network

torch.set_num_threads(1)
V, H, B = 400, 50, 8


def documents(random):
    """Bags in which every document has a few words of its own."""
    bags = np.zeros((B, V))
    for b in range(B):
        bags[b, random.choice(300, 25, replace=False)] = random.integers(1, 4, 25)
        bags[b, 300 + 3 * b : 303 + 3 * b] = 1
    return bags


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
    least = np.array([row[row > 1e-3 * row.max()].min() for row in found])  # a word that occurs once
    bags[:, present] = (found / least[:, None]).round()
    return present, bags


def test_documents_are_read_off_one_gradient():
    random = np.random.default_rng(4)
    true = documents(random)
    rows, words = np.nonzero(true)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rows))))
    bags = Bags(words, true[rows, words].astype(np.float32), offsets, np.arange(B, dtype=np.uint64), None)
    network = Network("prodlda", Sizes(V, 10, hidden=(H, H)), "batch", "float64")
    sent = network.gradient(network.initial_weights(0), bags.select(np.arange(B)), Noise(0, 0))
    present, found = attack(network.named(sent.flat)["words"])
    assert set(present) == set(words)  # the vocabulary of the batch, without an error
    exact = sum(any(np.array_equal(document, guess) for guess in found) for document in true)
    assert exact == B
