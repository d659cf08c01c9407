"""Planted violations: each small variant of an honest step is caught, by the kind of promise that it breaks."""

import pytest

from helpers import leaks
from helpers.modes import PARTIES
from helpers.replays import corpora_of, replayed, said
from tertulia.federation.party import reports
from tertulia.privacy.noise import NoiseKey


def method(step):
    return {"name": "custom", "module": leaks.__name__, "config": {"step": step.__name__}}


@pytest.mark.parametrize("step", leaks.KEPT, ids=lambda step: step.__name__)
def test_honest_steps_keep_their_promises(step):
    report = replayed(corpora_of(PARTIES), method(step))
    assert said(report) == []
    assert 0.05 < report.closest <= 1


@pytest.mark.parametrize("step", leaks.BROKEN, ids=lambda step: step.__name__)
def test_a_planted_violation_is_caught(step):
    report = replayed(corpora_of(PARTIES), method(step))
    found = [violation for violation in report.violations if violation.kind == leaks.BROKEN[step]]
    assert {violation.step for violation in found} == {f"leaks:{step.__name__}"}, said(report)


def test_noise_that_does_not_depend_on_the_contents_is_caught(monkeypatch):
    monkeypatch.setattr(NoiseKey, "mac_of_array", lambda self, x: "0" * 32)
    kinds = {violation.kind for violation in replayed(corpora_of(PARTIES), method(leaks.sum_clipped)).violations}
    assert kinds == {"noise"}


def test_reports_that_do_not_depend_on_the_document_are_caught(monkeypatch):
    monkeypatch.setattr(reports, "contents_name", lambda documents, key: "0" * 32)
    kinds = {violation.kind for violation in replayed(corpora_of(PARTIES), method(leaks.count_reports)).violations}
    assert kinds == {"noise"}


def test_a_violation_says_where_and_by_how_much():
    report = replayed(corpora_of(PARTIES), method(leaks.sum_unclipped))
    worst = max(report.violations, key=lambda violation: violation.observed)
    assert (worst.neighbour, worst.what, worst.declared) == ("a document replaced by a long one", "sum", 2.0)
    assert worst.observed == pytest.approx(1000, rel=2e-2)
    assert worst.text.startswith("leaks:sum_unclipped, 'sum', round 0, a document replaced by a long one: the input ")
