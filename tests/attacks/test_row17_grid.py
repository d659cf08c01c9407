"""Low bits of floating sums certify that a word does not occur; topics that are no distributions steer the sums."""

import numpy as np
import pytest

from helpers.attacks_noise import WORDS, ask, corpus_of, party
from tertulia.methods.pctd.method import UnitTask, expect
from tertulia.methods.pctd.settings import UnitNoise, UnitSettings

METHODS = ("tertulia.methods.pctd.method",)


def task(phi, noise=True):
    return UnitTask(
        WORDS, UnitSettings(), UnitNoise(mode="paper", sigma=1.0, rounds=1) if noise else None, np.asarray(phi, float)
    )


def test_what_leaves_lies_on_the_grid(tmp_path):
    host = party(tmp_path / "north", corpus_of(["ache ache burn", "burn cold ache"]), methods=METHODS)
    answer = ask(host, expect, task([[0.2] * 5]))
    assert answer.kind == "ok", answer.text
    steps = np.ldexp(np.asarray(answer.reply.counts), 20)
    assert np.array_equal(steps, np.rint(steps))
    assert np.any(steps)


@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize(
    "phi", [[[1.0] * 5], [[0.2, 0.2, 0.2, 0.2, 0.3]], [[1.2, -0.2, 0, 0, 0]], [[np.nan] * 5], [[1.0, 0, 0, 0, 0]]]
)
def test_topics_that_are_no_distributions_are_refused_before_any_charge(tmp_path, phi, noise):
    host = party(tmp_path / "north", corpus_of(["ache ache burn"]), methods=METHODS, policy="")
    assert ask(host, expect, task(phi, noise)).kind == "failed"
    assert host.ledger.releases() == []
