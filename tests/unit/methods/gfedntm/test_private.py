"""Mode `doc`: its refusals, its noise, its constant divisor, and the coins that choose documents."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import tertulia as tt
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.party.context import StepContext
from tertulia.methods.gfedntm.agreement import begin
from tertulia.methods.gfedntm.private import (
    BITS,
    NoisySum,
    PrivateTask,
    mechanism_of,
    plan_private,
    private_round,
    send_noisy_sum,
)
from tertulia.methods.gfedntm.settings import DocumentNoise, GFedNTMSettings
from tertulia.privacy.accounting import guarantee_of
from tertulia.privacy.noise import NoiseKey

PRIVATE = {
    "mode": "doc",
    "epsilon": 2.0,
    "declared_documents": 10_000,
    "rounds": 4,
    "sampling_rate": 0.5,
    "topics": 2,
    "hidden": (4,),
    "vocabulary": {"mode": "public", "words": ("river", "bank", "cloud")},
}


def settings(**changes):
    return GFedNTMSettings(**{**PRIVATE, **changes})


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"declared_documents": None}, "never by one that was counted: set declared_documents"),
        ({"epsilon": None}, "mode 'doc' needs an epsilon of a document: set epsilon"),
        ({"mode": "clear"}, "an epsilon goes with mode 'doc'"),
        ({"rounds": None}, "mode 'doc' pays for each step: set rounds"),
        ({"epochs": 3}, "counts rounds, not passes over the documents: leave epochs out"),
        ({"normalisation": "batch"}, "BatchNorm, which mixes documents: set normalisation = 'layer'"),
        ({"normalisation": "sync"}, "BatchNorm, which mixes documents: set normalisation = 'layer'"),
        ({"model": "combinedtm"}, "trains ProdLDA only, not 'combinedtm'"),
        ({"sampling_rate": 0.0}, "sampling_rate"),
        ({"sampling_rate": 1.1}, "sampling_rate"),
        ({"delta": 1e-4}, r"delta = 0.0001 is not below 1 / 10000 \(declared_documents\)"),
        ({"averaging": "fedavg"}, "set averaging = 'syncopt'"),
        ({"compression": "fp16"}, "leave compression out"),
        ({"scenario": "alone"}, "use tt.ProdLDA at each of them"),
        ({"validation": 0.25}, "set validation = 0"),
        ({"vocabulary": {"mode": "union"}}, "mode 'doc' needs a public word list"),
    ],
)
def test_what_would_break_the_promise_is_refused(changes, said):
    with pytest.raises(ConfigError, match=said):
        tt.GFedNTM(**{**PRIVATE, **changes})


def test_an_epsilon_that_drowns_every_gradient_is_refused_before_anything_is_spent():
    with pytest.raises(ConfigError, match="epsilon = 2 is too small for 4 documents and 4 steps"):
        plan_private(settings(declared_documents=4))
    (planned,) = plan_private(settings())
    assert planned.times == 4


# --- noise ------------------------------------------------------------------------------------------------------------


def test_the_plan_costs_epsilon_at_most_and_a_partys_own_epsilon_adds_noise():
    (planned,) = plan_private(settings())
    cost = guarantee_of(planned.mechanism, 1e-6, planned.times).epsilon
    assert 1.98 < cost <= 2.0
    assert planned.mechanism.claimed.epsilon == 2.0
    how = settings().part(DocumentNoise)
    assert mechanism_of(how, own_epsilon=1.0) == mechanism_of(settings(epsilon=1.0).part(DocumentNoise))
    assert mechanism_of(how, own_epsilon=1.0).sigma > 1.5 * planned.mechanism.sigma
    assert mechanism_of(how, own_epsilon=9.0) == planned.mechanism
    (own,) = plan_private(settings().with_own_epsilon(1.0))
    assert own.mechanism == mechanism_of(how, own_epsilon=1.0)


# --- the server's step ------------------------------------------------------------------------------------------------


class OneTotal:
    """A federation that gives one total, whatever it is asked."""

    answered = ("north",)

    def __init__(self, total=None):
        self.total, self.asked = total, []

    def sum(self, step, message):
        self.asked.append((step, message))
        return NoisySum(self.total)


@pytest.mark.parametrize("declared", [10_000, 40_000])
def test_a_total_is_divided_by_the_declared_number_however_many_parties_answered(declared):
    config = settings(declared_documents=declared, optimiser="sgd", learning_rate=0.5, clip=3.0, precision="float64")
    state = begin(OneTotal(), config)  # asks nothing: nothing is counted
    fed = OneTotal(np.arange(len(state.weights), dtype=np.int64) << BITS)
    after, metrics = private_round(fed, config, state)
    moved = 0.5 * 3.0 * np.arange(len(state.weights)) / (0.5 * declared)
    assert np.abs(state.weights - after.weights - moved).max() < 1e-12
    assert (after.step, metrics) == (1, {})
    ((asked, message),) = fed.asked
    assert asked is send_noisy_sum
    message.check()
    norm = dataclasses.replace(message.task.architecture, normalisation="batch")
    with pytest.raises(FormatError, match="LayerNorm"):
        PrivateTask(dataclasses.replace(message.task, architecture=norm), message.noise).check()


# --- coins ------------------------------------------------------------------------------------------------------------


def chosen(key=1, seed=3, run="run", asked="hash", place=(1, 0), contents=0, rate=0.3, n=4000):
    host = SimpleNamespace(
        noise_key=NoiseKey.fixed(bytes([key]) * 32), config=SimpleNamespace(id="north", seed=seed), seed=lambda _: seed
    )
    question = SimpleNamespace(run=run, place=place, hash=asked)
    context = StepContext(host, question, None)
    return context.sample(rate, (np.array([contents]), np.arange(3)), n)


def test_a_repeated_question_chooses_the_same_documents_whatever_the_public_seed():
    first = chosen()
    assert np.array_equal(first, chosen())
    assert np.array_equal(first, chosen(seed=99))


@pytest.mark.parametrize("change", [{"key": 2}, {"run": "r"}, {"asked": "h"}, {"place": (2, 0)}, {"contents": 1}])
def test_everything_else_tosses_other_coins(change):
    both = np.intersect1d(chosen(), chosen(**change)).size
    assert abs(both - 4000 * 0.09) < 100  # as many as by chance: 360, with a deviation of 18


def test_coins_fall_as_often_as_the_rate_says():
    assert abs(chosen().size - 1200) < 145  # five deviations
    assert np.array_equal(chosen(rate=1.0), np.arange(4000))
    assert chosen(n=0).size == 0
