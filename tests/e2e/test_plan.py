"""All that leaves was planned: what `plan` announced of a method beside what the ledgers hold after a run.

Every method in each of its modes, and what else makes it send something else. A plan is kept if nothing leaves that it
does not name, and everything that it names leaves, as often as it says and at the cost that it says.
"""

import importlib
import json
from collections import Counter

import pytest

from helpers.runs import prepared
from helpers.texts import PUBLIC, halves
from tertulia.federation.types import step_name
from tertulia.methods.registry import METHODS
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.reported_documents import NO_IDS
from tertulia.privacy.user_totals import NO_USERS
from tertulia.runs.driver import finish
from tertulia.runs.settings import RunSettings

pytestmark = pytest.mark.filterwarnings("ignore:merging")  # toy tests have toy topics
PARTIES = {"north": halves(1), "south": halves(2, 40)}
FOUR = {name: halves(seed, 30) for seed, name in enumerate(("north", "south", "east", "west"))}  # `robust` needs them
LDA = {"topics": 2, "rounds": 2, "sweeps": 2}
FTM, CONSENSUS, FEDLDA = (
    {"name": "ftm", **LDA},
    {"name": "consensus", **LDA},
    {"name": "fedlda", "topics": 2, "rounds": 2},
)
PCTD = {"name": "pctd", "topics": 2, "rounds": 2}
NEURAL = {"name": "gfedntm", "topics": 2, "hidden": (4,), "rounds": 2, "epochs": 2, "batch_size": 60}
SOUND, PAPER = ({"mode": mode, "epsilon": 5.0, "vocabulary": PUBLIC} for mode in ("sound", "paper"))
DOCUMENTS = {
    "mode": "doc",
    "epsilon": 2.0,
    "declared_documents": 5000,
    "sampling_rate": 0.5,
    "rounds": 4,
    "epochs": None,
    "vocabulary": PUBLIC,
}
CASES = {
    "ftm": FTM,
    "ftm-public-words": {**FTM, "vocabulary": PUBLIC},
    "ftm-unscored": {**FTM, "evaluate": False},
    **{
        f"ftm-{settings['mode']}-{model}": {**FTM, **settings, "model": model}
        for settings in (SOUND, PAPER)
        for model in ("lda", "sentence")
    },
    **{f"ftm-sound-{channel}": {**FTM, **SOUND, "channel": channel} for channel in ("krr", "subset", "laplace")},
    "ftm-fixed-alpha": {**FTM, "learn_alpha": False},
    "ftm-sound-fixed-alpha": {**FTM, **SOUND, "learn_alpha": False},
    "consensus": CONSENSUS,
    "consensus-sound": {**CONSENSUS, **SOUND},
    "consensus-fixed-alpha": {**CONSENSUS, "learn_alpha": False},
    "consensus-robust": {**CONSENSUS, "robust": True},
    "consensus-sound-robust": {**CONSENSUS, **SOUND, "robust": True},
    "consensus-sound-fixed-alpha": {**CONSENSUS, **SOUND, "learn_alpha": False},
    "fedlda": FEDLDA,
    **{f"fedlda-{how}": {**FEDLDA, **PAPER, "mechanism": how} for how in ("rrp", "krr", "tkrr", "hm")},
    "fedlda-sound": {**FEDLDA, **SOUND},
    "fedlda-user": {**FEDLDA, "mode": "sound", "user_epsilon": 20.0, "vocabulary": SOUND["vocabulary"]},
    "pctd": PCTD,
    "pctd-private-words": {**PCTD, "vocabulary": {"mode": "private", "epsilon": 60.0}},
    "pctd-paper": {**PCTD, "mode": "paper", "vocabulary": PUBLIC},
    "pctd-sound": {**PCTD, **SOUND},
    "gfedntm": NEURAL,
    "gfedntm-batch": {**NEURAL, "normalisation": "batch"},
    "gfedntm-layer-validation": {**NEURAL, "normalisation": "layer", "validation": 0.25},
    "gfedntm-validation": {**NEURAL, "validation": 0.25},
    "gfedntm-topk": {**NEURAL, "paper": {"keep": 0.1}},
    "gfedntm-fedavg": {**NEURAL, "averaging": "fedavg", "epochs": 20, "validation": 0.25},
    "gfedntm-fresh-moments": {**NEURAL, "averaging": "fedavg", "epochs": 20, "local_moments": "fresh"},
    "gfedntm-alone": {**NEURAL, "scenario": "alone"},
    "gfedntm-doc": {**NEURAL, **DOCUMENTS},
    "private-topics": {  # a clip norm of 4, by which costs divide without rounding
        "name": "private_topics",
        "topics": 2,
        "rounds": 2,
        "adapt": False,
        "vocabulary": PUBLIC,
        "words_per_document": 64,
    },
    "private-topics-clear": {"name": "private_topics", "topics": 2, "mode": "clear", "vocabulary": PUBLIC},
    "alone": {"name": "alone", "topics": 2, "sweeps": 2},
    "alone-fixed-alpha": {"name": "alone", "topics": 2, "sweeps": 2, "learn_alpha": False},
}


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
