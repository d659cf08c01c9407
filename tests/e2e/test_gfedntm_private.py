"""gFedNTM's mode `doc` from texts to a model: what leaves, what it costs, masked sums, interruptions, refusals."""

import shutil
from contextlib import closing

import numpy as np
import pytest

import tertulia as tt
from helpers.runs import Interrupted, interrupt_at, outcome, prepared
from helpers.texts import PUBLIC, halves
from tertulia.corpus import Corpus
from tertulia.errors import PolicyRefusal
from tertulia.federation.plan import WIDER
from tertulia.methods.gfedntm.private import BITS, WHAT
from tertulia.privacy.accounting import cost
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.policy import Policy
from tertulia.runs.budgets import check_budgets
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.settings import RunSettings

PARTIES = {name: halves(seed, 30) for seed, name in enumerate(("north", "south", "east"))}
PRIVATE = {
    "name": "gfedntm",
    "mode": "doc",
    "epsilon": 2.0,
    "declared_documents": 10_000,
    "rounds": 4,
    "sampling_rate": 0.5,
    "topics": 2,
    "hidden": (4,),
    "vocabulary": PUBLIC,
}


def ledger_of(run, party="north"):
    return Ledger(run.party_directory(party) / "ledger.sqlite")


def test_nothing_but_noisy_sums_leaves_and_all_steps_cost_epsilon(tmp_path):
    run = prepared(tmp_path / "run", PARTIES, PRIVATE, heldout=0.0)
    model = finish(run)
    assert model.n_topics == 2
    assert np.allclose(model.transform(["harbour garden"]).sum(), 1)
    for party in PARTIES:
        with closing(ledger_of(run, party)) as ledger:
            releases = ledger.releases()
        assert {r.what for r in releases} == {WHAT}
        assert len({r.message_hash for r in releases}) == len(releases) == 4
        assert {r.params["shares"] for r in releases} == {1}
        assert 1.98 < cost(releases, Unit.DOCUMENT, Adjacency.ADD_REMOVE, 1e-6).epsilon <= 2.0


def test_members_share_the_noise_of_masked_sums(tmp_path):
    settings = {name: value for name, value in PRIVATE.items() if name != "name"}
    model = tt.GFedNTM(**settings).fit(PARTIES, heldout=0.0, directory=tmp_path / "run", federation={"secure": True})
    assert model.n_topics == 2
    with closing(ledger_of(Run.open(tmp_path / "run"))) as ledger:
        releases, real = ledger.releases(), ledger.cost(Unit.DOCUMENT, Adjacency.ADD_REMOVE, 1e-6)
    assert {r.what for r in releases} <= {WHAT, WIDER}
    assert {r.params["shares"] for r in releases if r.what == WHAT} == {2}
    assert all(r.masked for r in releases if r.what == WHAT)
    assert 1.98 < real.epsilon <= 2.0


def test_a_run_goes_on_after_an_interruption_with_the_same_coins_and_noise(tmp_path):
    prepared(tmp_path / "whole", PARTIES, {**PRIVATE, "checkpoint_every": 2}, heldout=0.0)
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    whole, cut = (Run.open(tmp_path / name) for name in ("whole", "cut"))
    finish(whole)
    with pytest.raises(Interrupted):
        finish(cut, observe=interrupt_at(4))  # between two commits on disk: a step is asked again
    again = Run.open(tmp_path / "cut")
    finish(again)
    first, second = outcome(whole), outcome(again)
    assert first == second  # weights, model, and ledgers: no step was charged twice
    with closing(ledger_of(again)) as ledger:
        assert len(ledger.releases()) == 4


def test_parties_without_a_known_word_send_all_of_the_noise_and_nothing_else(tmp_path):
    settings = {**PRIVATE, "hidden": (60,), "optimiser": "sgd", "learning_rate": 1.0}
    parties = {name: ["zebra giraffe", "gnu"] for name in ("north", "south")}
    run = prepared(tmp_path / "run", parties, {**settings, "precision": "float64"}, heldout=0.0)
    encoder = finish(run).encoder
    moved = encoder.network.initial_weights(3) - encoder.weights
    with closing(ledger_of(run)) as ledger:
        releases = ledger.releases()
    assert len({r.params["sigma"] for r in releases}) == 1
    sums = moved * (PRIVATE["sampling_rate"] * PRIVATE["declared_documents"])  # in units of the clip norm
    assert len(sums) > 800
    assert np.std(sums) == pytest.approx(releases[0].params["sigma"] * np.sqrt(2 * 4), rel=0.1)  # parties, steps
    assert np.allclose(np.rint(sums * 2**BITS), sums * 2**BITS, atol=1e-3)  # on the grid


def test_budgets_are_checked_for_the_whole_run_before_the_first_step(tmp_path):
    budget = '[[budget]]\nunit = "document"\nadjacency = "add-remove"\nepsilon = {}\ndelta = 1e-6\n'
    settings = RunSettings(method=PRIVATE, parties={"north": {"path": "x.txt", "home": str(tmp_path / "home")}})
    documents = Corpus.from_texts(PARTIES["north"])
    check_budgets(settings, "north", Policy.parse(budget.format(2.0)), lambda: documents)
    with pytest.raises(PolicyRefusal, match=r"the whole run at party 'north' would bring epsilon to 1\.99"):
        check_budgets(settings, "north", Policy.parse(budget.format(1.9)), lambda: documents)
