"""A forecast said "nothing more", or too much: it guessed what the ledger would charge, instead of charging a copy."""

import json

import pytest

from helpers.texts import STEMS, mixed
from tertulia.corpus.recipes import read_recipe
from tertulia.errors import PolicyRefusal
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.policy import Policy
from tertulia.runs.budgets import check_budgets, forecast
from tertulia.runs.documents import sources_of
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import load

BUDGET = '[[budget]]\nunit = "token"\nadjacency = "substitute"\nepsilon = {}\ndelta = 0.0\n'
OTHER = [*STEMS[:-1], "another"]  # a list of the same length


class Party:
    """A party whose documents, words and policy change between runs from one home."""

    def __init__(self, place):
        self.place, self.runs, self.texts = place, 0, mixed(1, 12)

    def settings(self, words=STEMS, policy=""):
        rows = [json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(self.texts)]
        (self.place / "notes.jsonl").write_text("".join(rows))
        (self.place / "policy.toml").write_text(policy)
        (self.place / "run.toml").write_text(
            f'directory = "run{self.runs}"\nheldout = 0.0\n[method]\nname = "consensus"\ntopics = 2\nmode = "sound"\n'
            f'start_sweeps = 1\nsweeps = 1\nrounds = 1\nepsilon = 4.0\n[method.vocabulary]\nmode = "public"\n'
            f'words = {json.dumps(words)}\n[parties.north]\npath = "notes.jsonl"\nid = "id"\npolicy = "policy.toml"\n'
            'home = "home"\n'
        )
        return load(self.place / "run.toml")

    def forecast(self, **changes):
        """What is spent, and what would be after the run."""
        settings = self.settings(**changes)
        corpus = read_recipe(sources_of(settings)["north"])
        policy = Policy.load(self.place / "policy.toml")
        (found,) = forecast(settings, "north", policy, corpus)
        return found.spent, found.after

    def run(self, **changes):
        """Run, and say what the ledger has after that."""
        finish(begin(self.settings(**changes)))
        self.runs += 1
        ledger = Ledger(self.place / "home" / "ledger.sqlite")
        spent = ledger.cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 0.0).epsilon
        ledger.close()
        return spent


@pytest.fixture
def party(tmp_path):
    return Party(tmp_path)


def test_another_list_of_the_same_length_costs_again(party):
    policy = BUDGET.format(20)
    assert party.forecast(policy=policy) == pytest.approx((0.0, party.run(policy=policy)))
    assert party.forecast(policy=policy) == pytest.approx((4.0, 4.0))  # the same reports once more
    spent, after = party.forecast(words=OTHER, policy=policy)
    assert (spent, after) == pytest.approx((4.0, 8.0))
    assert party.run(words=OTHER, policy=policy) == pytest.approx(after)


def test_edited_documents_are_refused_before_the_run_not_within(party):
    tight = BUDGET.format(5)
    party.run(policy=tight)
    party.texts[0] += f" {STEMS[0]}"
    assert party.forecast(policy=tight) == pytest.approx((4.0, 8.0))
    settings, policy = party.settings(policy=tight), Policy.parse(tight)
    with pytest.raises(PolicyRefusal, match="the whole run at party 'north' would bring epsilon to 8"):
        check_budgets(settings, "north", policy, lambda: read_recipe(sources_of(settings)["north"]))
    with pytest.raises(PolicyRefusal, match="budget"):
        begin(settings)
    assert party.run(policy=BUDGET.format(9)) == pytest.approx(8.0)


def test_what_limits_cut_off_costs_nothing(party):
    """Documents change where no step looks: beyond `max_tokens_per_document`."""
    policy = "max_tokens_per_document = 5\n" + BUDGET.format(20)
    party.run(policy=policy)
    party.texts = [f"{text} {STEMS[0]}" for text in party.texts]
    spent, after = party.forecast(policy=policy)
    assert (spent, after) == pytest.approx((4.0, 4.0))
    assert party.run(policy=policy) == pytest.approx(after)


def test_a_forecast_changes_nothing_at_home(party):
    party.run(policy=BUDGET.format(20))
    ledger = Ledger(party.place / "home" / "ledger.sqlite")
    before = ledger.digest()
    party.forecast(words=OTHER, policy=BUDGET.format(20))
    assert ledger.digest() == before
    ledger.close()
