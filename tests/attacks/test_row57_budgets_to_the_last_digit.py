"""A budget that equals epsilon is refused because of the last bit of a logarithm."""

import numpy as np
import pytest

from tertulia.corpus import Corpus
from tertulia.errors import PolicyRefusal
from tertulia.federation.types import Nothing, Planned, step
from tertulia.kernels.reports import Channel
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms.token_reports import TokenReports
from tertulia.privacy.policy import Policy
from tertulia.runs.budgets import verdicts
from tertulia.runs.settings import RunSettings
from tertulia.runs.trial import trial

BUDGET = '[[budget]]\nunit = "token"\nadjacency = "substitute"\nepsilon = {!r}\ndelta = 0.0\n'


@step
def report(party, state, ask: Nothing):
    """Never run: the plan names it."""


def reports(epsilon, words):
    return TokenReports("reports of tokens", channel=Channel("krr", epsilon, V=words))


def charge(epsilon, words, budget):
    mechanism = reports(epsilon, words)
    release = Release.of(
        mechanism, id="a", party="north", round=0, step="s", verb="reports", message_hash="", x=np.zeros(0)
    )
    return Ledger(":memory:").record(release, Policy.parse(BUDGET.format(budget)))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 8.0])
def test_what_equals_the_budget_is_within_it(epsilon):
    for words in (2, 3, 4, 5, 6, 7, 11, 50, 3309, 100_000):
        assert charge(epsilon, words, epsilon)
        planned = [Planned(report, "reports", reports(epsilon, words), 1)]
        policy, settings = Policy.parse(BUDGET.format(epsilon)), RunSettings(method={"name": "consensus"})
        with trial(settings, "north", policy, lambda: Corpus.from_texts(["rain"])) as charged:
            assert verdicts(planned, settings, policy, charged) == ["allowed"]


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_what_is_really_above_is_not(epsilon):
    with pytest.raises(PolicyRefusal, match="budget"):
        charge(epsilon, 50, epsilon * (1 - 1e-8))
