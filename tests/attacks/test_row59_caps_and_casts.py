"""Proposals of very many rounds took memory and time before anything was refused; 16 bits passed a bound as 0."""

import time
import tracemalloc

import numpy as np
import pytest

from helpers.attacks import LIST, OPEN, PUBLIC, Attacked
from tertulia.corpus import Corpus
from tertulia.errors import PolicyRefusal
from tertulia.methods.common.evaluation import Candidate, score
from tertulia.privacy.policy import Policy
from tertulia.runs.budgets import announced, check_caps, forecast, planned_releases
from tertulia.runs.settings import RunSettings

METHODS = [
    {"name": "pctd", "topics": 2, "mode": "paper", "sigma": 200.0, "vocabulary": PUBLIC},
    {"name": "fedlda", "topics": 2, "mode": "paper", "epsilon": 1.0, "mechanism": "krr", "vocabulary": PUBLIC},
    {"name": "consensus", "topics": 2, "mode": "sound", "epsilon": 4.0, "evaluate": True, "vocabulary": PUBLIC},
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method["name"])
def test_many_rounds_are_forecast_in_no_time(method):
    corpus = Corpus.from_texts([" ".join(LIST)] * 5)
    policy = Policy(score_epsilon=0.1)
    forecast(RunSettings(method={**method, "rounds": 2}), "north", policy, corpus)  # imports
    tracemalloc.start()
    began = time.monotonic()
    settings = RunSettings(method={**method, "rounds": 200_000})
    (found,) = forecast(settings, "north", policy, corpus)
    assert len(planned_releases(announced(settings, "north", policy), "north")) < 10
    assert time.monotonic() - began < 20
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()
    assert found.after > 0


def test_counted_rounds_cost_what_single_ones_do():
    from dataclasses import replace

    from tertulia.privacy import accounting
    from tertulia.privacy.mechanisms import Adjacency, Unit

    settings = RunSettings(method={**METHODS[0], "rounds": 3})
    (one,) = [r for r in planned_releases(announced(settings, "north"), "north") if r.charges and not r.metric]
    single = [replace(one, id=f"r{i}", event=one.event["event"]) for i in range(3)]
    costs = [accounting.cost(some, Unit.TOKEN, Adjacency.NULL_REPLACE, 1e-6).epsilon for some in ([one], single)]
    assert costs[0] == pytest.approx(costs[1])


@pytest.mark.parametrize(
    ("settings", "policy", "rule"),
    [
        ({"rounds": 200_000}, {"max_rounds": 1000}, "max_rounds"),
        ({"topics": 60}, {"max_topics": 50}, "max_topics"),
        ({}, {"max_words": 5}, "max_words"),
        ({"topics": 60}, {"max_cells": 500}, "max_cells"),
        ({"start_sweeps": 300}, {"max_sweeps": 200}, "max_sweeps"),
    ],
)
def test_caps_come_first(settings, policy, rule):
    method = RunSettings(method={**METHODS[2], **settings}).method
    with pytest.raises(PolicyRefusal) as refusal:
        check_caps(method, Policy(**policy))
    assert refusal.value.rule == rule


def test_zeros_of_16_bits_are_below_the_bound(tmp_path):
    party = Attacked(tmp_path, METHODS[2], OPEN)
    phi = np.full((2, len(LIST)), 1 / len(LIST))
    for dtype in (np.float16, np.float32, np.float64):
        answer = party.ask(score, Candidate(LIST, phi, np.zeros(2, dtype), 0.0), "sum")
        assert answer.kind == "failed"
        assert "'alpha' must hold numbers from 1e-20" in party.log.splitlines()[-1]
    assert party.ask(score, Candidate(LIST, phi, np.ones(2, np.float16), 0.0), "sum").kind == "ok"
