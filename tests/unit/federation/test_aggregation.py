"""How replies are added up: in 64 bits, field by field, in party order."""

import numpy as np
import pytest

from helpers import toys
from tertulia.errors import FormatError, QuorumError
from tertulia.federation.server.aggregation import add_replies, average_replies
from tertulia.federation.server.handle import Handle
from tertulia.federation.server.journal import Journal

ORDERED = (1.0, 2.0**53, -(2.0**53))  # 1 + 2^53 rounds to 2^53, so the sum is 0 in this order, and 1 in another


def numbers(*values):
    return [toys.Number(np.array(value)) for value in values]


def test_replies_are_added_one_after_the_other_in_the_order_given():
    assert add_replies(numbers(*ORDERED)).value == 0.0
    assert add_replies(numbers(*ORDERED[::-1])).value == 1.0


class Backwards:
    """A transport whose answers arrive in the reverse of party order."""

    def __init__(self, transport):
        self.transport = transport
        self.parties = transport.parties

    def ask(self, frames, timeout):
        answers = self.transport.ask(frames, timeout)
        return {party: answers[party] for party in reversed(self.parties)}


@pytest.mark.parametrize("transport", [Backwards, lambda transport: transport], ids=["backwards", "in order"])
def test_the_order_is_that_of_parties_and_not_of_answers(transport, toy_run, tmp_path):
    local = toy_run(tmp_path / "run").transport("local", 3)
    handle = Handle("run", transport(local), Journal(tmp_path / "server"))
    values = dict(zip("abc", ORDERED, strict=True))
    shuffled = {party: toys.Number(np.array(values[party])) for party in "cab"}
    assert handle.sum(toys.send_back, shuffled).value == 0.0
    assert handle.answered == ["a", "b", "c"]
    local.close()


def test_integers_are_added_in_64_bits():
    total = add_replies(numbers(np.int8(100), np.int8(100))).value
    assert total == 200
    assert total.dtype == np.int64
    assert add_replies(numbers(2**62, -(2**62), 2**53 + 1)).value == 2**53 + 1  # a float64 could not hold it


def test_half_precision_is_added_in_full():
    total = add_replies(numbers(*[np.full(3, 0.1, dtype=np.float16)] * 3)).value
    assert total.dtype == np.float64
    assert np.array_equal(total, np.full(3, 3 * float(np.float16(0.1))))


def test_a_mean_divides_totals_by_the_sum_of_weights():
    replies = [toys.Weighted(np.array([6.0, 0.0]), np.array(2.0)), toys.Weighted(np.array([0.0, 8.0]), np.array(6.0))]
    mean = average_replies(replies)
    assert np.array_equal(mean.value, [0.75, 1.0])
    assert mean.weight == 8.0


def test_weights_that_sum_to_nothing_have_no_mean():
    with pytest.raises(QuorumError, match="no mean exists"):
        average_replies([toys.Weighted(np.array(0.0), np.array(0.0))])


@pytest.mark.parametrize("odd", [np.zeros(3), np.zeros((2, 1))])
def test_shapes_that_differ_are_refused(odd):
    with pytest.raises(FormatError, match="'value' cannot be summed"):
        add_replies(numbers(np.zeros(2), odd))


def test_what_is_no_number_is_refused():
    with pytest.raises(FormatError, match="'value' cannot be summed"):
        add_replies(numbers(np.array([True]), np.array([False])))
