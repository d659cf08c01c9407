"""A party sends NaN, negative or absurd weights, or more documents than can be: it loses its place in the round."""

import numpy as np
import pytest

from helpers import toys
from helpers.attacks_hostile import honest, sends, server
from tertulia.errors import FormatError
from tertulia.federation.checks import check_reply, reply_type
from tertulia.federation.server.aggregation import add_replies
from tertulia.federation.types import Nothing
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import LocalModel, LocalTask
from tertulia.methods.common.vocabulary import ProposedWords, propose_words
from tertulia.methods.consensus.method import Counts, Shared, count_together
from tertulia.methods.ftm.method import train_local
from tertulia.methods.registry import METHODS

POISON = {
    "negative weight": toys.Weighted(np.array([3e7]), np.array(-5.9)),
    "absurd weight": toys.Weighted(np.array([1.0]), np.array(1e12)),
    "a weight that is none": toys.Weighted(np.array([1.0]), np.array(np.nan)),
    "many weights": toys.Weighted(np.array([1.0]), np.array([1.0, 2.0])),
    "NaN": toys.Weighted(np.array([np.nan]), np.array(1.0)),
    "infinity": toys.Weighted(np.array([np.inf]), np.array(1.0)),
    "beyond all bounds": toys.Weighted(np.array([1e300]), np.array(1.0)),
    "integers that overflow": toys.Weighted(np.array([2**62]), np.array(1.0)),
    "another shape": toys.Weighted(np.ones((2, 2)), np.array(1.0)),
}
TASK = LocalTask(("rain", "sun"), Training(), None, with_sizes=False)
ROWS = np.array([[0.5, 0.5]], np.float32)


@pytest.mark.parametrize("name", POISON)
def test_poison_is_not_added_up(name, tmp_path):
    fed, warnings = server(tmp_path, a=honest(4.0), b=sends(POISON[name]), c=honest(4.0))
    assert float(fed.mean(toys.weigh, Nothing()).value[0]) == 2.0
    assert fed.answered == ["a", "c"]
    assert len(warnings) == 1
    fed.commit(Nothing())
    assert fed.history[-1]["weights"] == {"a": 2.0, "c": 2.0}


@pytest.mark.parametrize(
    "model",
    [
        LocalModel(ROWS, np.array(10**12)),
        LocalModel(ROWS, np.array(-1)),
        LocalModel(np.array([[2.0, -1.0]], np.float32), np.array(3)),
        LocalModel(np.array([[0.9, 0.9]], np.float32), np.array(3)),
        LocalModel(np.ones((1, 3), np.float32) / 3, np.array(3)),
        LocalModel(np.zeros((0, 2), np.float32), np.array(3)),
    ],
)
def test_ftm_takes_only_distributions_of_possible_parties(model, tmp_path):
    good = sends(LocalModel(ROWS, np.array(3)))
    fed, _ = server(tmp_path, a=good, b=sends(model))
    assert list(fed.each(train_local, TASK)) == ["a"]


def test_a_first_party_of_two_cannot_push_out_the_second_by_another_shape(tmp_path):
    ask = Shared(("rain", "sun"), Training(), np.ones((2, 2), np.int64), np.ones(2), 0, adds_up=False)
    wrong = Counts(np.ones((2, 3), np.int32), np.ones((0, 2), np.int32), np.zeros(2, np.int64))
    right = Counts(np.ones((2, 2), np.int32), np.ones((0, 2), np.int32), np.zeros(2, np.int64))
    fed, _ = server(tmp_path, a=sends(wrong), b=sends(right))
    assert fed.sum(count_together, ask).counts.tolist() == [[1, 1], [1, 1]]
    assert fed.answered == ["b"]


def test_words_must_be_words(tmp_path):
    broken = ProposedWords(np.frombuffer(b"rain", np.uint8), np.array([0, 9]), np.array([1]), np.array(3))
    more = ProposedWords(np.frombuffer(b"rain", np.uint8), np.array([0, 4]), np.array([5]), np.array(3))
    good = ProposedWords(np.frombuffer(b"rain", np.uint8), np.array([0, 4]), np.array([2]), np.array(3))
    fed, _ = server(tmp_path, a=sends(good), b=sends(broken), c=sends(more))
    assert list(fed.each(propose_words, Nothing())) == ["a"]


def test_the_sum_itself_is_checked():
    with pytest.raises(FormatError, match="no finite sum"):
        add_replies([toys.Number(np.array([np.nan])), toys.Number(np.array([1.0]))])


@pytest.mark.parametrize("name", sorted({method.module for method in METHODS.values()}))
def test_every_step_says_of_which_kind_its_replies_are(name):
    module = __import__(name, fromlist=["STEPS"])
    assert all(reply_type(step) is not object for step in module.STEPS)
    with pytest.raises(FormatError, match="is no"):
        check_reply(toys.Number(np.ones(1)), module.STEPS[0], Nothing())
