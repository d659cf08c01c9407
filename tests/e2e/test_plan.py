"""All that leaves was planned: what `plan` announced of a method beside what the ledgers hold after a run.

Every method in each of its modes, and what else makes it send something else. A plan is kept if nothing leaves that it
does not name, and everything that it names leaves, as often as it says and at the cost that it says.
"""

import importlib
import json
from collections import Counter

import pytest

from helpers.modes import CASES, FOUR, PARTIES
from helpers.runs import prepared
from tertulia.federation.types import step_name
from tertulia.methods.registry import METHODS
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.reported_documents import NO_IDS
from tertulia.privacy.user_totals import NO_USERS
from tertulia.runs.driver import finish
from tertulia.runs.settings import RunSettings

pytestmark = pytest.mark.filterwarnings("ignore:merging")  # toy tests have toy topics


def announced(method):
    """How often each kind of release is to be asked for."""
    times: Counter = Counter()
    for row in importlib.import_module(METHODS[method["name"]].module).plan(RunSettings(method=method).method):
        m = row.mechanism
        times[_step(step_name(row.step), row.verb), row.verb, m.what, m.name, _terms(m, m.charge())] += row.times
    return times


def released(run, party):
    """How often each kind was asked for; an answer may hold several arrays of a kind."""
    ledger = Ledger(run.party_directory(party) / "ledger.sqlite")
    questions = {
        (_step(r.step, r.verb), r.verb, r.what, r.name, _terms(r, r.event),
         r.id if r.verb == "reports" else (r.round, r.message_hash))
        for r in ledger.releases()
    }  # fmt: skip
    ledger.close()
    return Counter(question[:-1] for question in questions)


def _terms(of, event):
    """What a release costs whom, under which assumptions."""
    terms = [
        event,
        of.unit.value,
        of.adjacency.value,
        str(of.claimed),
        sorted(set(of.assumptions) - {NO_IDS, NO_USERS}),
    ]  # ids and users are known when documents are
    return json.dumps(terms, sort_keys=True)


def _step(step, verb):
    """Reports are a party's own: whichever step asks for them first, they are there for all."""
    return "any" if verb == "reports" else step


def test_only_consensus_and_baselines_send_something_for_alpha():
    what = {name: {row[2] for row in announced(settings)} for name, settings in CASES.items()}
    histograms = {name for name, things in what.items() if "document-topic histograms" in things}
    assert histograms == {"consensus", "consensus-sound", "consensus-robust", "consensus-sound-robust"}
    assert {name for name, things in what.items() if "alpha of topics" in things} == {"alone"}


@pytest.mark.parametrize("name", CASES)
def test_all_that_leaves_was_planned(name, tmp_path):
    parties = FOUR if "robust" in CASES[name] else PARTIES
    run = prepared(tmp_path / "run", parties, CASES[name], heldout=0.2)
    finish(run)
    for party in parties:
        assert released(run, party) == announced(CASES[name])
