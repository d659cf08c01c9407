"""Mechanisms: what they say of themselves, and what they refuse."""

import math

import attr
import numpy as np
import pytest

from helpers.mechanisms import Concentrated
from tertulia.errors import ConfigError, InputError, Unreleased
from tertulia.kernels.reports.channel import Channel
from tertulia.privacy.events import from_data
from tertulia.privacy.mechanisms import (
    Adjacency,
    Claim,
    Clear,
    Derived,
    DiscreteLaplace,
    Public,
    Unit,
)
from tertulia.privacy.mechanisms.token_reports import TokenReports
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.releases import Release

ALL = [
    Clear("topic-word matrix", claimed=Claim(8.0, 0.0, "FTM sec. 3.1.1")),
    Public("number of documents"),
    Derived("topic shares", parents=("run/north/0",)),
    DiscreteLaplace("counts", 2, 1.0, unit=Unit.TOKEN, adjacency=Adjacency.SUBSTITUTE),
    Concentrated("moments", rho=0.02, unit=Unit.USER),
]


def release(mechanism, **changes):
    x = np.zeros((2, 3))
    return Release.of(
        mechanism, id="a", party="north", round=1, step="m:s", verb="sum", message_hash="ff", x=x, **changes
    )


def stream():
    return NoiseKey.fixed(bytes(32)).stream("run", "id", "hash")


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.name)
def test_a_release_survives_json(mechanism):
    record = release(mechanism, run="r1")
    again = Release.from_json(record.to_json())
    assert again == record
    assert again.to_json() == record.to_json()
    assert (again.shape, again.nbytes, again.dtype) == ((2, 3), 48, "float64")


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.name)
def test_the_charge_is_a_dp_accounting_event(mechanism):
    charge = mechanism.charge()
    assert (charge is None) == (mechanism.name == "derived")
    if charge is not None:
        event = from_data(charge)
        assert {"type": type(event).__name__, **attr.asdict(event)} == charge


def test_nested_events_are_rebuilt():
    one = {"type": "GaussianDpEvent", "noise_multiplier": 2.0}
    nested = {"type": "ComposedDpEvent", "events": [one, {"type": "SelfComposedDpEvent", "event": one, "count": 3}]}
    event = from_data(nested)
    assert event.events[1].event == event.events[0] == from_data(one)
    assert event.events[1].count == 3


def test_noise_that_a_step_draws_is_no_way_out():
    reports = TokenReports("reports of tokens", channel=Channel("krr", 4.0, 100))
    with pytest.raises(Unreleased, match="'reports of tokens' by token-reports is no way out"):
        reports.apply(np.arange(3), stream())


def test_clear_is_the_thing_itself_and_unprotected():
    x = np.arange(3.0)
    assert Clear("x").apply(x, stream()) is x
    assert release(Clear("x")).non_private
    assert release(Clear("x")).sensitivity == math.inf


def test_public_says_what_it_assumes():
    record = release(Public("number of documents", assumptions=("documents are equally long",)))
    assert record.assumptions == ("documents are equally long", "number of documents is public")
    assert not record.charges


def test_post_processing_takes_released_arrays_and_ids():
    released = np.zeros(3).view(_Released)
    released.release_id = "b"
    assert release(Derived("y", parents=(released, "c"))).parents == ("b", "c")


class _Released(np.ndarray):
    release_id: str | None = None


@pytest.mark.parametrize("parents", [(), (np.zeros(3),), ("b", np.zeros(3))], ids=["none", "raw", "mixed"])
def test_post_processing_of_raw_data_is_refused(parents):
    with pytest.raises(Unreleased, match="release the parents first"):
        release(Derived("y", parents=parents))


def test_noise_is_for_integers_only():
    mechanism = ALL[3]
    with pytest.raises(InputError, match=r"not float64; clip, scale by 2\*\*b and round"):
        mechanism.apply(np.zeros(3), stream())


def test_noise_depends_on_the_stream_alone():
    mechanism = ALL[3]
    zeros, thousands = np.zeros((4, 5), dtype=np.int32), np.full((4, 5), 1000, dtype=np.uint16)
    np.testing.assert_array_equal(mechanism.apply(zeros, stream()) + 1000, mechanism.apply(thousands, stream()))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: DiscreteLaplace("x", 1.5, 1.0), "sensitivity = 1.5"),
        (lambda: DiscreteLaplace("x", 0, 1.0), "sensitivity = 0"),
        (lambda: DiscreteLaplace("x", 1, 0.0), "epsilon = 0.0"),
        (lambda: DiscreteLaplace("x", 1, -1.0), "epsilon = -1.0"),
        (lambda: DiscreteLaplace("x", 1, math.nan), "epsilon = nan"),
        (lambda: DiscreteLaplace("x", 1, math.inf), "epsilon = inf"),
    ],
)
def test_impossible_parameters_are_named(make, named):
    with pytest.raises(ConfigError, match=named):
        make()
