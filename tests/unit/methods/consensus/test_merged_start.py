"""What is dropped of the topics that a run starts from, and what is not."""

import numpy as np

from tertulia.methods.common.local_lda import LocalModel
from tertulia.methods.consensus.merged_start import StartTopics

ROWS = np.array([[0.9, 0.1, 0.0, 0.0], [0.0, 0.0, 0.9, 0.1]], np.float32)
ODD = np.array([[0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]], np.float32)
MODELS = {
    "north": LocalModel(ROWS, np.array(10)),
    "south": LocalModel(ROWS, np.array(30)),
    "liar": LocalModel(ODD, np.array(10**6)),
}


def test_weights_are_documents_up_to_the_median():
    assert StartTopics.of(MODELS, np.inf).weights.tolist() == [10, 10, 30, 30, 10**6, 10**6]
    assert StartTopics.of(MODELS).weights.tolist() == [10, 10, 30, 30, 30, 30]


def test_topics_of_who_is_left_out_are_dropped():
    left = StartTopics.of(MODELS).without(("liar",), np.array([5, 5]))
    assert left.party_of.tolist() == ["north", "north", "south", "south"]
    assert left.merge(2).tolist() == [[3600, 400, 0, 0], [0, 0, 3600, 400]]


def test_topics_that_nobody_uses_are_dropped():
    used = np.array([900, 900, 3, 2])  # four clusters: one for each of the common topics and of the odd ones
    assert StartTopics.of(MODELS).without((), used).party_of.tolist() == ["north", "north", "south", "south"]


def test_never_fewer_are_left_than_a_model_needs():
    few = StartTopics.of({name: MODELS[name] for name in ("north", "liar")})
    assert few.without((), np.array([900, 900, 3, 2])).party_of.tolist() == ["north", "north", "liar", "liar"]
    assert few.without(("liar",), np.array([9, 9, 9])) is few
